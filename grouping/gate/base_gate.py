"""The base of both gates: makes members of documents, and gives verdicts their reasons in words."""

import asyncio
import base64
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import Document
from shinglefold.errors import InputError, Refused, SchemeMismatch, ShinglefoldError
from shinglefold.grouping.gate.embedded_store import ExclusiveStore
from shinglefold.grouping.gate.group_commit import DecisionJob, GroupCommit, WaitingCaller
from shinglefold.grouping.gate.housekeeping import Housekeeping
from shinglefold.grouping.gate.opening import GateSetup, match_keys_of
from shinglefold.grouping.gate.protocol.member import Member, Verdict
from shinglefold.grouping.gate.protocol.placeholders import document_key, id_and_routing
from shinglefold.grouping.gate.server_store import EngineCalls, ServerStore
from shinglefold.grouping.numbering import numbers_of
from shinglefold.grouping.rules import Policy
from shinglefold.ingest import Pipeline
from shinglefold.ingest.batching import too_long
from shinglefold.ingest.field_paths import get
from shinglefold.ingest.index_mapping import overwrite_refusal
from shinglefold.ingest.pipeline.pipeline import Outcome
from shinglefold.ingest.processors.texts import joined_text
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import without_fingerprint
from shinglefold.model.values import Fingerprint
from shinglefold.options.validation import check_type, expected

#: Documents decided at once.
BATCH = 300
#: Characters of the documents that are sent in one request; of each some are four bytes.
CHARACTERS = 4_000_000
_LONGEST_ID = 512
#: Fields beside the source of a document.
_BESIDE = ("_id", "_index", "_routing")


