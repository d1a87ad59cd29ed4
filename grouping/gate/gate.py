"""The gate of an index, blocking and awaited, and bulk runs: documents in, verdicts out."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ParamSpec, Self, TypeVar

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
from shinglefold.grouping.gate.opening import AWAITED, BLOCKING, GateSetup, open_gate
from shinglefold.grouping.gate.protocol.member import Verdict
from shinglefold.grouping.rules import Policy
from shinglefold.ingest import Pipeline
from shinglefold.ingest.readers.record import Record
from shinglefold.ingest.writing.batch import ReadBack
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import without_fingerprint
from shinglefold.options.validation import check_str
from shinglefold.rerank.explanation import matched_passages
from shinglefold.rerank.hits import check_complete
from shinglefold.runtime.signals import Interrupts

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
#: The most documents with one id, under different routings, that ``Gate.passages`` compares.
_ROUTINGS = 100


class Gate(BaseGate):
    """Accepts documents into an index or refuses them, by a policy.

    A document is compared with those that are stored and with those that other gates are deciding about.
    Threads may share a gate; a separate thread decides about the documents of all waiting callers. Any
    number of processes may have gates for the same index, with the same policy.

    Args:
        engine: a server, or an embedded engine, to whose index one process at a time may write.
        index: an index that was set up for fingerprints; for ``tag`` and ``cap`` with groups.
        pipeline: makes fingerprints; by default that of the index.
        seal: the seal with the key of the index.
        lease: if the gate dies, other gates clear its open intents after this many seconds.

    Raises:
        ConfigError: the index was not set up for gates, or the engine does not support them.
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
        setup = open_gate(engine, index, policy or Policy(), seal, lease, canonicalizer_of(pipeline))
        super().__init__(engine, setup, pipeline, seal, BLOCKING)
        self.engine = engine
        self._thread = LoopThread("shinglefold-gate")
        self._closing = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # An error of ``close`` must not hide an error of the block, which often has the same cause.
        with nullcontext() if kind is None else suppress(EngineError):
            self.close()

    def add(self, document: Document) -> Verdict:
        """Add a document and return the verdict, which is ``accepted``.

        Args:
            document: its fields; without ``_id`` or ``id`` it gets a random id.

        Raises:
            Refused: it resembles a stored document, or is invalid; the error names the document and the
                likeness.
            EngineError: the engine failed. Read the document by its id to know whether it was stored.
        """
        (verdict,) = self.add_all([document])
        return accepted_or_raise(verdict)

    def add_all(self, documents: Sequence[Document]) -> list[Verdict]:
        """Add the documents that the policy accepts, and return the verdicts on all, in order.

        Raises:
            EngineError: the engine failed; documents that were stored before stay.
        """
        if not self._setup.intents:
            return self._thread.run(self._add_all, documents)
        return self._thread.run(self._decide, self._fingerprinted(documents))

    def admit(self, documents: Sequence[Document]) -> list[Verdict]:
        """Decide about documents that have ``_id`` and a fingerprint of the index's pipeline.

        One with the ``_op_type`` ``"create"`` fails where its id is stored.

        Raises:
            EngineError: the engine failed; documents that were stored before stay.
        """
        return self._thread.run(self._group_commit.admit, documents)

    def passages(self, document: Document, like: str) -> list[JSON]:
        """Return the passages that a document has in common with a stored one, in its own order.

        Args:
            document: the document that ``add`` received, unchanged.
            like: the id of the stored document, which the error or the verdict names.

        Returns:
            For each passage ``equal_tokens``, and under ``shown`` (the stored document) and ``member`` the
            field, the position and the text; [] if the stored document was deleted.
        """
        check_str("like", like)
        (outcome,) = self.pipeline.run_block([without_fingerprint(document, self.recipe.field)])
        processed = document if outcome.document is None else outcome.document
        placed = self.pipeline.tools.canonicalizer.placed

        def shared(stored: JSON) -> list[JSON]:
            return matched_passages(stored["_source"], processed, self.recipe.fields, placed)

        stored = self.engine.get(self.index, like)
        if stored is not None and (found := shared(stored)):
            return found
        # Documents with other routings may have the same id: choose the one that shares most.
        return max(map(shared, self._with_id(like)), key=_equal_tokens, default=[])

    def _with_id(self, id_: str) -> list[JSON]:
        """Return the documents of an id under any routing, which only a search finds."""
        self.refresh()
        body = {"query": {"ids": {"values": [id_]}}, "size": _ROUTINGS, **self.engine.can.unaltered}
        answer = self.engine.search(self.index, body, self.engine.can.newest)
        hits: list[JSON] = check_complete(answer)["hits"]["hits"]
        return hits

    def sweep(self) -> int:
        """Remove placeholders left by crashed writers, and return how many; none on an embedded engine."""
        return len(sweep(self.engine, self.index, self.recipe.field).removed)

    def refresh(self) -> None:
        """Make accepted documents visible to searches."""
        self._thread.run(self._group_commit.refresh)

    def close(self) -> None:
        """Make accepted documents visible, and delete the gate's intents; a second call does nothing."""
        if self._thread.forked:
            return
        with self._closing:
            if not self._thread.stopped:
                self._thread.run(self._group_commit.close)
                self._thread.stop()


