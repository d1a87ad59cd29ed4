"""How alike documents are, by their fingerprints: resemblance, or containment where one may hold another."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON
from shinglefold.errors import InputError
from shinglefold.grouping.rules import Rules
from shinglefold.grouping.scope_values import Values
from shinglefold.model.recipe import TEXTS, Recipe
from shinglefold.model.scheme import Facts, Scheme
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.model.values import Fingerprint, Int64s
from shinglefold.rerank.fold.matcher import Compared, Mask, Matcher, nonzero
from shinglefold.rerank.fold.text_verification import TextStage, TextStages, TextVerdict
from shinglefold.rerank.fold.uncertain_pairs import UncertaintyBand
from shinglefold.rerank.hits import FingerprintColumns, FingerprintReader, field_values
from shinglefold.rerank.request.fold_options import FoldOptions, Scope
from shinglefold.rerank.similar import QueryDocument
from shinglefold.sketch import agreement_rows, estimate

#: Reads the texts of hits at some positions, and returns all hits, these with their texts.
ReadTexts = Callable[[Sequence[JSON], Sequence[int]], list[JSON]]
#: Parts of a fingerprint that have no doc values.
_IN_SOURCE = ("supershingles",)


class Pair(NamedTuple):
    """Two documents by position, and how alike they are."""

    one: int
    other: int
    likeness: float


class SimilarPair(NamedTuple):
    """A pair that matches; ``similarity``: the edit similarity of the texts, where these decided."""

    one: int
    other: int
    likeness: float
    similarity: float | None = None


class ComparedBatch(NamedTuple):
    """Documents in columns, to be compared with those of the same reader."""

    asked: Sequence[QueryDocument]
    compared: Compared
    reader: FingerprintReader

    def take(self, places: Sequence[int]) -> "ComparedBatch":
        """Return some of the documents."""
        rows = list(places)
        return ComparedBatch([self.asked[row] for row in rows], self.compared.take(rows), self.reader)

    def join(self, other: "ComparedBatch") -> "ComparedBatch":
        """Return these documents followed by those of another batch of the same reader."""
        return ComparedBatch([*self.asked, *other.asked], self.compared.join(other.compared), self.reader)


class SimilarityModel:
    """Decides which documents are alike.

    Candidates share a supershingle already, so that is checked only where the rules ask for nothing else.

    Args:
        stage: decides about pairs that signatures leave in doubt by their texts; None keeps the estimate.
        values: brings the values of scopes into one form; None where all are as the index has them.

    Attributes:
        parts: the parts of the fingerprint field that it needs.
        texts: the fields whose texts it compares; () for none.
    """

    def __init__(
        self,
        scheme: Scheme,
        field: str,
        rules: Rules,
        seal: Seal | None = None,
        stage: TextStage | None = None,
        *,
        values: Values | None = None,
    ) -> None:
        self.scheme, self.field, self.seal = scheme, field, seal
        self._values = values
        self.scopes = tuple(Scope(name) for name in rules.scope)
        self._rules = rules
        verify = rules.verified_by(scheme.decision)
        bare = verify == "keywords" and rules.measure != "containment"
        options = FoldOptions(
            min_shared=max(1, scheme.decision.min_shared) if bare else 0,
            min_resemblance=0.0 if bare else rules.min_resemblance,
            min_length_ratio=0.0 if bare else rules.min_length_ratio,
            across_languages=rules.across_languages,
            scope=self.scopes,
        )
        self._matcher = Matcher.of(scheme, options)
        self.parts = ("digest", "signature", *(("supershingles",) if bare else ()))
        self._keywords = bare
        self.stage = stage if verify == "text" else None
        self._zone = None if self.stage is None else UncertaintyBand.of(self.stage.scheme, options)
        self.texts = () if self.stage is None or self._zone is None else self.stage.fields
        self._least = rules.min_resemblance or scheme.decision.min_resemblance

    @property
    def doc_values(self) -> list[str]:
        """The doc values of stored documents that it needs."""
        own = [f"{self.field}.{part}" for part in self.parts if part not in _IN_SOURCE]
        return list(dict.fromkeys([*own, *(scope.field for scope in self.scopes)]))

    @property
    def source(self) -> list[str] | Literal[False]:
        """The ``_source`` fields of stored documents that it needs."""
        return [f"{self.field}.{part}" for part in self.parts if part in _IN_SOURCE] or False

    def told_in(self, scope: Scope) -> str:
        """Return the path of the values of a scope in documents."""
        return scope.field if self._values is None else self._values.source(scope.field)

    def asked(self, document: Mapping[str, Any]) -> QueryDocument:
        """Return a document in the form that is compared.

        Raises:
            InputError: it has no fingerprint, or a damaged one, or a value of a scope that the index can't
                have.
        """
        stored = stored_parts(document, self.field)
        if not stored:
            raise InputError(f"it has no fingerprint in {self.field!r}: take it through the index's pipeline")
        hit = {"_source": document}
        return QueryDocument(
            Fingerprint.from_field(stored),
            {scope.field: self._given(scope.field, self._told(hit, scope.field)) for scope in self.scopes},
            text=self.text(document),
        )

    def text(self, source: Mapping[str, Any]) -> str:
        """Return the texts of a document, where these may decide."""
        return "" if self.stage is None else self.stage.text(source)

    def reader(self) -> FingerprintReader:
        """Return a reader of documents into columns; only documents of one reader can be compared."""
        return FingerprintReader(self.scheme, self.field, self.scopes, self.seal)

    def batch(self, asked: Sequence[QueryDocument], reader: FingerprintReader | None = None) -> ComparedBatch:
        """Return documents ready to be compared."""
        reader = reader or self.reader()
        columns = reader.read([one.as_hit(self.field, keywords=self._keywords) for one in asked])
        return ComparedBatch(asked, self._matcher.prepare(columns), reader)

    def possible(self, batch: ComparedBatch, hits: Sequence[Mapping[str, Any]]) -> list[Pair]:
        """Return the pairs of documents and hits that match by signature or are in doubt."""
        if not batch.asked or not hits:
            return []
        ours, theirs = batch.compared, self._stored(batch.reader, hits)
        near, doubt = self._masks(ours, theirs)
        ones, others = nonzero(near | doubt)
        alike = self._likenesses(ours.prints, ones, theirs.prints, others)
        return [Pair(*pair) for pair in zip(ones.tolist(), others.tolist(), alike.tolist(), strict=True)]

    def similar_pairs(
        self, batch: ComparedBatch, hits: Sequence[JSON], read: ReadTexts | None = None
    ) -> list[SimilarPair]:
        """Return the pairs of documents and hits that match, by their texts where signatures leave doubt.

        Args:
            hits: with the texts that stored documents have in ``_source``.
            read: reads the texts of hits at some places that have none yet, and returns all hits.

        A pair is decided in the same way whichever of the two is asked for: estimate and edit similarity know
        no direction.
        """
        if not batch.asked or not hits:
            return []
        theirs = self._stored(batch.reader, hits)
        near, doubt = self._masks(batch.compared, theirs)
        if read is not None and self.texts and doubt.any():
            hits = read(hits, np.flatnonzero(doubt.any(axis=0)).tolist())
        texts = self._texts(hits)
        return self._decided(batch, theirs, near, doubt, texts)

    def alike(self, batch: ComparedBatch, others: ComparedBatch) -> list[SimilarPair]:
        """Return the pairs of documents of two batches of the same reader that match."""
        if not batch.asked or not others.asked:
            return []
        near, doubt = self._masks(batch.compared, others.compared)
        return self._decided(batch, others.compared, near, doubt, lambda other: others.asked[other].text)

    def among(self, batch: ComparedBatch) -> list[SimilarPair]:
        """Return the pairs of a batch that match, the earlier one first."""
        if len(batch.asked) < 2:
            return []
        near, doubt = (np.triu(mask, 1) for mask in self._masks(batch.compared, batch.compared))
        return self._decided(batch, batch.compared, near, doubt, lambda other: batch.asked[other].text)

    def _texts(self, hits: Sequence[Mapping[str, Any]]) -> Callable[[int], str]:
        return lambda other: self.text(hits[other].get("_source") or {})

    def _decided(
        self, batch: ComparedBatch, theirs: Compared, near: Mask, doubt: Mask, text_of: Callable[[int], str]
    ) -> list[SimilarPair]:
        """Return the pairs that match, by texts where signatures leave doubt."""
        said = self._said(batch.asked, text_of, doubt)
        for (one, other), told in said.items():
            near[one, other] = told.alike
        ones, others = nonzero(near)
        alike = self._likenesses(batch.compared.prints, ones, theirs.prints, others)
        pairs = zip(ones.tolist(), others.tolist(), alike.tolist(), strict=True)
        return [SimilarPair(*pair, _similarity(said.get(pair[:2]))) for pair in pairs]

    def _masks(self, ours: Compared, theirs: Compared) -> tuple[Mask, Mask]:
        """Return the pairs that match by signature, and those in doubt."""
        rows = np.arange(len(ours), dtype=np.int64)
        if self._rules.measure == "containment":
            near = self._contained(ours.prints, theirs.prints)
        else:
            near = self._matcher.matches(ours, rows, theirs)
        if self._zone is None:
            return near, np.zeros_like(near)
        possible, sure = (matcher.matches(ours, rows, theirs) for matcher in self._zone)
        return near, possible & ~sure

    def _said(
        self, asked: Sequence[QueryDocument], text_of: Callable[[int], str], doubt: Mask
    ) -> dict[tuple[int, int], TextVerdict]:
        stage = self.stage
        if stage is None or not doubt.any():
            return {}
        pairs = [(one, other + len(asked)) for one, other in np.argwhere(doubt).tolist()]
        texts = {one: asked[one].text for one, _ in pairs}
        texts |= {other: text_of(other - len(asked)) for other in {other for _, other in pairs}}
        said = stage.decide_texts(pairs, texts)
        return {(one, other - len(asked)): told for (one, other), told in said.items()}

    def _given(self, path: str, values: Sequence[Any]) -> Sequence[Any]:
        return values if self._values is None else self._values.given(path, values)

    def _told(self, hit: Mapping[str, Any], path: str) -> list[Any]:
        return field_values(hit, path) if self._values is None else self._values.told(hit, path)

    def _stored(self, reader: FingerprintReader, hits: Sequence[Mapping[str, Any]]) -> Compared:
        return self._matcher.prepare(reader.read([self._in_form(hit) for hit in hits]))

    def _in_form(self, hit: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a stored document with the values of its scopes in the form that is compared."""
        if self._values is None or not self.scopes:
            return hit
        kept = {one.field: self._values.kept(one.field, self._told(hit, one.field)) for one in self.scopes}
        return {**hit, "fields": {**(hit.get("fields") or {}), **kept}}

    def _contained(self, ours: FingerprintColumns, theirs: FingerprintColumns) -> Mask:
        """Compare all pairs: lengths may differ, so no pair can be ruled out by them."""
        near = ours.signed[:, None] & theirs.signed[None, :]
        if not self._rules.across_languages:
            near &= ours.languages[:, None] == theirs.languages[None, :]
        ones, others = nonzero(near)
        enough = self._likenesses(ours, ones, theirs, others) >= self._least
        near = np.zeros_like(near)
        near[ones[enough], others[enough]] = True
        texts = ours.digests[:, None]
        near |= (texts == theirs.digests[None, :]) & (texts >= 0)
        for column in range(len(self.scopes)):
            near &= ours.scopes[:, column, None] == theirs.scopes[None, :, column]
        return near

    def _likenesses(
        self, ours: FingerprintColumns, ones: Int64s, theirs: FingerprintColumns, others: Int64s
    ) -> Any:  # noqa: ANN401
        sketch = self.scheme.sketch
        agreeing = agreement_rows(
            ours.signatures[ones], theirs.signatures[others], sketch.bits, sketch.values
        )
        alike, _ = estimate(agreeing, sketch.values, sketch.bits)
        if self._rules.measure == "containment":
            a = np.maximum(ours.shingles[ones], 1).astype(np.float64)
            b = np.maximum(theirs.shingles[others], 1).astype(np.float64)
            alike = np.minimum(1.0, alike / (1.0 + alike) * (a + b) / np.minimum(a, b))
        same = (ours.digests[ones] == theirs.digests[others]) & (ours.digests[ones] >= 0)
        return np.where(same, 1.0, alike)


