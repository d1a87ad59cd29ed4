"""The gate in front of an index: documents in, verdicts out."""

import os
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import Condition
from typing import Self

from shinglefold.contracts import JSON, Document, Engine, ExclusiveWrites, GuardedWrites
from shinglefold.errors import EngineError
from shinglefold.groups.gate.face import BATCH, SECONDS, Face, batches, canonicalizer_of, let_in
from shinglefold.groups.gate.member import Member, Verdict
from shinglefold.groups.gate.opening import open_gate
from shinglefold.groups.gate.patient import Patient
from shinglefold.groups.gate.policy import Policy
from shinglefold.groups.gate.protocol import decide, tidy
from shinglefold.groups.gate.requests import Drop, Write
from shinglefold.groups.gate.stores import Documents, ExclusiveStore, ServerStore, now
from shinglefold.groups.lookup import Lookup
from shinglefold.ingest import Pipeline
from shinglefold.placeholders import PENDING
from shinglefold.rerank.explanation.stored_passages import matched_passages
from shinglefold.seal import Seal
from shinglefold.steps import drive
from shinglefold.stored import without_fingerprint

#: Seconds to wait for callers that were there a moment ago, so that they are decided together.
_GATHERED = 0.002


@dataclass(slots=True, eq=False)
class _Waiting:
    """Documents of one caller, and what becomes of them."""

    documents: Sequence[Document]
    verdicts: list[Verdict] = field(default_factory=list)
    error: BaseException | None = None
    done: bool = False


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
        opened = open_gate(engine, index, policy or Policy(), seal, lease, canonicalizer_of(pipeline))
        super().__init__(opened, pipeline, seal)
        self.engine = engine
        newest = engine.newest if isinstance(engine, GuardedWrites) else None
        lookup = Lookup(
            engine, opened.index, opened.likeness, first=opened.first, parameters=newest, possible=True
        )
        self._documents = Documents(lookup, opened.forms, opened.recipe.groups)
        self._store: ServerStore | ExclusiveStore
        if isinstance(engine, GuardedWrites):
            self._store = ServerStore(engine, opened.index, opened.intents, self._documents, opened.read_back)
        self._waiting: list[_Waiting] = []
        self._deciding = False
        self._callers = 0
        self._turn = Condition()
        self._process = os.getpid()
        self._refreshed = time.monotonic()
        self._refreshing: Future[None] | None = None
        self._refreshed_then: tuple[str, ...] = ()
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="shinglefold-gate")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
        own = _Waiting(documents)
        together: list[_Waiting] = []
        with self._turn:
            self._waiting.append(own)
            self._turn.notify_all()
            while self._deciding and not own.done:
                self._turn.wait()
            if not own.done:
                self._deciding = True
                self._turn.wait_for(lambda: len(self._waiting) >= self._callers, _GATHERED)
                together, self._waiting = self._waiting, []
        if together:
            try:
                self._decide_together(together)
            finally:
                with self._turn:
                    self._deciding = False
                    self._callers = len(together) + len(self._waiting)
                    self._turn.notify_all()
        if own.error is not None:
            raise own.error
        return own.verdicts

    def passages(self, document: Document, like: str) -> list[JSON]:
        """Return the passages that a document has in common with a stored one, in its own order.

        Args:
            document: as it was given.
            like: the id of the stored one, as an error or a verdict names it.

        Returns:
            for each passage ``equal_tokens``, and under ``shown`` (the stored one) and ``member`` the field,
            the place and the text; [] where the stored one is gone.
        """
        stored = self.engine.get(self.index, like)
        if stored is None:
            return []
        (outcome,) = self.pipeline.run_block([without_fingerprint(document, self.recipe.field)])
        given = document if outcome.document is None else outcome.document
        tokens = self.pipeline.tools.canonicalizer.tokens
        return matched_passages(stored["_source"], given, self.recipe.fields, tokens)

    def sweep(self) -> int:
        """Remove places that writers kept who died before they told anybody; return how many.

        They are in nobody's way but that of searches for all documents. On an embedded engine there are none.
        """
        shared = self._opened.shared
        if shared is None:
            return 0
        store = self._store
        assert isinstance(store, ServerStore)
        self.engine.refresh(self.index)
        clause = {"range": {f"{self.recipe.field}.{PENDING}": {"lt": now()}}}
        found = tuple(hit["_id"] for hit in self._documents.lookup.group([clause], 1000))
        held = [one for one in store.engine.read(self.index, found) if one is not None]
        dead = [one for one in held if self._opened.forms.pending(one.source) is not None]
        written = store.answer(Write(tuple(Drop("documents", one.id, one.guard) for one in dead)))
        return sum(one.status == 200 for one in written)

    def refresh(self) -> None:
        """Let searches see what was let in."""
        if self._refreshing is not None:
            self._refreshing.exception()
            self._settle_refresh()
        if (shared := self._opened.shared) is not None:
            drive(tidy(shared), self._store.answer)

    def close(self) -> None:
        """Let searches see what was let in, and take the gate's notes away; again it does nothing."""
        self._aside.shutdown()
        self.refresh()
        if (shared := self._opened.shared) is not None:
            drive(shared.depart(), self._store.answer)

    def _decide_together(self, together: Sequence[_Waiting]) -> None:
        try:
            documents = [document for one in together for document in one.documents]
            verdicts = iter([verdict for batch in batches(documents) for verdict in self._batch(batch)])
            for one in together:
                one.verdicts = [next(verdicts) for _ in one.documents]
        except BaseException as error:
            for one in together:
                one.error = error
            if not isinstance(error, Exception):
                raise
        finally:
            for one in together:
                one.done = True

    def _batch(self, documents: Sequence[Document]) -> list[Verdict]:
        found = [self.member(document) for document in documents]
        members = [one for one in found if isinstance(one, Member)]
        with self._alone():
            self._refresh_aside()
            decided = iter(drive(decide(members, self._opened.terms), self._store.answer) if members else ())
        return [self.told(next(decided)) if isinstance(one, Member) else one for one in found]

    def _refresh_aside(self) -> None:
        """Have searches see what was let in about once a second, while decisions go on."""
        shared = self._opened.shared
        if shared is None:
            return
        if self._refreshing is not None and self._refreshing.done():
            self._settle_refresh()
            drive(shared.clean(self._opened.forms), self._store.answer)
        if self._refreshing is None and time.monotonic() - self._refreshed > SECONDS:
            self._refreshed_then = shared.settled()
            if self._refreshed_then:
                self._refreshing = self._aside.submit(self.engine.refresh, self.index)

    def _settle_refresh(self) -> None:
        refreshing, self._refreshing = self._refreshing, None
        self._refreshed = time.monotonic()
        assert refreshing is not None
        refreshing.result()
        if (shared := self._opened.shared) is not None:
            shared.seen(self._refreshed_then)

    def _alone(self) -> AbstractContextManager[None]:
        """Return what keeps other processes from writing, where the engine wants that."""
        if not isinstance(self.engine, ExclusiveWrites):
            return nullcontext()
        self._store = ExclusiveStore(self.engine, self.index, self._documents)
        return Patient(self.engine, self.index)


__all__ = ["BATCH", "Gate"]
