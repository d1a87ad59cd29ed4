"""The gate in front of an index: documents in, verdicts out."""

import base64
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import Condition
from typing import Any, Self

from shinglefold.contracts import JSON, Document, Engine, ExclusiveWrites, GuardedWrites
from shinglefold.errors import ConfigError, Refused, ShinglefoldError
from shinglefold.groups.gate.forms import LEADER, PENDING, Forms
from shinglefold.groups.gate.intents import Intents, ensure_intents
from shinglefold.groups.gate.mapped import concrete_index, nested, scope_definition
from shinglefold.groups.gate.member import Member, Verdict
from shinglefold.groups.gate.patient import Patient
from shinglefold.groups.gate.policy import Policy
from shinglefold.groups.gate.protocol import Terms, decide, tidy
from shinglefold.groups.gate.requests import Drop, Write
from shinglefold.groups.gate.stores import Documents, ExclusiveStore, ServerStore, now
from shinglefold.groups.likeness import Likeness, Rules
from shinglefold.groups.lookup import Lookup
from shinglefold.groups.numbers import numbers_of
from shinglefold.ingest import Pipeline
from shinglefold.ingest.paths import get
from shinglefold.ingest.processors.texts import gather
from shinglefold.recipe import Recipe
from shinglefold.rerank.stored_passages import matched_passages
from shinglefold.seal import Seal, check_sealed
from shinglefold.steps import drive
from shinglefold.stored import without_fingerprint

#: Documents decided at once.
_BATCH = 300
#: Decided intents kept, and seconds they are kept, before searches are made to see their documents.
_KEPT, _SECONDS = 500, 1.0


@dataclass(frozen=True, slots=True)
class _Judge:
    likeness_of: Likeness
    intent: Callable[[Member], JSON]

    def likeness(self, member: Member, source: Any) -> float | None:  # noqa: ANN401 - JSON
        found = self.likeness_of.to_hits([member.print], [{"_source": source}])
        return found[0].likeness if found else None

    def pairs(self, members: Sequence[Member]) -> list[tuple[int, int]]:
        found = self.likeness_of.among([member.print for member in members])
        return [(pair.one, pair.other) for pair in found]


@dataclass(slots=True, eq=False)
class _Waiting:
    """Documents of one caller, and what becomes of them."""

    documents: Sequence[Document]
    verdicts: list[Verdict] = field(default_factory=list)
    error: BaseException | None = None
    done: bool = False


