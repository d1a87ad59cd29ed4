"""The gate of an index with awaited methods."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing, nullcontext, suppress
from typing import Any, ParamSpec, Self, TypeVar

from shinglefold.contracts.engine import JSON, Document, Engine, HasConnection, RunsInThreads
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError, EngineError
from shinglefold.grouping.gate.gate import (
    BaseGate,
    accepted_or_raise,
)
from shinglefold.grouping.gate.group_commit import LoopThread
from shinglefold.grouping.gate.opening import AWAITED, BLOCKING, GateSetup, open_gate
from shinglefold.grouping.gate.protocol.pending_document import Verdict
from shinglefold.grouping.gate.server_store import sweep
from shinglefold.grouping.rules import Policy
from shinglefold.ingest import Pipeline
from shinglefold.model.seal import Seal
from shinglefold.options.validation import check_str
from shinglefold.rerank.hits import check_complete

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class AsyncGate(BaseGate):
    """A ``Gate`` whose methods are awaited; tasks of one event loop may share it.

    A task that is cancelled stops waiting, but its documents may still be accepted. Make a gate with
    ``await AsyncGate.open(engine, index, policy)``.
    """

    def __init__(
        self,
        engine: Any,  # noqa: ANN401 - an awaited engine
        setup: GateSetup,
        pipeline: Pipeline | None,
        seal: Seal | None,
        blocking: Engine | None,
    ) -> None:
        self.engine, self._blocking = engine, blocking
        self._thread: LoopThread | None = None
        if isinstance(engine, RunsInThreads):
            super().__init__(engine.blocking, setup, pipeline, seal, BLOCKING)
            # A blocking engine must not block the event loop of the caller.
            self._thread = LoopThread()
        else:
            super().__init__(engine, setup, pipeline, seal, AWAITED)

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
        """Prepare the index and open a gate for it.

        Args:
            engine: ``AsyncOpenSearchEngine``, ``AsyncElasticsearchEngine`` or ``AsyncEmbeddedEngine``.
            index, policy, pipeline, seal, lease: see ``Gate``.
            blocking: an engine of the same server, to prepare and to sweep the index; None opens one.

        Raises:
            ConfigError: the index was not set up for gates, or the engine does not support them.
        """
        if not isinstance(engine, RunsInThreads) and not isinstance(engine, HasConnection):
            raise ConfigError(f"{type(engine).__name__} is not an awaited engine: use Gate for blocking ones")

        def prepare(by: Engine) -> GateSetup:
            return open_gate(by, index, policy, pipeline, seal, lease)

        setup = await asyncio.to_thread(_run_blocking, engine, blocking, prepare)
        return cls(engine, setup, pipeline, seal, blocking)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # See ``Gate.__exit__``.
        with nullcontext() if kind is None else suppress(EngineError):
            await self.close()

    async def add(self, document: Document) -> Verdict:
        """Add a document; see ``Gate.add``."""
        (verdict,) = await self.add_all([document])
        return accepted_or_raise(verdict)

    async def add_all(self, documents: Sequence[Document]) -> list[Verdict]:
        """Add the documents that the policy accepts; see ``Gate.add_all``."""
        if self._thread is not None:
            return await self._run(self._add_all, documents)
        return await self._decide(await asyncio.to_thread(self._add_fingerprints, documents))

    async def admit(self, documents: Sequence[Document]) -> list[Verdict]:
        """Decide about documents with fingerprints; see ``Gate.admit``."""
        return await self._run(self._group_commit.admit, documents)

    async def passages(self, document: Document, like: str) -> list[JSON]:
        """Return the passages that a document has in common with a stored one; see ``Gate.passages``.

        If the id is stored under several routings, the document that shares most counts.
        """
        check_str("like", like)
        await self.refresh()
        answer = await self.engine.search(self.index, self._with_id(like), self.engine.can.newest)
        hits = check_complete(answer)["hits"]["hits"]
        return await asyncio.to_thread(self._common_passages, document, hits)

    async def sweep(self) -> int:
        """Remove placeholders left by crashed writers, and return how many; see ``Gate.sweep``."""

        def sweep_with(by: Engine) -> int:
            return len(sweep(by, self.index, self.recipe.field).removed)

        return await asyncio.to_thread(_run_blocking, self.engine, self._blocking, sweep_with)

    async def refresh(self) -> None:
        """Make accepted documents visible to searches."""
        await self._run(self._group_commit.refresh)

    async def close(self) -> None:
        """Make accepted documents visible, and delete the gate's intents; a second call does nothing."""
        if self._thread is None:
            await self._group_commit.close()
        elif not self._thread.stopped:
            await self._run(self._group_commit.close)
            await asyncio.to_thread(self._thread.stop)

    async def _run(
        self,
        work: Callable[Arguments, Coroutine[Any, Any, Result]],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        if self._thread is None:
            return await work(*args, **options)
        return await asyncio.wrap_future(self._thread.submit(work, *args, **options))


def _run_blocking(
    engine: Any,  # noqa: ANN401 - an awaited engine
    blocking: Engine | None,
    work: Callable[[Engine], Result],
) -> Result:
    """Return the result of a function of a blocking engine of the same server; open one if none is given."""
    if isinstance(engine, RunsInThreads):
        return work(engine.blocking)
    if blocking is not None:
        return work(blocking)
    with closing(open_engine(engine.connection)) as own:
        return work(own)
