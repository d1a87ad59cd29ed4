"""The gate for event loops: the same decisions, awaited."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext, suppress
from typing import Any, ParamSpec, Self, TypeVar

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import Document, Engine, HasConnection, RunsInThreads
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError, EngineError
from shinglefold.grouping.gate.base_gate import BaseGate, canonicalizer_of, check_rules, let_in
from shinglefold.grouping.gate.loop_thread import LoopThread
from shinglefold.grouping.gate.opening import GateSetup, open_gate
from shinglefold.grouping.gate.protocol.member import Verdict
from shinglefold.grouping.gate.protocol.policy import Policy
from shinglefold.grouping.gate.stores.server import AWAITED, BLOCKING
from shinglefold.ingest import Pipeline
from shinglefold.model.seal import Seal

Given = ParamSpec("Given")
Result = TypeVar("Result")


class AsyncGate(BaseGate):
    """A ``Gate`` whose methods are awaited; tasks of one event loop share it, and are decided together.

    A task that is cancelled stops waiting; its documents may be let in all the same. Make a gate with
    ``await AsyncGate.open(engine, index, policy)``.
    """

    def __init__(
        self,
        engine: Any,  # noqa: ANN401 - an awaited engine
        opened: GateSetup,
        pipeline: Pipeline | None,
        seal: Seal | None,
    ) -> None:
        self.engine = engine
        self._thread: LoopThread | None = None
        if isinstance(engine, RunsInThreads):
            super().__init__(engine.blocking, opened, pipeline, seal, BLOCKING)
            # The engine blocks: it must not block the event loop of the caller.
            self._thread = LoopThread("shinglefold-gate")
        else:
            super().__init__(engine, opened, pipeline, seal, AWAITED)

    @classmethod
    async def open(
        cls,
        engine: Any,  # noqa: ANN401 - an awaited engine
        index: str,
        policy: Policy | None = None,
        *,
        pipeline: Pipeline | None = None,
        seal: Seal | None = None,
        lease: float = 30.0,
        blocking: Engine | None = None,
    ) -> Self:
        """Make the index ready and open a gate before it.

        Args:
            engine: ``AsyncOpenSearchEngine``, ``AsyncElasticsearchEngine`` or ``AsyncEmbeddedEngine``.
            index, policy, pipeline, seal, lease: see ``Gate``.
            blocking: an engine that reaches the same server, to make the index ready by; None opens one.

        Raises:
            ConfigError: the index was not set up for it, or the engine can't do it.
        """
        check_rules(policy, pipeline)
        if not isinstance(engine, RunsInThreads) and not isinstance(engine, HasConnection):
            raise ConfigError(f"{type(engine).__name__} is no engine whose methods are awaited")
        opened = await asyncio.to_thread(
            _opened, blocking, engine, index, policy or Policy(), seal, lease, canonicalizer_of(pipeline)
        )
        return cls(engine, opened, pipeline, seal)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # As ``Gate`` does.
        with nullcontext() if kind is None else suppress(EngineError):
            await self.close()

    async def add(self, document: Document) -> Verdict:
        """Let a document in and return how; see ``Gate.add``."""
        (verdict,) = await self.add_all([document])
        return let_in(verdict)

    async def add_all(self, documents: Sequence[Document]) -> list[Verdict]:
        """Let documents in as far as the policy does; see ``Gate.add_all``."""
        if self._thread is not None:
            return await self._run(self._add_all, documents)
        return await self._decide(await asyncio.to_thread(self.made, documents))

    async def admit(self, documents: Sequence[Document]) -> list[Verdict]:
        """Decide about documents with fingerprints; see ``Gate.admit``."""
        return await self._run(self._group_commit.admit, documents)

    async def refresh(self) -> None:
        """Make what was let in visible to searches."""
        await self._run(self._group_commit.refresh)

    async def close(self) -> None:
        """Make what was let in visible to searches, and take the gate's notes away; again it does nothing."""
        if self._thread is None:
            await self._group_commit.close()
        elif not self._thread.stopped:
            await self._run(self._group_commit.close)
            await asyncio.to_thread(self._thread.stop)

    async def _run(
        self,
        work: Callable[Given, Coroutine[Any, Any, Result]],
        *args: Given.args,
        **more: Given.kwargs,
    ) -> Result:
        if self._thread is None:
            return await work(*args, **more)
        return await asyncio.wrap_future(self._thread.submit(work, *args, **more))


def _opened(  # noqa: PLR0917 - as ``open_gate``
    given: Engine | None,
    engine: Any,  # noqa: ANN401 - an awaited engine
    index: str,
    policy: Policy,
    seal: Seal | None,
    lease: float,
    canonicalizer: Canonicalizer | None,
) -> GateSetup:
    if isinstance(engine, RunsInThreads):
        return open_gate(engine.blocking, index, policy, seal, lease, canonicalizer)
    if given is not None:
        return open_gate(given, index, policy, seal, lease, canonicalizer)
    blocking = open_engine(engine.connection)
    try:
        return open_gate(blocking, index, policy, seal, lease, canonicalizer)
    finally:
        blocking.close()
