"""How similar documents are: by resemblance, or by containment if one text may contain another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from shinglefold.contracts.engine import JSON
from shinglefold.errors import InputError
from shinglefold.grouping.field_values import Values
from shinglefold.grouping.rules import Rules
from shinglefold.model.recipe import TEXTS, Recipe
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.model.values import Fingerprint, Int64s
from shinglefold.rerank.fold.matcher import (
    Compared,
    Mask,
    Matcher,
    UncertaintyBand,
    nonzero,
    without_other_facts,
)
from shinglefold.rerank.fold.text_verification import TextStage, TextStages, TextVerdict
from shinglefold.rerank.hits import FingerprintColumns, FingerprintReader, field_values
from shinglefold.rerank.request.fold_options import FoldOptions, Scope
from shinglefold.rerank.similar import QueryDocument
from shinglefold.sketch.b_bit_minhash import Floats, agreement_rows, estimate

#: Given hits and positions, returns all hits, those at the positions with their texts.
ReadTexts = Callable[[Sequence[JSON], Sequence[int]], list[JSON]]
#: Parts of a fingerprint that have no doc values.
_IN_SOURCE = ("supershingles",)


class Pair(NamedTuple):
    """Two documents by position, and how similar they are.

    Attributes:
        likeness: by signature, 0 to 1.
        similarity: the edit similarity of the texts, if these decided.
    """

    one: int
    other: int
    likeness: float
    similarity: float | None = None


class ComparedBatch(NamedTuple):
    """Documents in columns; only documents of the same reader can be compared."""

    documents: Sequence[QueryDocument]
    compared: Compared
    reader: FingerprintReader

    def take(self, places: Sequence[int]) -> "ComparedBatch":
        """Return some of the documents."""
        rows = list(places)
        return ComparedBatch([self.documents[row] for row in rows], self.compared.take(rows), self.reader)

    def join(self, other: "ComparedBatch") -> "ComparedBatch":
        """Return these documents followed by those of another batch of the same reader."""
        documents = [*self.documents, *other.documents]
        return ComparedBatch(documents, self.compared.join(other.compared), self.reader)


class SimilarityModel:
    """Decides which documents match.

    Candidates share a supershingle already, so that is checked only if the rules require nothing else.

    Args:
        stage: decides uncertain pairs by their texts; None keeps the estimate.
        values: brings the values of scopes into one form; None if all are as the index has them.

    Attributes:
        parts: the parts of the fingerprint field that are compared.
        texts: the fields whose texts are compared; () for none.
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
        self.scheme, self.field, self.seal = (scheme := rules.apply_to(scheme)), field, seal
        self._values = values
        self.scopes = tuple(Scope(name) for name in rules.scope)
        self._rules = rules
        verify = rules.verified_by(scheme.decision)
        by_keywords = verify == "keywords" and rules.measure != "containment"
        options = FoldOptions(
            min_shared=max(1, scheme.decision.min_shared) if by_keywords else 0,
            min_resemblance=0.0 if by_keywords else rules.min_resemblance,
            min_length_ratio=0.0 if by_keywords else rules.min_length_ratio,
            scope=self.scopes,
        )
        self._matcher = Matcher.of(scheme, options)
        self.parts = ("digest", "signature", *(("supershingles",) if by_keywords else ()))
        self._by_keywords = by_keywords
        self.stage = stage if verify == "text" else None
        # A missing dictionary is an error only where texts decide.
        self._signed = None if stage is None or stage.signed is None else replace(stage, wanted=False)
        self._band = None if self.stage is None else UncertaintyBand.of(self.stage.scheme, options)
        self.texts = () if self.stage is None or self._band is None else self.stage.sources
        self._min_resemblance = rules.min_resemblance or scheme.decision.min_resemblance

    @property
    def doc_values(self) -> list[str]:
        """The doc values of stored documents that are compared."""
        own = [f"{self.field}.{part}" for part in self.parts if part not in _IN_SOURCE]
        return list(dict.fromkeys([*own, *(scope.field for scope in self.scopes)]))

    @property
    def source(self) -> list[str] | Literal[False]:
        """The ``_source`` fields of stored documents that are compared."""
        return [f"{self.field}.{part}" for part in self.parts if part in _IN_SOURCE] or False

    def source_path(self, scope: Scope) -> str:
        """Return the path of the values of a scope in documents."""
        return scope.field if self._values is None else self._values.source(scope.field)

    def query_document(self, document: Mapping[str, Any]) -> QueryDocument:
        """Return a document in the form that is compared.

        Raises:
            InputError: its fingerprint is missing or damaged, or the index can't have a value of its scope.
        """
        stored = stored_parts(document, self.field)
        if not stored:
            raise InputError(f"it has no fingerprint in {self.field!r}: take it through the index's pipeline")
        hit = {"_source": document}
        return QueryDocument(
            Fingerprint.from_field(stored),
            {
                scope.field: self._comparable(scope.field, self._read(hit, scope.field))
                for scope in self.scopes
            },
            text=self.text(document),
        )

    def text(self, source: Mapping[str, Any]) -> str:
        """Return the text of a document, "" if texts do not decide."""
        return "" if self.stage is None else self.stage.text(source)

    @property
    def tells_stale(self) -> bool:
        """Whether a text shows if its fingerprint was made of it."""
        return self._signed is not None

    def stale(self, sources: Mapping[str, Mapping[str, Any]]) -> set[str]:
        """Return the keys of sources whose fingerprint was made of another text; see ``TextStage.stale``."""
        if self._signed is None:
            return set()
        digests = {key: stored_parts(source, self.field).get("digest") for key, source in sources.items()}
        return self._signed.stale(
            {key: (sources[key], digest) for key, digest in digests.items() if isinstance(digest, str)}
        )

    def reader(self) -> FingerprintReader:
        """Return a reader of documents into columns; only documents of the same reader can be compared."""
        return FingerprintReader(self.scheme, self.field, self.scopes, self.seal)

    def batch(
        self, documents: Sequence[QueryDocument], reader: FingerprintReader | None = None
    ) -> ComparedBatch:
        """Return documents ready to be compared."""
        reader = reader or self.reader()
        columns = reader.read([one.as_hit(self.field, keywords=self._by_keywords) for one in documents])
        return ComparedBatch(documents, self._matcher.prepare(columns), reader)

    def candidate_pairs(self, batch: ComparedBatch, hits: Sequence[Mapping[str, Any]]) -> list[Pair]:
        """Return the pairs of documents and hits that match by signature or are uncertain."""
        if not batch.documents or not hits:
            return []
        ours, theirs = batch.compared, self._prepare_hits(batch.reader, hits)
        near, doubt = self._masks(ours, theirs)
        ones, others = nonzero(near | doubt)
        likenesses = self._likenesses(ours.prints, ones, theirs.prints, others)
        return [Pair(*pair) for pair in zip(ones.tolist(), others.tolist(), likenesses.tolist(), strict=True)]

    def similar_pairs(
        self, batch: ComparedBatch, hits: Sequence[JSON], read: ReadTexts | None = None
    ) -> list[Pair]:
        """Return the pairs of documents and hits that match; texts decide uncertain pairs.

        Estimate and edit similarity are symmetric.

        Args:
            hits: with the texts in ``_source``, unless ``read`` is given.
            read: adds the texts to the hits at the positions that it gets.
        """
        if not batch.documents or not hits:
            return []
        theirs = self._prepare_hits(batch.reader, hits)
        near, doubt = self._masks(batch.compared, theirs)
        if read is not None and self.texts and doubt.any():
            hits = read(hits, np.flatnonzero(doubt.any(axis=0)).tolist())
        return self._decide(
            batch, theirs, near, doubt, lambda other: self.text(hits[other].get("_source") or {})
        )

    def similar_between(self, batch: ComparedBatch, others: ComparedBatch) -> list[Pair]:
        """Return the pairs of documents of two batches of the same reader that match."""
        if not batch.documents or not others.documents:
            return []
        near, doubt = self._masks(batch.compared, others.compared)
        return self._decide(batch, others.compared, near, doubt, lambda other: others.documents[other].text)

    def similar_within(self, batch: ComparedBatch) -> list[Pair]:
        """Return the pairs of a batch that match, the earlier one first."""
        if len(batch.documents) < 2:
            return []
        near, doubt = (np.triu(mask, 1) for mask in self._masks(batch.compared, batch.compared))
        return self._decide(batch, batch.compared, near, doubt, lambda other: batch.documents[other].text)

    def _decide(
        self, batch: ComparedBatch, theirs: Compared, near: Mask, doubt: Mask, text_of: Callable[[int], str]
    ) -> list[Pair]:
        """Return the pairs that match; texts decide uncertain ones."""
        ones, others = nonzero(near | doubt)
        likenesses = self._likenesses(batch.compared.prints, ones, theirs.prints, others)
        pairs = zip(ones.tolist(), others.tolist(), strict=True)
        likeness = dict(zip(pairs, likenesses.tolist(), strict=True))
        uncertain = {pair: value for pair, value in likeness.items() if doubt[pair]}
        verdicts = self._text_verdicts(batch, text_of, uncertain)
        return [
            Pair(*pair, by_signature, None if verdict is None else verdict.similarity)
            for pair, by_signature in likeness.items()
            if (near[pair] if (verdict := verdicts.get(pair)) is None else verdict.alike)
        ]

    def _masks(self, ours: Compared, theirs: Compared) -> tuple[Mask, Mask]:
        """Return the pairs that match by signature, and the uncertain ones."""
        rows = np.arange(len(ours), dtype=np.int64)
        if self._band is not None:
            # The three differ only in their thresholds, and few pairs match at a higher one.
            possible = self._band.possible.matches(ours, rows, theirs)
            near = self._matcher.decide(possible.copy(), ours, rows, theirs, 0)
            return near, possible & ~self._band.sure.decide(near.copy(), ours, rows, theirs, 0)
        if self._rules.measure == "containment":
            near = self._containment_mask(ours.prints, theirs.prints)
        else:
            near = self._matcher.matches(ours, rows, theirs)
        return near, np.zeros_like(near)

    def _text_verdicts(
        self,
        batch: ComparedBatch,
        text_of: Callable[[int], str],
        uncertain: Mapping[tuple[int, int], float],
    ) -> dict[tuple[int, int], TextVerdict]:
        """Return the verdicts of texts on uncertain pairs, which are given with their likeness."""
        stage, documents = self.stage, batch.documents
        if stage is None or not uncertain:
            return {}
        pairs = [(one, other + len(documents)) for one, other in uncertain]
        texts = {one: documents[one].text for one, _ in pairs}
        texts |= {other: text_of(other - len(documents)) for other in {other for _, other in pairs}}
        verdicts = stage.decide_texts(pairs, texts, stage.as_bags(pairs, list(uncertain.values())))
        return {(one, other - len(documents)): verdict for (one, other), verdict in verdicts.items()}

    def _comparable(self, path: str, values: Sequence[Any]) -> Sequence[Any]:
        return values if self._values is None else self._values.comparable_values(path, values)

    def _read(self, hit: Mapping[str, Any], path: str) -> list[Any]:
        return field_values(hit, path) if self._values is None else self._values.read(hit, path)

    def _prepare_hits(self, reader: FingerprintReader, hits: Sequence[Mapping[str, Any]]) -> Compared:
        return self._matcher.prepare(reader.read([self._comparable_hit(hit) for hit in hits]))

    def _comparable_hit(self, hit: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a hit with the values of its scopes in the form that is compared."""
        if self._values is None or not self.scopes:
            return hit
        paths = [scope.field for scope in self.scopes]
        values = {path: self._values.stored(path, self._values.read(hit, path)) for path in paths}
        return {**hit, "fields": {**(hit.get("fields") or {}), **values}}

    def _containment_mask(self, ours: FingerprintColumns, theirs: FingerprintColumns) -> Mask:
        """Return the pairs that match by containment; lengths may differ, so they rule out no pair."""
        near = ours.signed[:, None] & theirs.signed[None, :]
        ones, others = nonzero(near)
        enough = self._likenesses(ours, ones, theirs, others) >= self._min_resemblance
        near = np.zeros_like(near)
        near[ones[enough], others[enough]] = True
        texts = ours.digests[:, None]
        near |= (texts == theirs.digests[None, :]) & (texts >= 0)
        for column in range(len(self.scopes)):
            near &= ours.scopes[:, column, None] == theirs.scopes[None, :, column]
        return without_other_facts(near, ours, np.arange(len(ours)), theirs)

    def _likenesses(
        self, ours: FingerprintColumns, ones: Int64s, theirs: FingerprintColumns, others: Int64s
    ) -> Floats:
        sketch = self.scheme.sketch
        agreeing = agreement_rows(
            ours.signatures[ones], theirs.signatures[others], sketch.bits, sketch.values
        )
        likenesses, _ = estimate(agreeing, sketch.values, sketch.bits)
        if self._rules.measure == "containment":
            a = np.maximum(ours.shingles[ones], 1).astype(np.float64)
            b = np.maximum(theirs.shingles[others], 1).astype(np.float64)
            likenesses = np.minimum(1.0, likenesses / (1.0 + likenesses) * (a + b) / np.minimum(a, b))
        same = (ours.digests[ones] == theirs.digests[others]) & (ours.digests[ones] >= 0)
        return np.where(same, 1.0, likenesses)


def text_stage(
    recipe: Recipe,
    rules: Rules,
    *,
    wanted: bool = True,
    mappings: Mapping[str, Any] | None = None,
) -> TextStage:
    """Return the stage in which the texts of an index decide.

    Args:
        wanted: whether a missing dictionary is an error; else signatures decide.
        mappings: those of the index, which tell how fingerprints were made.
    """
    scheme = rules.apply_to(recipe.scheme)
    several = () if mappings is None else (mappings,)
    return TextStages().stage(scheme, recipe.fields or TEXTS, wanted=wanted, mappings=several)


def similarity_model(
    recipe: Recipe,
    rules: Rules,
    seal: Seal | None,
    values: Values | None,
    *,
    mappings: Mapping[str, Any] | None = None,
) -> SimilarityModel:
    """Return the model of an index by its recipe and rules; see ``text_stage`` for the options."""
    stage = text_stage(recipe, rules, mappings=mappings)
    return SimilarityModel(recipe.scheme, recipe.field, rules, seal, stage, values=values)
