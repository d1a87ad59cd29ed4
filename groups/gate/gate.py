"""The gate in front of an index: documents in, verdicts out."""

import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from operator import itemgetter
from threading import Condition, RLock
from typing import Self

from shinglefold.contracts.engine import JSON, Document, Engine, GuardedWrites
from shinglefold.contracts.exclusive_writes import ExclusiveWrites
from shinglefold.errors import EngineError
from shinglefold.groups.gate.base_gate import BATCH, Face, canonicalizer_of, check_rules, let_in
from shinglefold.groups.gate.group_commit import Caller, Job
from shinglefold.groups.gate.housekeeping import Aside
from shinglefold.groups.gate.left import sweep
from shinglefold.groups.gate.opening import open_gate
from shinglefold.groups.gate.protocol.member import Verdict
from shinglefold.groups.gate.protocol.policy import Policy
from shinglefold.groups.gate.protocol.protocol import tidy
from shinglefold.groups.gate.stores.embedded import ExclusiveStore, watched
from shinglefold.groups.gate.stores.patient import Patient
from shinglefold.groups.gate.stores.server import ServerStore
from shinglefold.ingest import Pipeline
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import without_fingerprint
from shinglefold.options.validation import check_str
from shinglefold.rerank.explanation.stored_passages import matched_passages
from shinglefold.runtime.sans_io import run

#: Seconds to wait for callers that were there a moment ago, so that they are decided together.
_GATHERED = 0.002
#: Documents of one id that are looked through for what one has in common with another.
_ROUTINGS = 100


