"""The embedded engine passes the kit that adapters for servers run, blocking and awaited."""

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shinglefold.contracts.engine import Engine
from shinglefold.engines import open_engine
from shinglefold.engines.embedded.async_engine import AsyncEmbeddedEngine
from shinglefold.testing.engines.conformance import EngineConformance


class TestEmbedded(EngineConformance):
    @pytest.fixture
    def engine(self, tmp_path: Path, words) -> Iterator[Engine]:
        engine = open_engine(tmp_path, words)
        yield engine
        engine.close()

    def test_fulfils_the_contract(self, engine: Engine):
        assert isinstance(engine, Engine)


class Waiting:
    """Awaits what an awaited engine has of the contract; it writes with the engine behind that."""

    def __init__(self, engine: AsyncEmbeddedEngine, runner: asyncio.Runner) -> None:
        self._engine = engine
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._engine, name, None)
        if not inspect.iscoroutinefunction(own):
            return getattr(self._engine.blocking, name)
        return lambda *arguments, **named: self._runner.run(own(*arguments, **named))


class TestAwaited(EngineConformance):
    @pytest.fixture
    def engine(self, tmp_path: Path, words) -> Iterator[Any]:
        with asyncio.Runner() as runner:
            engine = AsyncEmbeddedEngine(tmp_path, words)
            yield Waiting(engine, runner)
            runner.run(engine.close())
            runner.run(engine.close())
