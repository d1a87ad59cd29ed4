"""The gate of an index: documents in, verdicts out."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any, Self

from shinglefold.contracts.engine import JSON, Document, Engine
from shinglefold.documents import get, random_id, too_long
from shinglefold.errors import EngineError, InputError, Refused, ShinglefoldError, counted
from shinglefold.grouping.gate.exclusive_store import ExclusiveStore
from shinglefold.grouping.gate.group_commit import DecisionJob, GroupCommit, LoopThread, WaitingCaller
from shinglefold.grouping.gate.opening import BLOCKING, EngineCalls, GateSetup, match_keys_of, open_gate
from shinglefold.grouping.gate.protocol.pending_document import (
    PendingDocument,
    Verdict,
    document_key,
    id_and_routing,
    numbers_of,
)
from shinglefold.grouping.gate.server_store import ServerStore, sweep
from shinglefold.grouping.rules import Policy
from shinglefold.ingest import Pipeline
from shinglefold.ingest.pipeline.pipeline import Outcome
from shinglefold.ingest.processors.texts import joined_text, without_markup
from shinglefold.ingest.writing.batch import ReadBack
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import overwrite_refusal, without_fingerprint
from shinglefold.options.validation import check_str, expected
from shinglefold.rerank.explanation import matched_passages
from shinglefold.rerank.hits import check_complete
from shinglefold.rerank.index_fields import language_by_recipe

#: The most documents decided at once.
BATCH = 300
#: The most characters of the documents in one request; a character may take four bytes.
_CHARACTERS = 4_000_000
_LONGEST_ID = 512
#: Fields that are not part of the source of a document.
_METADATA = ("_id", "_index", "_routing", "_op_type")
#: The most documents with one id, under different routings, that ``Gate.passages`` compares.
_ROUTINGS = 100


class BaseGate:
    """A gate for a prepared index; a subclass decides in which event loop ``_group_commit`` runs.

    Args:
        calls: how to call ``engine``.

    Attributes:
        engine: the engine that the gate was opened with.
    """

    engine: Any

    def __init__(
        self,
        engine: Any,  # noqa: ANN401 - blocking or awaited
        setup: GateSetup,
        pipeline: Pipeline | None,
        seal: Seal | None,
        calls: EngineCalls,
    ) -> None:
        self._setup, self._pipeline, self._seal = setup, pipeline, seal
        self.policy, self.index, self.recipe = setup.context.policy, setup.index, setup.recipe
        #: Counts documents that an ingest pipeline of the server did not store as they were signed, and those
        #: that could not be read back.
        self.read_back = ReadBack(engine, setup.index, setup.recipe, pipelines=setup.pipelines)
        documents = setup.documents(engine, engine.can.newest)
        store: ServerStore | ExclusiveStore
        if (shared := setup.shared) is not None:
            store = ServerStore(engine, calls, setup, shared, documents, self.read_back)
        else:
            store = ExclusiveStore(engine, setup.index, documents)
        self._group_commit = GroupCommit(setup.index, self._job, store)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline that makes fingerprints."""
        if self._pipeline is None:
            self._pipeline = Pipeline.from_json(self.recipe.pipeline, self.recipe.scheme, seal=self._seal)
        return self._pipeline

    def _add_fingerprints(self, documents: Sequence[Document]) -> list[Document | Verdict]:
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
            _document_or_verdict(document, None if reason else next(outcomes), reason)
            for document, reason in zip(documents, reasons, strict=True)
        ]

    async def _add_all(self, documents: Sequence[Document]) -> list[Verdict]:
        """Fingerprint documents in the thread of the event loop, and decide about them.

        The embedded engine gets the words of texts from the thread that fingerprinted them.
        """
        _check_documents(documents)
        processed = self._add_fingerprints(documents[:BATCH])
        for begin in range(BATCH, len(documents), BATCH):
            # Let other callers run between two batches.
            await asyncio.sleep(0)
            processed += self._add_fingerprints(documents[begin : begin + BATCH])
        return await self._decide(processed)

    async def _decide(self, processed: Sequence[Document | Verdict]) -> list[Verdict]:
        """Decide about fingerprinted documents; return all verdicts in order."""
        documents = [one for one in processed if not isinstance(one, Verdict)]
        decided = iter(await self._group_commit.admit(documents))
        return [one if isinstance(one, Verdict) else next(decided) for one in processed]

    def _pending_document(self, document: Document) -> PendingDocument | Verdict:
        """Return a document as a pending one, or the verdict if it is invalid or does not fit."""
        given, model = document["_id"], self._setup.model
        id_ = str(given)
        try:
            if isinstance(given, bool) or not isinstance(given, str | int):
                raise InputError(f"its id is {given!r:.80}; give a text or a whole number, or leave it out")
            # Servers would refuse the whole request.
            if self._setup.intents and (size := len(id_.encode("utf-8", "surrogatepass"))) > _LONGEST_ID:
                raise InputError(f"its id has {size:,} bytes; the limit is {_LONGEST_ID}")
            routing = self._routing(document.get("_routing"))
            query = model.query_document(document)
            if (made := query.print.scheme) != (scheme := self.recipe.scheme.id):
                raise InputError(
                    f"its fingerprint is of the scheme {made}, and the index was made with {scheme}"
                )
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
        return PendingDocument(
            document_key(id_, routing), source, query, numbers, match_keys_of(query), create
        )

    def _routing(self, given: object) -> str | None:
        """Return the routing of a document, which an alias may give; None if it has none."""
        if given is None:
            return self._setup.routing
        if isinstance(given, bool) or not isinstance(given, str | int) or given == "":
            raise InputError(f"its _routing is {given!r}; give a text that is not empty, or leave it out")
        if not self._setup.intents:
            raise InputError("its index is in an engine that has no _routing; leave it out")
        if self._setup.routing not in (None, str(given)):
            alias, own = self._setup.given_name, self._setup.routing
            raise InputError(
                f"its _routing is {given!r}, and the alias {alias!r} has the index routing {own!r}: "
                "leave it out"
            )
        return str(given)

    def _with_id(self, id_: str) -> JSON:
        """Return a search for the documents of an id under any routing."""
        return {"query": {"ids": {"values": [id_]}}, "size": _ROUTINGS, **self.engine.can.unaltered}

    def _common_passages(self, document: Document, hits: Sequence[JSON]) -> list[JSON]:
        """Return the passages in common with the stored document that shares most."""
        (outcome,) = self.pipeline.run_block([without_fingerprint(document, self.recipe.field)])
        processed = document if outcome.document is None else outcome.document
        placed = self.pipeline.tools.canonicalizer.placed
        language = language_by_recipe(self.recipe, processed)

        def passages_with(stored: JSON) -> list[JSON]:
            source = stored["_source"]
            languages = language_by_recipe(self.recipe, source), language
            return matched_passages(source, processed, self.recipe.fields, placed, languages)

        return max(
            map(passages_with, hits), key=lambda own: sum(one["equal_tokens"] for one in own), default=[]
        )

    def _job(self, callers: Sequence[WaitingCaller]) -> DecisionJob:
        """Return a job that decides about the documents of callers together."""
        return DecisionJob(
            callers,
            self._setup.context,
            batches=batches,
            pending_document=self._pending_document,
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
        if self.policy.action == "cap":
            why += f", whose group has {counted(self.policy.most, 'document')} already"
        return replace(verdict, reason=why)


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
        setup = open_gate(engine, index, policy, pipeline, seal, lease)
        super().__init__(engine, setup, pipeline, seal, BLOCKING)
        self.engine = engine
        self._thread = LoopThread()
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
        return self._thread.run(self._decide, self._add_fingerprints(documents))

    def admit(self, documents: Sequence[Document]) -> list[Verdict]:
        """Decide about documents that have ``_id`` and a fingerprint of the index's pipeline.

        A document whose ``_op_type`` is ``"create"`` fails if its id is stored already.

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
        stored = self.engine.get(self.index, like)
        if stored is not None and (found := self._common_passages(document, [stored])):
            return found
        # Documents with other routings may have the same id.
        self.refresh()
        answer = self.engine.search(self.index, self._with_id(like), self.engine.can.newest)
        return self._common_passages(document, check_complete(answer)["hits"]["hits"])

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


def _check_documents(documents: object) -> None:
    if not isinstance(documents, list | tuple):
        raise expected("documents", "a list of documents, each an object of its fields", documents)
    for document in documents:
        if not isinstance(document, Mapping):
            raise expected("document", "an object of its fields", document)


def accepted_or_raise(verdict: Verdict) -> Verdict:
    """Return the verdict on an accepted document; raise ``Refused`` for any other."""
    if verdict.status == "accepted":
        return verdict
    like = verdict.like
    if like is None:
        raise Refused(verdict.reason)
    raise Refused(verdict.reason, like.id, like.likeness, verdict.group)


def given_id(document: Mapping[str, Any]) -> object:
    """Return the id of a document as it was given, None if it has none."""
    given = document.get("id") if document.get("_id") is None else document["_id"]
    return None if given == "" else given


def document_id(document: Mapping[str, Any]) -> object:
    """Return the id of a document as it was given, or a random one if it has none."""
    given = given_id(document)
    return random_id() if given is None else given


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


def _document_or_verdict(document: Document, outcome: Outcome | None, reason: str) -> Document | Verdict:
    """Return the processed document with an id, or the verdict on one that is invalid or was dropped."""
    if outcome is not None and outcome.document is not None:
        return {**outcome.document, "_id": document_id(outcome.document)}
    failure = None if outcome is None else outcome.failure
    why = reason or ("the pipeline dropped it" if failure is None else str(failure))
    return Verdict("failed", str(document_id(document)), reason=why)