class Gate(Face):
    """Lets documents into an index, or not, by a policy; documents of the same moment included.

    Threads may share a gate: those that come while it decides are decided together. Any number of processes
    may have a gate of their own in front of the same index, with the same policy.

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
        check_rules(policy, pipeline)
        opened = open_gate(engine, index, policy or Policy(), seal, lease, canonicalizer_of(pipeline))
        super().__init__(opened, pipeline, seal)
        self.engine = engine
        self._newest = engine.newest if isinstance(engine, GuardedWrites) else None
        self._documents = opened.documents(engine, self._newest)
        self._store: ServerStore | ExclusiveStore
        if isinstance(engine, GuardedWrites):
            self._store = ServerStore(engine, opened.index, opened.intents, self._documents, opened.read_back)
        self._aside = Aside(engine, opened)
        self._waiting: list[Caller] = []
        #: What pauses, and until when.
        self._paused: list[tuple[float, Job]] = []
        #: Who asks the engine, as one thread at a time does: a caller, or whoever else has the turn.
        self._busy: object | None = None
        #: What the caller whose turn it is takes further; None while it gathers those who wait.
        self._in_hand: Job | None = None
        self._callers = 0
        # Entered itself, not by the condition, whose own code an interrupt may end before it is given back.
        self._lock = RLock()
        self._turn = Condition(self._lock)
        self._process = os.getpid()
        self._closed = False
        self._patient: Patient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # What failed before is to be told, and not that closing fails for the same reason.
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
        return let_in(verdict)

    def add_all(self, documents: Sequence[Document]) -> list[Verdict]:
        """Let documents in as far as the policy does, and return what became of each, in order.

        Raises:
            EngineError: the engine can't go on; what was let in until then stays.
        """
        made = self.made(documents)
        admitted = iter(self.admit([one for one in made if not isinstance(one, Verdict)]))
        return [one if isinstance(one, Verdict) else next(admitted) for one in made]

    def admit(self, documents: Sequence[Document]) -> list[Verdict]:
        """Decide about documents with fingerprints, as a pipeline makes them; ``_id`` is theirs.

        Raises:
            EngineError: the engine can't go on; what was let in until then stays.
        """
        if not documents:
            return []
        if os.getpid() != self._process:
            raise EngineError("a gate is of the process that opened it: open another after a fork")
        if self._closed:
            raise EngineError(f"this gate before {self.index!r} is closed: open another")
        own = Caller(documents)
        try:
            with self._lock:
                self._waiting.append(own)
                self._turn.notify_all()
            while (job := self._next(own)) is not None:
                self._work(job)
        except BaseException as error:
            self._abandon(own, error)
            raise
        return own.result()

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
        # Under other routings there may be others of the id: the one that it resembles shares most.
        return max(map(shared, self._routed(like)), key=_length, default=[])

    def _routed(self, id_: str) -> list[JSON]:
        """Return the documents of an id under routings that nobody tells, as only a search finds them."""
        self.refresh()
        body = {"query": {"ids": {"values": [id_]}}, "size": _ROUTINGS, **self.engine.can.unaltered}
        hits: list[JSON] = self.engine.search(self.index, body, self._newest)["hits"]["hits"]
        return hits

    def sweep(self) -> int:
        """Remove places that writers kept who died before they told anybody; return how many.

        They are in nobody's way but that of searches for all documents. On an embedded engine there are none.
        """
        with self._turn_taken():
            return len(sweep(self.engine, self.index, self.recipe.field).removed)

    def refresh(self) -> None:
        """Let searches see what was let in."""
        with self._turn_taken():
            self._refresh()

    def close(self) -> None:
        """Let searches see what was let in, and take the gate's notes away; again it does nothing."""
        with self._turn_taken():
            if self._closed:
                return
            self._refresh()
            if (shared := self._opened.shared) is not None:
                run(shared.depart(), self._store.answer)
            self._closed = True
            self._aside.close()
            if self._patient is not None:
                self._patient.give_back()

    def _refresh(self) -> None:
        self._aside.wait()
        if (shared := self._opened.shared) is not None:
            run(tidy(shared), self._store.answer)
        else:
            self.engine.refresh(self.index)

    def _next(self, own: Caller) -> Job | None:
        """Return what there is to do, once it is this thread's turn; None for a caller that is done."""
        with self._lock:
            while not own.done:
                if self._busy is not None:
                    self._turn.wait()
                    continue
                at, job = min(self._paused, key=itemgetter(0), default=(0.0, None))
                if job is not None and (own.job is not None or at <= time.monotonic()):
                    if (left := at - time.monotonic()) > 0:
                        self._turn.wait(left)
                        continue
                    # In this order, as an interrupt may come in between: see ``_put_back``.
                    self._in_hand = job
                    self._busy = own
                    self._paused.remove((at, job))
                    return job
                if own.job is None:
                    return self._gathered(own)
                self._turn.wait()
        return None

    def _gathered(self, own: Caller) -> Job:
        """Return a job of all who wait, a moment later, as those that were there are about to come again."""
        self._in_hand = None
        self._busy = own
        self._turn.wait_for(lambda: len(self._waiting) >= self._callers, _GATHERED)
        self._in_hand = job = self.job(list(self._waiting))
        self._waiting = []
        return job

    def _work(self, job: Job) -> None:
        """Take a job as far as it goes, and let others have their turn."""
        pause: int | None = None
        try:
            with self._alone():
                self._aside.look(self._store.answer)
                pause = run(job.until_pause(), self._store.answer)
        except BaseException as failure:
            if not isinstance(failure, Exception):
                # Of this thread alone: others are told that they may try again.
                job.fail(_interrupted())
                raise
            job.fail(failure)
        finally:
            with self._lock:
                job.tell()
                if pause is None:
                    # Interrupted where nobody was told of it; else all are done.
                    job.fail(_interrupted())
                else:
                    due = time.monotonic() + pause * random.uniform(0.5, 1.5) / 1000
                    self._paused.append((due, job))
                self._busy = None
                self._callers = len(job.callers) + len(self._waiting)
                self._turn.notify_all()

    def _abandon(self, own: Caller, error: BaseException) -> None:
        """Give back what is kept for a caller that was interrupted."""
        with self._lock:
            if self._busy is own:
                self._put_back()
            if own in self._waiting:
                self._waiting.remove(own)
            paused = [one for one in self._paused if one[1] is own.job]
            self._paused = [one for one in self._paused if one[1] is not own.job]
        for _, job in paused:
            with self._turn_taken(), suppress(type(error)):
                run(job.until_pause(error), self._store.answer)
            job.fail(_interrupted())

    def _put_back(self) -> None:
        """Leave to others what a caller had in hand that was interrupted before it gave its turn back.

        Nothing is decided twice: a job goes on where it was, or is at its end.
        """
        if (job := self._in_hand) is None:
            for caller in self._waiting:
                # Of a job that was not begun.
                caller.job = None
        else:
            self._waiting = [one for one in self._waiting if one.job is not job]
            if all(one is not job for _, one in self._paused):
                self._paused.append((0.0, job))
        self._busy = None
        self._turn.notify_all()

    @contextmanager
    def _turn_taken(self) -> Iterator[None]:
        own = object()
        try:
            try:
                with self._lock:
                    self._turn.wait_for(lambda: self._busy is None)
                    self._busy = own
                yield
            finally:
                self._give_turn(own)
        except BaseException:
            # Interrupted in giving it, too; again it does nothing.
            self._give_turn(own)
            raise

    def _give_turn(self, own: object) -> None:
        with self._lock:
            if self._busy is own:
                self._busy = None
                self._turn.notify_all()

    def _alone(self) -> AbstractContextManager[None]:
        """Return what keeps other processes from writing, where the engine wants that."""
        if not isinstance(self.engine, ExclusiveWrites):
            return nullcontext()
        self._store = ExclusiveStore(self.engine, self.index, self._documents)
        if self._patient is None:
            self._patient = Patient(self.engine, self.index, watched(self.recipe.field))
        return self._patient


def _interrupted() -> EngineError:
    return EngineError("whoever waited for this, too, was interrupted; try again")


def _length(passages: Sequence[JSON]) -> int:
    return sum(one["equal_tokens"] for one in passages)


__all__ = ["BATCH", "Gate"]
