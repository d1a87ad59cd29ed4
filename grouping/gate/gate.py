"""The gate in front of an index: documents in, verdicts out."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext, suppress
from typing import Any, ParamSpec, Self, TypeVar

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON, Document, Engine, HasConnection, RunsInThreads
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError, EngineError
from shinglefold.grouping.gate.base_gate import (
    BATCH,
    BaseGate,
    accepted_or_raise,
    canonicalizer_of,
    check_gate_options,
)
from shinglefold.grouping.gate.group_commit import LoopThread
from shinglefold.grouping.gate.housekeeping import sweep
from shinglefold.grouping.gate.opening import GateSetup, open_gate
from shinglefold.grouping.gate.protocol.member import Verdict
from shinglefold.grouping.gate.server_store import AWAITED, BLOCKING
from shinglefold.grouping.rules import Policy
from shinglefold.ingest import Pipeline
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import without_fingerprint
from shinglefold.options.validation import check_str
from shinglefold.rerank.explanation import matched_passages

__all__ = ["BATCH", "AsyncGate", "Gate"]

#: Documents of one id that are searched for passages in common with another.
_ROUTINGS = 100


class Gate(BaseGate):
    """Lets documents into an index, or not, by a policy; documents of the same moment included.

    Threads may share a gate: documents that arrive while it decides are decided together, in a thread of its
    own. Any number of processes may have gates in front of the same index, with the same policy.

    Args:
        engine: a server, or an embedded engine, which one process at a time may write to: others wait.
        index: was set up for fingerprints; for ``tag`` and ``cap`` with groups.
        pipeline: makes fingerprints; by default that of the index.
        seal: of the key that the index is sealed with.
        lease: seconds after which others clear away what this gate has begun, where it died.

    Raises:
        ConfigError: the index was not set up for it, or the engine can't do it.
    """

    def __init__(
        self,
        engine: Engine,
        index: str,
        policy: Policy | None = None,
        *,
        pipeline: Pipeline | None = None,
        seal: Seal | None = None,
        lease: float = 30.0,
    ) -> None:
        check_gate_options(policy, pipeline)
        opened = open_gate(engine, index, policy or Policy(), seal, lease, canonicalizer_of(pipeline))
        super().__init__(engine, opened, pipeline, seal, BLOCKING)
        self.engine = engine
        self._thread = LoopThread("shinglefold-gate")
        self._closing = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # An error in the block is raised, and not that closing fails for the same reason.
        with nullcontext() if kind is None else suppress(EngineError):
            self.close()

    def add(self, document: Document) -> Verdict:
        """Let a document in and return how.

        Args:
            document: its fields, with ``_id`` or ``id`` where it has an id of its own.

        Raises:
            Refused: it resembles a stored document, or does not fit; the error tells which and how much.
            EngineError: the engine can't go on; whether it was let in is unknown where its id was not given.
        """
        (verdict,) = self.add_all([document])
        return accepted_or_raise(verdict)

    def add_all(self, documents: Sequence[Document]) -> list[Verdict]:
        """Let documents in as far as the policy does, and return their verdicts, in order.

        Raises:
            EngineError: the engine can't go on; what was let in until then stays.
        """
        if not self._opened.intents:
            return self._thread.run(self._add_all, documents)
        return self._thread.run(self._decide, self.made(documents))

    def admit(self, documents: Sequence[Document]) -> list[Verdict]:
        """Decide about documents with fingerprints, as a pipeline makes them; ``_id`` is theirs.

        Raises:
            EngineError: the engine can't go on; what was let in until then stays.
        """
        return self._thread.run(self._group_commit.admit, documents)

    def passages(self, document: Document, like: str) -> list[JSON]:
        """Return the passages that a document has in common with a stored one, in its own order.

        Args:
            document: as it was given.
            like: the id of the stored one, as an error or a verdict names it.

        Returns:
            for each passage ``equal_tokens``, and under ``shown`` (the stored one) and ``member`` the field,
            the place and the text; [] where the stored one is gone.
        """
        check_str("like", like)
        (outcome,) = self.pipeline.run_block([without_fingerprint(document, self.recipe.field)])
        given = document if outcome.document is None else outcome.document
        placed = self.pipeline.tools.canonicalizer.placed

        def shared(stored: JSON) -> list[JSON]:
            return matched_passages(stored["_source"], given, self.recipe.fields, placed)

        stored = self.engine.get(self.index, like)
        if stored is not None and (found := shared(stored)):
            return found
        # Documents under other routings may have the id, too: the one that it resembles shares most.
        return max(map(shared, self._routed(like)), key=_length, default=[])

    def _routed(self, id_: str) -> list[JSON]:
        """Return the documents of an id under any routing, which only a search finds."""
        self.refresh()
        body = {"query": {"ids": {"values": [id_]}}, "size": _ROUTINGS, **self.engine.can.unaltered}
        hits: list[JSON] = self.engine.search(self.index, body, self.engine.can.newest)["hits"]["hits"]
        return hits

    def sweep(self) -> int:
        """Remove placeholders left by crashed writers; return how many.

        Only searches for all documents find them. On an embedded engine there are none.
        """
        return len(sweep(self.engine, self.index, self.recipe.field).removed)

    def refresh(self) -> None:
        """Make what was let in visible to searches."""
        self._thread.run(self._group_commit.refresh)

    def close(self) -> None:
        """Make what was let in visible to searches, and take the gate's notes away; again it does nothing."""
        if self._thread.forked:
            return
        with self._closing:
            if not self._thread.stopped:
                self._thread.run(self._group_commit.close)
                self._thread.stop()


def _length(passages: Sequence[JSON]) -> int:
    return sum(one["equal_tokens"] for one in passages)


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
        check_gate_options(policy, pipeline)
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
        return accepted_or_raise(verdict)

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
