"""Which candidates match: the decision of the scheme, for many documents and their candidates at once."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from shinglefold.rerank.fold.columns import Columns, Counts, Reader
from shinglefold.rerank.fold.matcher import Mask, Matcher, nonzero
from shinglefold.rerank.hits import Hit, identity
from shinglefold.rerank.request.options import FoldOptions
from shinglefold.rerank.similar.asked import Asked, Match
from shinglefold.scheme import Scheme
from shinglefold.seal import Seal
from shinglefold.sketch import agreement_rows, estimate

#: Documents decided at a time: each is held against the candidates of all.
_ROWS = 64


class Decision:
    """Decides which candidates match, as a folded search under the same options would.

    But for one thing: a pair must share a supershingle, or its text, to be looked at at all.

    Attributes:
        min_shared: supershingles a pair must share.
    """

    def __init__(self, scheme: Scheme, options: FoldOptions, dedup: str, seal: Seal | None = None) -> None:
        self._scheme = scheme
        self._scopes = options.scope
        self._dedup = dedup
        self._seal = seal
        matcher = Matcher.of(scheme, options)
        self.min_shared = max(1, matcher.min_shared)
        # Of what was found in an index the engine has counted them.
        self._counted = replace(matcher, min_shared=0)
        self._here = replace(matcher, min_shared=self.min_shared)

    def of_candidates(
        self, asked: Sequence[Asked], candidates: Sequence[Sequence[Hit]]
    ) -> tuple[list[list[Match]], Counts]:
        """Return for each document the candidates that match, the most alike first, and what was seen."""
        found: list[list[Match]] = []
        reader = Reader(self._scheme, self._dedup, self._scopes, self._seal)
        for begin in range(0, len(asked), _ROWS):
            part = slice(begin, begin + _ROWS)
            found += self._matches(reader, asked[part], candidates[part])
        return found, reader.counts

    def among(self, asked: Sequence[Asked]) -> list[tuple[int, int, float]]:
        """Return the pairs of these documents that match each other: two places, and the resemblance."""
        reader = Reader(self._scheme, self._dedup, self._scopes, self._seal)
        prints = reader.read([one.as_hit(self._dedup) for one in asked])
        ready = self._here.prepare(prints)
        near = self._here.matches(ready, np.arange(len(asked)), ready)
        ones, others = nonzero(np.triu(near, 1))
        alike = self._resemblances(prints, ones.tolist(), prints, others.tolist())
        return [(*pair, told[0]) for pair, told in zip(_pairs(ones, others), alike, strict=True)]

    def _matches(
        self, reader: Reader, asked: Sequence[Asked], candidates: Sequence[Sequence[Hit]]
    ) -> list[list[Match]]:
        hits = [hit for several in candidates for hit in several]
        found: list[list[Match]] = [[] for _ in asked]
        if not hits:
            return found
        theirs = reader.read(hits)
        # Read apart, so that what is asked for is not counted.
        seen = reader.counts
        reader.counts = Counts()
        ours = reader.read([one.as_hit(self._dedup) for one in asked])
        reader.counts = seen
        ones, others = self._decided(ours, theirs, list(map(len, candidates)))
        alike = self._resemblances(ours, ones, theirs, others)
        for row, place, (resemblance, error, same) in zip(ones, others, alike, strict=True):
            if asked[row].own != identity(hits[place]):
                found[row].append(self._match(hits[place], resemblance, error, same))
        return [sorted(matches, key=lambda match: match.place) for matches in found]

    def _decided(self, ours: Columns, theirs: Columns, counts: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the pairs that match, each document beside its own candidates only."""
        own: Mask = np.zeros((len(ours), len(theirs)), np.bool_)
        for row, (begin, end) in enumerate(_spans(counts)):
            own[row, begin:end] = True
        matcher = self._counted
        ready = matcher.prepare(ours), matcher.prepare(theirs)
        near = matcher.those_of(own.copy(), ready[0], np.arange(len(ours)), ready[1], 0)
        ones, others = nonzero(near & own)
        return ones.tolist(), others.tolist()

    def _resemblances(
        self, ours: Columns, ones: Sequence[int], theirs: Columns, others: Sequence[int]
    ) -> list[tuple[float, float, bool]]:
        """Return of pairs resemblance, standard error, and whether the texts are equal."""
        sketch = self._scheme.sketch
        agreeing = agreement_rows(
            ours.signatures[ones], theirs.signatures[others], sketch.bits, sketch.values
        )
        same = ours.digests[ones] == theirs.digests[others]
        same &= ours.digests[ones] >= 0
        told, errors = estimate(agreeing, sketch.values, sketch.bits)
        columns = np.where(same, 1.0, told), np.where(same, 0.0, errors), same
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _match(self, hit: Hit, resemblance: float, error: float, same: bool) -> Match:
        groups = (hit.get("fields") or {}).get(f"{self._dedup}.group") or (None,)
        return Match(
            *identity(hit),
            resemblance=resemblance,
            standard_error=error,
            same_text=same,
            group=groups[0],
            seq_no=hit.get("_seq_no"),
            primary_term=hit.get("_primary_term"),
            hit=hit,
        )


def _spans(counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    ends = list(accumulate(counts))
    return zip([0, *ends[:-1]], ends, strict=True)


def _pairs(ones: np.ndarray, others: np.ndarray) -> Iterator[tuple[int, int]]:
    return zip(ones.tolist(), others.tolist(), strict=True)
