"""The embedded engine passes the kit that adapters for servers run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shinglefold.contracts import Engine
from shinglefold.engines import open_engine
from shinglefold.testing.engine import EngineConformance


class TestEmbedded(EngineConformance):
    @pytest.fixture
    def engine(self, tmp_path: Path, words) -> Iterator[Engine]:
        engine = open_engine(tmp_path, words)
        yield engine
        engine.close()

    def test_fulfils_the_contract(self, engine: Engine):
        assert isinstance(engine, Engine)