def _similarity(said: TextVerdict | None) -> float | None:
    return None if said is None else said.similarity


def text_stage(
    recipe: Recipe,
    rules: Rules,
    canonicalizer: Canonicalizer | None = None,
    *,
    facts: Facts = "any",
    wanted: bool = True,
) -> TextStage:
    """Return the stage by which the texts of an index decide.

    Args:
        canonicalizer: of the index's scheme; None makes one when a text is first read.
        facts: other than ``any`` overrides the scheme.
        wanted: whether a missing dictionary is an error; else signatures decide in its place.
    """
    scheme = rules.judged(recipe.scheme)
    if facts != "any":
        scheme = scheme.with_options(verify="text", facts=facts)
    return TextStages(canonicalizer).stage(scheme, recipe.fields or TEXTS, wanted=wanted)


def similarity_model(
    recipe: Recipe,
    rules: Rules,
    seal: Seal | None,
    values: Values,
    canonicalizer: Canonicalizer | None = None,
    *,
    facts: Facts = "any",
) -> SimilarityModel:
    """Return the likeness of an index by rules; see ``text_stage``."""
    stage = text_stage(recipe, rules, canonicalizer, facts=facts)
    return SimilarityModel(recipe.scheme, recipe.field, rules, seal, stage, values=values)


__all__ = [
    "ComparedBatch",
    "Pair",
    "Rules",
    "SimilarPair",
    "SimilarityModel",
    "similarity_model",
    "text_stage",
]