class Gate:
    """Lets documents into an index, or not, by a policy; documents of the same moment included.

    Threads may share a gate: those that come while it decides are decided together. Any number of processes
    may have a gate of their own in front of the same index, with the same policy.

    Args:
        engine: a server, or an embedded engine, which one process at a time may write to: others wait.
        index: was set up for fingerprints; for ``tag`` and ``cap`` with groups.
        pipeline: makes fingerprints; by default that of the index.
        seal: of the key that the index is sealed with.

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
        self.engine, self.policy = engine, policy or Policy()
        self.index = concrete_index(engine, index)
        mappings = engine.mappings(self.index)
        self.recipe = Recipe.of(mappings, index)
        check_sealed(self.recipe.sealed, seal, f"index {index!r}")
        self._check_groups(index)
        self._pipeline, self._seal = pipeline, seal
        rules = Rules(
            self.policy.min_resemblance,
            self.policy.min_length_ratio,
            self.policy.measure,
            self.policy.scope,
            self.policy.across_languages,
        )
        self._likeness = Likeness(self.recipe.scheme, self.recipe.field, rules, seal)
        self._forms = Forms(self.recipe.field)
        self._store, intent = self._opened(mappings)
        self._terms = Terms(
            self.policy,
            _Judge(self._likeness, intent),
            self._forms,
            _attempt,
            groups=self.recipe.groups,
            lease=round(lease * 1000),
        )
        self._waiting: list[_Waiting] = []
        self._deciding = False
        self._turn = Condition()
        self._tidied = time.monotonic()

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
        if verdict.status != "accepted":
            like = verdict.like
            if like is None:
                raise Refused(verdict.reason)
            raise Refused(verdict.reason, like.id, like.likeness, verdict.group)
        return verdict

    def add_all(self, documents: Sequence[Document]) -> list[Verdict]:
        """Let documents in as far as the policy does, and return what became of each, in order.

        Raises:
            EngineError: the engine can't go on; what was let in until then stays.
        """
        pipeline = self._made()
        kept = [without_fingerprint(one, self.recipe.field) for one in documents]
        outcomes = [
            outcome
            for begin in range(0, len(kept), _BATCH)
            for outcome in pipeline.run_block(kept[begin : begin + _BATCH])
        ]
        given = [
            Verdict("failed", document_id(one), reason=_failed(outcome.failure))
            if outcome.document is None
            else {**outcome.document, "_id": document_id(outcome.document)}
            for one, outcome in zip(documents, outcomes, strict=True)
        ]
        admitted = iter(self.admit([one for one in given if not isinstance(one, Verdict)]))
        return [one if isinstance(one, Verdict) else next(admitted) for one in given]

    def admit(self, documents: Sequence[Document]) -> list[Verdict]:
        """Decide about documents with fingerprints, as a pipeline makes them; ``_id`` is theirs.

        Raises:
            EngineError: the engine can't go on; what was let in until then stays.
        """
        if not documents:
            return []
        own = _Waiting(documents)
        together: list[_Waiting] = []
        with self._turn:
            self._waiting.append(own)
            while self._deciding and not own.done:
                self._turn.wait()
            if not own.done:
                self._deciding = True
                together, self._waiting = self._waiting, []
        if together:
            try:
                self._decide_together(together)
            finally:
                with self._turn:
                    self._deciding = False
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
        (outcome,) = self._made().run_block([without_fingerprint(document, self.recipe.field)])
        given = document if outcome.document is None else outcome.document
        tokens = self._made().tools.canonicalizer.tokens
        return matched_passages(stored["_source"], given, self.recipe.fields, tokens)

    def sweep(self) -> int:
        """Remove places that writers kept who died before they told anybody; return how many.

        They are in nobody's way but that of searches for all documents. On an embedded engine there are none.
        """
        store = self._store
        if not isinstance(store, ServerStore):
            return 0
        self.engine.refresh(self.index)
        clause = {"range": {f"{self.recipe.field}.{PENDING}": {"lt": now()}}}
        found = tuple(hit["_id"] for hit in store.documents.lookup.group([clause], 1000))
        held = [one for one in store.guarded.read(self.index, found) if one is not None]
        dead = [one for one in held if self._forms.pending(one.source) is not None]
        written = store.answer(Write(tuple(Drop("documents", one.id, one.guard) for one in dead)))
        return sum(one.status == 200 for one in written)

    def close(self) -> None:
        """Let searches see what was let in; a second call does nothing."""
        if self._terms.done:
            self._tidy()

    def _decide_together(self, together: Sequence[_Waiting]) -> None:
        try:
            documents = [document for one in together for document in one.documents]
            verdicts = iter(self._decided(documents))
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

    def _decided(self, documents: Sequence[Document]) -> list[Verdict]:
        verdicts: list[Verdict] = []
        while len(verdicts) < len(documents):
            begin = len(verdicts)
            batch = _different(documents[begin : begin + _BATCH])
            verdicts += self._batch(batch)
        return verdicts

    def _batch(self, documents: Sequence[Document]) -> list[Verdict]:
        found = [self._member(document) for document in documents]
        members = [one for one in found if isinstance(one, Member)]
        with self._alone():
            decided = iter(drive(decide(members, self._terms), self._store.answer) if members else ())
            if len(self._terms.done) > _KEPT or time.monotonic() - self._tidied > _SECONDS:
                self._tidy()
        return [self._told(next(decided)) if isinstance(one, Member) else one for one in found]

    def _tidy(self) -> None:
        if isinstance(self._store, ServerStore):
            drive(tidy(self._terms), self._store.answer)
        self._terms.done.clear()
        self._tidied = time.monotonic()

    def _alone(self) -> AbstractContextManager[None]:
        """Return what keeps other processes from writing, where the engine wants that."""
        if isinstance(self._store, ServerStore):
            return nullcontext()
        assert isinstance(self.engine, ExclusiveWrites)
        self._store = ExclusiveStore(self.engine, self.index, self._store.documents)
        return Patient(self.engine, self.index)

    def _member(self, document: Document) -> Member | Verdict:
        id_ = str(document["_id"])
        try:
            asked = self._likeness.asked(document)
            fields = [name for name in self.recipe.fields if get(document, name) is not None]
            text = gather(document, fields, True) if fields else ""
        except ShinglefoldError as error:
            return Verdict("failed", id_, reason=str(error))
        if why := self.policy.misfit(len(text or "")):
            return Verdict("refused", id_, reason=why)
        source = {name: value for name, value in document.items() if name not in ("_id", "_index")}
        scope = [asked.values.get(name, ()) for name in self.policy.scope]
        return Member(id_, source, asked, numbers_of(asked.print, scope, self.index, id_))

    def _told(self, verdict: Verdict) -> Verdict:
        """Return a verdict with its reason in words."""
        like = verdict.like
        if verdict.status != "refused" or like is None:
            return verdict
        why = f"it resembles {like.id!r} of {self.index!r} ({self.policy.measure} {like.likeness:.2f})"
        if verdict.full:
            why += f", whose group has {self.policy.most:,} documents already"
        return Verdict("refused", verdict.id, verdict.group, like=like, full=verdict.full, reason=why)

    def _made(self) -> Pipeline:
        if self._pipeline is None:
            if self.recipe.pipeline is None:
                raise ConfigError(f"index {self.index!r} notes no pipeline: give the gate one")
            self._pipeline = Pipeline.from_json(self.recipe.pipeline, self.recipe.scheme, seal=self._seal)
        return self._pipeline

    def _check_groups(self, index: str) -> None:
        if self.policy.action != "refuse" and not self.recipe.groups:
            raise ConfigError(
                f"index {index!r} numbers no groups, which the policy {self.policy.action!r} needs: "
                f"shinglefold setup {index} --groups, then shinglefold regroup {index}"
            )

    def _opened(self, mappings: JSON) -> tuple[ServerStore | ExclusiveStore, Callable[[Member], JSON]]:
        """Return the store, and what makes the document of an intent."""
        field, groups = self.recipe.field, self.recipe.groups
        first = f"{field}.{LEADER}" if groups else ""
        if isinstance(self.engine, GuardedWrites):
            newest = self.engine.newest
            lookup = Lookup(self.engine, self.index, self._likeness, first=first, parameters=newest)
            scopes = {
                scope.field: scope_definition(mappings, scope.field, self.index)
                for scope in self._likeness.scopes
                if not scope.field.startswith(f"{field}.")
            }
            self.engine.put_mappings(self.index, nested(field, {PENDING: {"type": "long"}}))
            name = ensure_intents(self.engine, self.index, self.recipe, scopes)
            intents = Intents.of(self.engine, name, self._likeness, newest)
            documents = Documents(lookup, self._forms, groups)
            return ServerStore(self.engine, self.engine, self.index, documents, intents), intents.source
        if not isinstance(self.engine, ExclusiveWrites):
            raise ConfigError("this engine has neither guarded nor exclusive writes, which a gate needs")
        lookup = Lookup(self.engine, self.index, self._likeness, first=first)
        return ExclusiveStore(self.engine, self.index, Documents(lookup, self._forms, groups)), _plain_intent


def _plain_intent(member: Member) -> JSON:
    assert member.guard is not None
    return {
        "document": member.id,
        "guard": (member.guard.seq_no, member.guard.primary_term),
        "order": member.order,
        "until": member.until,
        "claim": member.claim,
    }


def _attempt() -> str:
    return f"{time.time_ns():020}-{uuid.uuid4().hex[:12]}"


def document_id(document: Mapping[str, Any]) -> str:
    """Return the id of a document, a new one where it has none."""
    given = document.get("_id", document.get("id"))
    if given is not None and given != "":
        return str(given)
    return base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22].decode()


def _failed(failure: object) -> str:
    return "the pipeline dropped it" if failure is None else str(failure)


def _different(documents: Sequence[Document]) -> list[Document]:
    """Return documents up to the first whose id came before."""
    seen: set[str] = set()
    for place, document in enumerate(documents):
        if str(document["_id"]) in seen:
            return list(documents[:place])
        seen.add(str(document["_id"]))
    return list(documents)