def _equal_tokens(passages: Sequence[JSON]) -> int:
    return sum(passage["equal_tokens"] for passage in passages)


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
    ) -> None:
        self.engine = engine
        self._thread: LoopThread | None = None
        if isinstance(engine, RunsInThreads):
            super().__init__(engine.blocking, setup, pipeline, seal, BLOCKING)
            # A blocking engine must not block the event loop of the caller.
            self._thread = LoopThread("shinglefold-gate")
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
            blocking: an engine of the same server, which prepares the index; None opens one for that.

        Raises:
            ConfigError: the index was not set up for gates, or the engine does not support them.
        """
        check_gate_options(policy, pipeline)
        if not isinstance(engine, RunsInThreads) and not isinstance(engine, HasConnection):
            raise ConfigError(f"{type(engine).__name__} is not an awaited engine: use Gate for blocking ones")

        def prepare(by: Engine) -> GateSetup:
            return open_gate(by, index, policy or Policy(), seal, lease, canonicalizer_of(pipeline))

        def opened() -> GateSetup:
            if isinstance(engine, RunsInThreads):
                return prepare(engine.blocking)
            if blocking is not None:
                return prepare(blocking)
            with closing(open_engine(engine.connection)) as own:
                return prepare(own)

        return cls(engine, await asyncio.to_thread(opened), pipeline, seal)

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
        return await self._decide(await asyncio.to_thread(self._fingerprinted, documents))

    async def admit(self, documents: Sequence[Document]) -> list[Verdict]:
        """Decide about documents with fingerprints; see ``Gate.admit``."""
        return await self._run(self._group_commit.admit, documents)

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


@dataclass(slots=True)
class BulkRun:
    """The state of a run: ``read == accepted + refused + failed + unknown``.

    Attributes:
        verdicts: the verdict on each document, in order, as JSON with its line.
        unknown: documents that are being decided; if the run ends now, some may have been stored.
        stopped: why the run ended early; "" if it did not.
        stale: stored documents that had another text than their fingerprint, and so decided nothing.
        read_back: counts documents that the server stored otherwise than they were signed, and those that
            could not be read to be compared.
    """

    verdicts: list[JSON] = field(default_factory=list)
    unknown: int = 0
    stopped: str = ""
    stale: set[str] = field(default_factory=set)
    read_back: ReadBack | None = None

    @property
    def read(self) -> int:
        """The number of documents that were read."""
        return len(self.verdicts) + self.unknown

    def count(self, status: str) -> int:
        """Return how many documents have a status: ``accepted``, ``refused`` or ``failed``."""
        return sum(verdict["status"] == status for verdict in self.verdicts)

    def add_all(self, gate: Gate, records: Iterator[Record], passages: bool = False) -> None:
        """Add all documents. Ctrl-C and SIGTERM end the run between batches.

        A second signal stops waiting for the batch that is being decided.

        Args:
            passages: add the passages that a refused document has in common with the stored one.

        Raises:
            Interrupted: a signal came; documents that were stored stay, and are counted.
            EngineError: the engine failed; the same holds for stored documents.
            InputError: the source could not be read any further; the same holds for stored documents.
        """
        self.read_back = gate.read_back
        with Interrupts() as interrupts:
            while True:
                with interrupts.breakable():
                    batch = list(islice(records, BATCH))
                interrupts.check()
                if not batch:
                    return
                self.unknown = len(batch)
                with interrupts.breakable(at_once=False):
                    verdicts = gate.add_all([one.document for one in batch if one.document is not None])
                self._record(gate, batch, iter(verdicts), passages)

    def to_json(self) -> JSON:
        """Return the counts, and the verdict on each document."""
        counts = {name: self.count(name) for name in ("accepted", "refused", "failed")}
        more: JSON = {"stopped": self.stopped, "unknown": self.unknown} if self.stopped else {}
        if self.stale:
            more["stale"] = len(self.stale)
        if self.read_back is not None:
            more |= self.read_back.to_json()
        return {"read": self.read, **counts, **more, "documents": self.verdicts}

    def _record(self, gate: Gate, batch: list[Record], verdicts: Iterator[Verdict], passages: bool) -> None:
        self.unknown = 0
        begin = len(self.verdicts)
        for record in batch:
            position: JSON = {"line": record.line, "source": record.source}
            if record.document is None:
                self.verdicts.append({"status": "failed", "reason": record.reason, **position})
            else:
                verdict = next(verdicts)
                self.stale |= verdict.stale
                self.verdicts.append({**verdict.to_json(), **position})
        if not passages:
            return
        # These requests may fail, so the verdicts are counted before.
        for record, told in zip(batch, self.verdicts[begin:], strict=True):
            if record.document is not None and "like" in told:
                told["passages"] = gate.passages(record.document, told["like"]["_id"])