class BaseGate:
    """A gate before an opened index; a subclass says in which event loop ``_group_commit`` runs.

    Args:
        calls: how ``engine`` is called.
    """

    def __init__(
        self,
        engine: Any,  # noqa: ANN401 - blocking or awaited
        opened: GateSetup,
        pipeline: Pipeline | None,
        seal: Seal | None,
        calls: EngineCalls,
    ) -> None:
        if pipeline is not None and pipeline.scheme.id != opened.recipe.scheme.id:
            # Its fingerprints would match nothing that is stored.
            raise SchemeMismatch(
                opened.recipe.scheme.id,
                pipeline.scheme.id,
                f"index {opened.index!r}",
                "Leave the pipeline out, and the gate takes the one that the index notes.",
            )
        self._opened, self._pipeline, self._seal = opened, pipeline, seal
        self.policy, self.index, self.recipe = opened.context.policy, opened.index, opened.recipe
        self._documents = opened.documents(engine, engine.can.newest)
        store: ServerStore | ExclusiveStore
        if opened.intents:
            store = ServerStore(
                engine, calls, opened.index, opened.intents, self._documents, opened.read_back
            )
        else:
            store = ExclusiveStore(engine, opened.index, self._documents)
        housekeeping = Housekeeping(engine, opened, calls, store.answer)
        self._group_commit = GroupCommit(opened.index, self._job, store, housekeeping)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline that makes fingerprints."""
        if self._pipeline is None:
            self._pipeline = Pipeline.from_json(self.recipe.pipeline, self.recipe.scheme, seal=self._seal)
        return self._pipeline

    def made(self, documents: Sequence[Document]) -> list[Document | Verdict]:
        """Return documents with fingerprints and ids, or verdicts on those that the pipeline drops."""
        _check_documents(documents)
        field = self.recipe.field
        reasons = [too_long(one) or overwrite_refusal(one, field) for one in documents]
        kept = [
            without_fingerprint(one, field)
            for one, reason in zip(documents, reasons, strict=True)
            if not reason
        ]
        outcomes = (
            outcome
            for begin in range(0, len(kept), BATCH)
            for outcome in self.pipeline.run_block(kept[begin : begin + BATCH])
        )
        return [
            _made(one, None if reason else next(outcomes), reason)
            for one, reason in zip(documents, reasons, strict=True)
        ]

    async def _add_all(self, documents: Sequence[Document]) -> list[Verdict]:
        """Decide about documents as they are given, fingerprinted in the thread of the event loop.

        The embedded engine takes the words of texts from the thread that fingerprinted them.
        """
        _check_documents(documents)
        made = self.made(documents[:BATCH])
        for begin in range(BATCH, len(documents), BATCH):
            # Let other callers go on in between.
            await asyncio.sleep(0)
            made += self.made(documents[begin : begin + BATCH])
        return await self._decide(made)

    async def _decide(self, made: Sequence[Document | Verdict]) -> list[Verdict]:
        """Return the verdicts on documents that were fingerprinted, in order."""
        admitted = iter(await self._group_commit.admit([one for one in made if not isinstance(one, Verdict)]))
        return [one if isinstance(one, Verdict) else next(admitted) for one in made]

    def member(self, document: Document) -> Member | Verdict:
        """Return the member for a document, or the verdict on one that does not fit."""
        id_ = str(document["_id"])
        try:
            if self._opened.intents:
                _check_id(id_)
            routing = self._routing(document.get("_routing"))
            asked = self._opened.likeness.asked(document)
            _check_scheme(asked.print, self.recipe.scheme.id)
            fields = [name for name in self.recipe.fields if get(document, name) is not None]
            text = joined_text(document, fields, True) if fields else ""
        except ShinglefoldError as error:
            return Verdict("failed", id_, reason=str(error))
        if why := self.policy.misfit(len(text or "")):
            return Verdict("refused", id_, reason=why)
        source = {name: value for name, value in document.items() if name not in _BESIDE}
        scope = [asked.values.get(one.field, ()) for one in self._opened.likeness.scopes]
        numbers = numbers_of(asked.print, scope, self.index, id_, routing)
        return Member(document_key(id_, routing), source, asked, numbers, match_keys_of(asked))

    def _routing(self, given: object) -> str | None:
        """Return the routing of a document; None where it has none.

        Raises:
            InputError: it is not a routing, or the engine has no routing.
        """
        if given is None:
            return None
        if isinstance(given, bool) or not isinstance(given, str | int) or given == "":
            raise InputError(f"its _routing is {given!r}; give a text that is not empty, or leave it out")
        if not self._opened.intents:
            raise InputError("its index is in an engine that has no _routing; leave it out")
        return str(given)

    def _job(self, callers: Sequence[WaitingCaller]) -> DecisionJob:
        """Return a job that decides about the documents of callers together."""
        shared = self._opened.shared is not None
        return DecisionJob(
            callers, self._opened.context, cut=batches, member=self.member, told=self.describe, shared=shared
        )

    def describe(self, verdict: Verdict) -> Verdict:
        """Return a verdict with its reason in words and with plain ids."""
        like = verdict.like
        if like is not None:
            like = replace(like, id=id_and_routing(like.id)[0])
        verdict = replace(verdict, id=id_and_routing(verdict.id)[0], like=like)
        if verdict.status != "refused" or like is None:
            return verdict
        told = f"{self.policy.measure} {like.likeness:.2f}"
        if like.similarity is not None:
            told += f" by estimate, edit similarity {like.similarity:.2f} by text"
        why = f"it resembles {like.id!r} of {self.index!r} ({told})"
        if verdict.full:
            why += f", whose group has {self.policy.most:,} documents already"
        return replace(verdict, reason=why)


def check_gate_options(policy: object, pipeline: object) -> None:
    """Raise ``ConfigError`` where the policy or the pipeline of a gate is something else."""
    check_type("policy", policy, Policy, 'a Policy, such as Policy("refuse"), or None', optional=True)
    check_type("pipeline", pipeline, Pipeline, "Pipeline.from_json(…), or None", optional=True)


def _check_documents(documents: object) -> None:
    if not isinstance(documents, list | tuple):
        raise expected("documents", "a list of documents, each an object of its fields", documents)
    for one in documents:
        if not isinstance(one, Mapping):
            raise expected("document", "an object of its fields", one)


def canonicalizer_of(pipeline: Pipeline | None) -> Canonicalizer | None:
    """Return the canonicalizer of a pipeline, to be shared."""
    return None if pipeline is None else pipeline.tools.canonicalizer


def accepted_or_raise(verdict: Verdict) -> Verdict:
    """Return the verdict on an accepted document.

    Raises:
        Refused: it was not accepted; the error says why.
    """
    if verdict.status == "accepted":
        return verdict
    like = verdict.like
    if like is None:
        raise Refused(verdict.reason)
    raise Refused(verdict.reason, like.id, like.likeness, verdict.group)


def document_id(document: Mapping[str, Any]) -> str:
    """Return the id of a document, a new one where it has none."""
    given = document.get("_id", document.get("id"))
    if given is not None and given != "":
        return str(given)
    return base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22].decode()


def batches(documents: Sequence[Document]) -> list[list[Document]]:
    """Return documents in batches that fit a request and in which no id comes twice."""
    cut: list[list[Document]] = []
    seen: set[str] = set()
    room = 0
    for document in documents:
        id_, size = str(document["_id"]), _characters(document)
        if not cut or len(seen) == BATCH or id_ in seen or size > room:
            cut.append([])
            seen, room = set(), CHARACTERS
        cut[-1].append(document)
        seen.add(id_)
        room -= size
    return cut


def _characters(value: object) -> int:
    """Return about how long a value is as JSON."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_characters, value.values()))
    if not isinstance(value, list | tuple):
        return 8
    return sum(map(len if set(map(type, value)) == {str} else _characters, value))


def _check_scheme(made: Fingerprint, scheme: str) -> None:
    """Refuse a fingerprint of another scheme than the index has.

    Raises:
        InputError: it is of another scheme.
    """
    if made.scheme != scheme:
        raise InputError(
            f"its fingerprint is of the scheme {made.scheme}, and the index was made with {scheme}"
        )


def _check_id(id_: str) -> None:
    """Refuse an id that is too long for servers, which would refuse the whole request.

    Raises:
        InputError: it is too long.
    """
    if (size := len(id_.encode("utf-8", "surrogatepass"))) > _LONGEST_ID:
        raise InputError(f"its id has {size:,} bytes; the limit is {_LONGEST_ID}")


def _made(document: Document, outcome: Outcome | None, reason: str) -> Document | Verdict:
    """Return a document as the pipeline made it, or the verdict on one that it dropped or that is refused."""
    if outcome is None or outcome.document is None:
        why = reason or _failed(None if outcome is None else outcome.failure)
        return Verdict("failed", document_id(document), reason=why)
    return {**outcome.document, "_id": document_id(outcome.document)}


def _failed(failure: object) -> str:
    return "the pipeline dropped it" if failure is None else str(failure)
