"""What every face of the gate does alike, whether its answers are waited for or awaited."""

import base64
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from shinglefold.canon import Canonicalizer
from shinglefold.contracts import Document
from shinglefold.errors import ConfigError, Refused, ShinglefoldError
from shinglefold.groups.gate.judge import words_of
from shinglefold.groups.gate.member import Member, Verdict
from shinglefold.groups.gate.opening import Opened
from shinglefold.groups.numbers import numbers_of
from shinglefold.ingest import Pipeline
from shinglefold.ingest.paths import get
from shinglefold.ingest.processors.texts import gather
from shinglefold.seal import Seal
from shinglefold.stored import without_fingerprint

#: Documents decided at once.
BATCH = 300
#: Seconds after which searches are made to see what was let in.
SECONDS = 1.0


class Face:
    """Makes members of documents, and words of verdicts."""

    def __init__(self, opened: Opened, pipeline: Pipeline | None, seal: Seal | None) -> None:
        self._opened, self._pipeline, self._seal = opened, pipeline, seal
        self.policy, self.index, self.recipe = opened.terms.policy, opened.index, opened.recipe

    @property
    def pipeline(self) -> Pipeline:
        """What makes fingerprints."""
        if self._pipeline is None:
            if self.recipe.pipeline is None:
                raise ConfigError(f"index {self.index!r} notes no pipeline: give the gate one")
            self._pipeline = Pipeline.from_json(self.recipe.pipeline, self.recipe.scheme, seal=self._seal)
        return self._pipeline

    def made(self, documents: Sequence[Document]) -> list[Document | Verdict]:
        """Return documents with fingerprints and ids, or what became of those that the pipeline drops."""
        kept = [without_fingerprint(one, self.recipe.field) for one in documents]
        outcomes = [
            outcome
            for begin in range(0, len(kept), BATCH)
            for outcome in self.pipeline.run_block(kept[begin : begin + BATCH])
        ]
        return [
            Verdict("failed", document_id(one), reason=_failed(outcome.failure))
            if outcome.document is None
            else {**outcome.document, "_id": document_id(outcome.document)}
            for one, outcome in zip(documents, outcomes, strict=True)
        ]

    def member(self, document: Document) -> Member | Verdict:
        """Return what is decided about, or what becomes of a document that does not fit at all."""
        id_ = str(document["_id"])
        try:
            asked = self._opened.likeness.asked(document)
            fields = [name for name in self.recipe.fields if get(document, name) is not None]
            text = gather(document, fields, True) if fields else ""
        except ShinglefoldError as error:
            return Verdict("failed", id_, reason=str(error))
        if why := self.policy.misfit(len(text or "")):
            return Verdict("refused", id_, reason=why)
        source = {name: value for name, value in document.items() if name not in ("_id", "_index")}
        scope = [asked.values.get(name, ()) for name in self.policy.scope]
        return Member(id_, source, asked, numbers_of(asked.print, scope, self.index, id_), words_of(asked))

    def told(self, verdict: Verdict) -> Verdict:
        """Return a verdict with its reason in words."""
        like = verdict.like
        if verdict.status != "refused" or like is None:
            return verdict
        told = f"{self.policy.measure} {like.likeness:.2f}"
        if like.similarity is not None:
            told += f" by estimate, edit similarity {like.similarity:.2f} by text"
        why = f"it resembles {like.id!r} of {self.index!r} ({told})"
        if verdict.full:
            why += f", whose group has {self.policy.most:,} documents already"
        return Verdict("refused", verdict.id, verdict.group, like=like, full=verdict.full, reason=why)


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
    """Return documents in batches in which no id comes twice."""
    cut: list[list[Document]] = []
    seen: set[str] = set()
    for document in documents:
        id_ = str(document["_id"])
        if not cut or len(seen) == BATCH or id_ in seen:
            cut.append([])
            seen = set()
        cut[-1].append(document)
        seen.add(id_)
    return cut


def _failed(failure: object) -> str:
    return "the pipeline dropped it" if failure is None else str(failure)
