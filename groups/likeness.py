"""How alike documents are, by their fingerprints: resemblance, or containment where one may hold another."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from shinglefold.errors import InputError
from shinglefold.groups.rules import Rules
from shinglefold.model import Fingerprint, Int64s
from shinglefold.rerank.fold.columns import Columns, Reader
from shinglefold.rerank.fold.matcher import Matcher, nonzero
from shinglefold.rerank.hits import field_values
from shinglefold.rerank.request.options import FoldOptions, Scope
from shinglefold.rerank.similar import Asked
from shinglefold.scheme import Scheme
from shinglefold.seal import Seal
from shinglefold.sketch import agreement_rows, estimate
from shinglefold.stored import stored_parts


class Pair(NamedTuple):
    """A document asked for and another, by their places, and how alike they are."""

    one: int
    other: int
    likeness: float


class Likeness:
    """Tells which documents are alike.

    It asks for no common supershingle: what is compared was nominated by one.
    """

    def __init__(self, scheme: Scheme, field: str, rules: Rules, seal: Seal | None = None) -> None:
        self.scheme, self.field, self.seal = scheme, field, seal
        self.scopes = tuple(Scope(name) for name in rules.scope)
        self._rules = rules
        options = FoldOptions(
            min_shared=0,
            min_resemblance=rules.min_resemblance,
            min_length_ratio=rules.min_length_ratio,
            across_languages=rules.across_languages,
            scope=self.scopes,
        )
        self._matcher = Matcher.of(scheme, options)
        self._least = rules.min_resemblance or scheme.decision.min_resemblance

    @property
    def doc_values(self) -> list[str]:
        """The fields of stored documents that it needs."""
        own = [f"{self.field}.digest", f"{self.field}.signature"]
        return list(dict.fromkeys([*own, *(scope.field for scope in self.scopes)]))

    def asked(self, document: Mapping[str, Any]) -> Asked:
        """Return a document as it is compared.

        Raises:
            InputError: it has no fingerprint, or a damaged one.
        """
        stored = stored_parts(document, self.field)
        if not stored:
            raise InputError(f"it has no fingerprint in {self.field!r}: take it through the index's pipeline")
        hit = {"_source": document}
        return Asked(
            Fingerprint.from_field(stored),
            {scope.field: field_values(hit, scope.field) for scope in self.scopes},
        )

    def reader(self) -> Reader:
        """Return what reads documents into columns; only what one reader read can be compared."""
        return Reader(self.scheme, self.field, self.scopes, self.seal)

    def columns(self, reader: Reader, asked: Sequence[Asked]) -> Columns:
        """Return documents that are asked for as columns."""
        return reader.read([one.as_hit(self.field) for one in asked])

    def to_hits(self, asked: Sequence[Asked], hits: Sequence[Mapping[str, Any]]) -> list[Pair]:
        """Return which documents are like which hits."""
        if not asked or not hits:
            return []
        reader = self.reader()
        return self.between(self.columns(reader, asked), reader.read(hits))

    def among(self, asked: Sequence[Asked]) -> list[Pair]:
        """Return which documents are alike; of each pair the earlier one first."""
        if len(asked) < 2:
            return []
        own = self.columns(self.reader(), asked)
        return [pair for pair in self.between(own, own) if pair.one < pair.other]

    def between(self, ours: Columns, theirs: Columns) -> list[Pair]:
        """Return which of some columns are like which of others. Cost: about 8 ns a pair."""
        if not len(ours) or not len(theirs):
            return []
        contained = self._rules.measure == "containment"
        ones, others = (self._contained if contained else self._resembling)(ours, theirs)
        alike = self._likenesses(ours, ones, theirs, others)
        return [Pair(*pair) for pair in zip(ones.tolist(), others.tolist(), alike.tolist(), strict=True)]

    def _resembling(self, ours: Columns, theirs: Columns) -> tuple[Int64s, Int64s]:
        matcher = self._matcher
        rows = np.arange(len(ours), dtype=np.int64)
        return nonzero(matcher.matches(matcher.prepare(ours), rows, matcher.prepare(theirs)))

    def _contained(self, ours: Columns, theirs: Columns) -> tuple[Int64s, Int64s]:
        """Compare all pairs: lengths may differ, so that little can be told beforehand."""
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
        return nonzero(near)

    def _likenesses(self, ours: Columns, ones: Int64s, theirs: Columns, others: Int64s) -> Any:  # noqa: ANN401
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


__all__ = ["Likeness", "Pair", "Rules"]
