"""The base of both gates: turns documents into members, and describes verdicts."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import Document
from shinglefold.documents import get, random_id, too_long
from shinglefold.errors import InputError, Refused, ShinglefoldError
from shinglefold.grouping.gate.group_commit import DecisionJob, GroupCommit, WaitingCaller
from shinglefold.grouping.gate.housekeeping import Housekeeping
from shinglefold.grouping.gate.opening import EngineCalls, GateSetup, match_keys_of
from shinglefold.grouping.gate.protocol.member import (
    Member,
    Verdict,
    document_key,
    id_and_routing,
    numbers_of,
)
from shinglefold.grouping.gate.stores import ExclusiveStore, ServerStore
from shinglefold.grouping.rules import Policy
from shinglefold.ingest import Pipeline
from shinglefold.ingest.pipeline.pipeline import Outcome
from shinglefold.ingest.processors.texts import joined_text, without_markup
from shinglefold.ingest.writing.batch import ReadBack
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import overwrite_refusal, without_fingerprint
from shinglefold.model.values import Fingerprint
from shinglefold.options.validation import check_type, expected

#: The most documents decided at once.
BATCH = 300
#: The most characters of the documents in one request; a character may take four bytes.
_CHARACTERS = 4_000_000
_LONGEST_ID = 512
#: Fields that are not part of the source of a document.
_METADATA = ("_id", "_index", "_routing", "_op_type")


class BaseGate:
    """A gate for a prepared index; a subclass decides in which event loop ``_group_commit`` runs.

    Args:
        calls: how to call ``engine``.
    """

    def __init__(
        self,
        engine: Any,  # noqa: ANN401 - blocking or awaited
        setup: GateSetup,
        pipeline: Pipeline | None,
        seal: Seal | None,
        calls: EngineCalls,
    ) -> None:
        if pipeline is not None:
            remedy = "Open the index again, or leave the pipeline out: the gate takes the one of the index."
            setup.recipe.check(pipeline.recipe(setup.recipe.field), setup.index, remedy)
        self._setup, self._pipeline, self._seal = setup, pipeline, seal
        self.policy, self.index, self.recipe = setup.context.policy, setup.index, setup.recipe
        documents = setup.documents(engine, engine.can.newest)
        store: ServerStore | ExclusiveStore
        if setup.intents:
            store = ServerStore(engine, calls, setup.index, setup.intents, documents, setup.read_back)
        else:
            store = ExclusiveStore(engine, setup.index, documents)
        #: Counts documents that an ingest pipeline of the server stored otherwise than they were signed, and
        #: those that could not be read to be compared.
        self.read_back = ReadBack(engine, setup.index, setup.recipe, pipelines=setup.pipelines)
        housekeeping = Housekeeping(engine, setup, calls, store.answer, self.read_back)
        self._group_commit = GroupCommit(setup.index, self._job, store, housekeeping)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline that makes fingerprints."""
        if self._pipeline is None:
            self._pipeline = Pipeline.from_json(self.recipe.pipeline, self.recipe.scheme, seal=self._seal)
        return self._pipeline

    def _fingerprinted(self, documents: Sequence[Document]) -> list[Document | Verdict]:
        """Return documents with fingerprints and ids, or verdicts on those that the pipeline drops."""
        _check_documents(documents)
        field = self.recipe.field
        reasons = [too_long(document) or overwrite_refusal(document, field) for document in documents]
        valid = [
            without_fingerprint(document, field)
            for document, reason in zip(documents, reasons, strict=True)
            if not reason
        ]
        outcomes = (
            outcome
            for begin in range(0, len(valid), BATCH)
            for outcome in self.pipeline.run_block(valid[begin : begin + BATCH])
        )
        return [
            _processed(document, None if reason else next(outcomes), reason)
            for document, reason in zip(documents, reasons, strict=True)
        ]

    async def _add_all(self, documents: Sequence[Document]) -> list[Verdict]:
        """Fingerprint documents in the thread of the event loop, and decide about them.

        The embedded engine gets the words of texts from the thread that fingerprinted them.
        """
        _check_documents(documents)
        processed = self._fingerprinted(documents[:BATCH])
        for begin in range(BATCH, len(documents), BATCH):
            # Let other callers run between two batches.
            await asyncio.sleep(0)
            processed += self._fingerprinted(documents[begin : begin + BATCH])
        return await self._decide(processed)

    async def _decide(self, processed: Sequence[Document | Verdict]) -> list[Verdict]:
        """Decide about fingerprinted documents; return all verdicts in order."""
        documents = [one for one in processed if not isinstance(one, Verdict)]
        decided = iter(await self._group_commit.admit(documents))
        return [one if isinstance(one, Verdict) else next(decided) for one in processed]

    def _member(self, document: Document) -> Member | Verdict:
        """Return the member for a document, or the verdict on one that is invalid or does not fit."""
        id_, model = str(document["_id"]), self._setup.model
        try:
            # Servers would refuse the whole request.
            if self._setup.intents and (size := len(id_.encode("utf-8", "surrogatepass"))) > _LONGEST_ID:
                raise InputError(f"its id has {size:,} bytes; the limit is {_LONGEST_ID}")
            routing = self._routing(document.get("_routing"))
            query = model.query_document(document)
            _check_scheme(query.print, self.recipe.scheme.id)
            fields = [name for name in self.recipe.fields if get(document, name) is not None]
            text = joined_text(without_markup(document, fields), fields, True) if fields else ""
        except ShinglefoldError as error:
            return Verdict("failed", id_, reason=str(error))
        if why := self.policy.misfit(len(text or "")):
            return Verdict("refused", id_, reason=why)
        source = {name: value for name, value in document.items() if name not in _METADATA}
        scope = [query.values.get(one.field, ()) for one in model.scopes]
        numbers = numbers_of(query.print, scope, self.index, id_, routing)
        create = document.get("_op_type") == "create"
        return Member(document_key(id_, routing), source, query, numbers, match_keys_of(query), create)

    def _routing(self, given: object) -> str | None:
        """Return the routing of a document; None if it has none.

        Raises:
            InputError: it is invalid, or the engine has no routing.
        """
        if given is None:
            return None
        if isinstance(given, bool) or not isinstance(given, str | int) or given == "":
            raise InputError(f"its _routing is {given!r}; give a text that is not empty, or leave it out")
        if not self._setup.intents:
            raise InputError("its index is in an engine that has no _routing; leave it out")
        return str(given)

    def _job(self, callers: Sequence[WaitingCaller]) -> DecisionJob:
        """Return a job that decides about the documents of callers together."""
        return DecisionJob(
            callers,
            self._setup.context,
            batches=batches,
            member=self._member,
            describe=self._describe,
            read_back=self.read_back,
            shared=self._setup.shared is not None,
        )

    def _describe(self, verdict: Verdict) -> Verdict:
        """Return a verdict with its reason in words, and with ids instead of document keys."""
        like = verdict.like
        if like is not None:
            like = replace(like, id=id_and_routing(like.id)[0])
        verdict = replace(verdict, id=id_and_routing(verdict.id)[0], like=like)
        if verdict.status != "refused" or like is None:
            return verdict
        measured = f"{self.policy.measure} {like.likeness:.2f}"
        if like.similarity is not None:
            measured += f" by estimate, edit similarity {like.similarity:.2f} by text"
        why = f"it resembles {like.id!r} of {self.index!r} ({measured})"
        if verdict.full:
            why += f", whose group has {self.policy.most:,} documents already"
        return replace(verdict, reason=why)


