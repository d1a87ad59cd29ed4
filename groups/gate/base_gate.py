"""What every face of the gate does alike, whether its answers are waited for or awaited."""

import base64
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import Document
from shinglefold.errors import InputError, Refused, SchemeMismatch, ShinglefoldError
from shinglefold.groups.gate.fingerprint_judge import words_of
from shinglefold.groups.gate.group_commit import Caller, Job
from shinglefold.groups.gate.opening import Opened
from shinglefold.groups.gate.protocol.keys import id_and_routing, key
from shinglefold.groups.gate.protocol.member import Member, Verdict
from shinglefold.groups.gate.protocol.policy import Policy
from shinglefold.groups.numbers import numbers_of
from shinglefold.ingest import Pipeline
from shinglefold.ingest.batching import too_long
from shinglefold.ingest.field_paths import get
from shinglefold.ingest.foreign_field import refusal
from shinglefold.ingest.pipeline.pipeline import Outcome
from shinglefold.ingest.processors.texts import gather
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import without_fingerprint
from shinglefold.model.values import Fingerprint
from shinglefold.options.validation import check_type, expected

#: Documents decided at once.
BATCH = 300
#: Characters of the documents that are sent in one request; of each some are four bytes.
CHARACTERS = 4_000_000
_LONGEST_ID = 512
#: What is told beside a document.
_BESIDE = ("_id", "_index", "_routing")


class Face:
    """Makes members of documents, and words of verdicts."""

    def __init__(self, opened: Opened, pipeline: Pipeline | None, seal: Seal | None) -> None:
        if pipeline is not None and pipeline.scheme.id != opened.recipe.scheme.id:
            # What it makes would be like nothing that is stored.
            raise SchemeMismatch(
                opened.recipe.scheme.id,
                pipeline.scheme.id,
                f"index {opened.index!r}",
                "Leave the pipeline out, and the gate takes the one that the index notes.",
            )
        self._opened, self._pipeline, self._seal = opened, pipeline, seal
        self.policy, self.index, self.recipe = opened.terms.policy, opened.index, opened.recipe

    @property
    def pipeline(self) -> Pipeline:
        """What makes fingerprints."""
        if self._pipeline is None:
            self._pipeline = Pipeline.from_json(self.recipe.pipeline, self.recipe.scheme, seal=self._seal)
        return self._pipeline

    def made(self, documents: Sequence[Document]) -> list[Document | Verdict]:
        """Return documents with fingerprints and ids, or what became of those that the pipeline drops."""
        _check_documents(documents)
        field = self.recipe.field
        reasons = [too_long(one) or refusal(one, field) for one in documents]
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

    def member(self, document: Document) -> Member | Verdict:
        """Return what is decided about, or what becomes of a document that does not fit at all."""
        id_ = str(document["_id"])
        try:
            if self._opened.intents:
                _check_id(id_)
            routing = self._routing(document.get("_routing"))
            asked = self._opened.likeness.asked(document)
            _check_scheme(asked.print, self.recipe.scheme.id)
            fields = [name for name in self.recipe.fields if get(document, name) is not None]
            text = gather(document, fields, True) if fields else ""
        except ShinglefoldError as error:
            return Verdict("failed", id_, reason=str(error))
        if why := self.policy.misfit(len(text or "")):
            return Verdict("refused", id_, reason=why)
        source = {name: value for name, value in document.items() if name not in _BESIDE}
        scope = [asked.values.get(one.field, ()) for one in self._opened.likeness.scopes]
        numbers = numbers_of(asked.print, scope, self.index, id_, routing)
        return Member(key(id_, routing), source, asked, numbers, words_of(asked))

    def _routing(self, given: object) -> str | None:
        """Return what a document is routed by, None where it says nothing.

        Raises:
            InputError: it is none, or the engine has no routing.
        """
        if given is None:
            return None
        if isinstance(given, bool) or not isinstance(given, str | int) or given == "":
            raise InputError(f"its _routing is {given!r}; give a text that is not empty, or leave it out")
        if not self._opened.intents:
            raise InputError("its index is in an engine that has no _routing; leave it out")
        return str(given)

    def job(self, callers: Sequence[Caller]) -> Job:
        """Return what takes the documents of callers through the gate together."""
        shared = self._opened.shared is not None
        return Job(
            callers, self._opened.terms, cut=batches, member=self.member, told=self.told, shared=shared
        )

    def told(self, verdict: Verdict) -> Verdict:
        """Return a verdict with its reason in words, and documents by their own ids."""
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


def check_rules(policy: object, pipeline: object) -> None:
    """Raise ``ConfigError`` unless a gate is opened with a policy and a pipeline, or without."""
    check_type("policy", policy, Policy, 'a Policy, such as Policy("refuse"), or None', optional=True)
    check_type("pipeline", pipeline, Pipeline, "Pipeline.from_json(…), or None", optional=True)


def _check_documents(documents: object) -> None:
    if not isinstance(documents, list | tuple):
        raise expected("documents", "a list of documents, each an object of its fields", documents)
    for one in documents:
        if not isinstance(one, Mapping):
            raise expected("document", "an object of its fields", one)


def canonicalizer_of(pipeline: Pipeline | None) -> Canonicalizer | None:
    """Return the canonicalizer that a pipeline has made already."""
    return None if pipeline is None else pipeline.tools.canonicalizer


def let_in(verdict: Verdict) -> Verdict:
    """Return the verdict about a document that was let in.

    Raises:
        Refused: it was not; the error tells why.
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
    """Return documents in batches in which no id comes twice, none of them too much for a request."""
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
    """Return about how long JSON is."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_characters, value.values()))
    if not isinstance(value, list | tuple):
        return 8
    return sum(map(len if set(map(type, value)) == {str} else _characters, value))


def _check_scheme(made: Fingerprint, scheme: str) -> None:
    """Refuse a fingerprint that can be compared with none of the index.

    Raises:
        InputError: it is of another scheme.
    """
    if made.scheme != scheme:
        raise InputError(
            f"its fingerprint is of the scheme {made.scheme}, and the index was made with {scheme}"
        )


def _check_id(id_: str) -> None:
    """Refuse an id that no server takes, before it takes none of the request that it is in.

    Raises:
        InputError: it is too long.
    """
    if (size := len(id_.encode("utf-8", "surrogatepass"))) > _LONGEST_ID:
        raise InputError(f"its id has {size:,} bytes, and {_LONGEST_ID} are the most an id can have")


def _made(document: Document, outcome: Outcome | None, reason: str) -> Document | Verdict:
    """Return a document as the pipeline made it, or what became of one that it drops or that is refused."""
    if outcome is None or outcome.document is None:
        why = reason or _failed(None if outcome is None else outcome.failure)
        return Verdict("failed", document_id(document), reason=why)
    return {**outcome.document, "_id": document_id(outcome.document)}


def _failed(failure: object) -> str:
    return "the pipeline dropped it" if failure is None else str(failure)