def check_gate_options(policy: object, pipeline: object) -> None:
    """Raise ``ConfigError`` if the policy or the pipeline is an object of another type."""
    check_type("policy", policy, Policy, 'a Policy, such as Policy("refuse"), or None', optional=True)
    check_type("pipeline", pipeline, Pipeline, "Pipeline.from_json(…), or None", optional=True)


def _check_documents(documents: object) -> None:
    if not isinstance(documents, list | tuple):
        raise expected("documents", "a list of documents, each an object of its fields", documents)
    for document in documents:
        if not isinstance(document, Mapping):
            raise expected("document", "an object of its fields", document)


def canonicalizer_of(pipeline: Pipeline | None) -> Canonicalizer | None:
    """Return the canonicalizer of a pipeline, so that the gate need not make another."""
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
    """Return the id of a document, or a random one if it has none."""
    given = document.get("_id", document.get("id"))
    if given is not None and given != "":
        return str(given)
    return random_id()


def batches(documents: Sequence[Document]) -> list[list[Document]]:
    """Split documents into batches that fit into a request and have no id twice."""
    split: list[list[Document]] = []
    seen: set[str] = set()
    room = 0
    for document in documents:
        id_, size = str(document["_id"]), _characters(document)
        if not split or len(seen) == BATCH or id_ in seen or size > room:
            split.append([])
            seen, room = set(), _CHARACTERS
        split[-1].append(document)
        seen.add(id_)
        room -= size
    return split


def _characters(value: object) -> int:
    """Return about how many characters a value has as JSON."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_characters, value.values()))
    if not isinstance(value, list | tuple):
        return 8
    return sum(map(len if set(map(type, value)) == {str} else _characters, value))


def _check_scheme(fingerprint: Fingerprint, scheme: str) -> None:
    """Raise ``InputError`` if the fingerprint has another scheme than the index."""
    if fingerprint.scheme != scheme:
        raise InputError(
            f"its fingerprint is of the scheme {fingerprint.scheme}, and the index was made with {scheme}"
        )


def _processed(document: Document, outcome: Outcome | None, reason: str) -> Document | Verdict:
    """Return the processed document with an id, or the verdict on one that is invalid or was dropped."""
    if outcome is not None and outcome.document is not None:
        return {**outcome.document, "_id": document_id(outcome.document)}
    failure = None if outcome is None else outcome.failure
    why = reason or ("the pipeline dropped it" if failure is None else str(failure))
    return Verdict("failed", document_id(document), reason=why)
