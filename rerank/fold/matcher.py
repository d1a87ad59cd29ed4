"""Decides which hits of a request match, and which need their texts; compares few with many."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import ConfigError
from shinglefold.model.scheme import Decision, Scheme
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.rerank.hits import FingerprintColumns
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.sketch.b_bit_minhash import (
    agreement_rows,
    bit_planes,
    count_differing,
    estimate,
    least_estimate,
    length_ratio,
    standard_error,
)

Mask = NDArray[np.bool_]
#: The number of rows compared at a time, so that intermediate results stay in the processor's cache.
ROWS = 64
#: With at most this many pairs, lengths are compared pair by pair.
_FEW_PAIRS = 1 << 13
#: Standard deviations by which unrelated pairs must exceed the bits in which matching pairs may differ. One
#: false candidate costs as much as comparing one word of all pairs.
_DEVIATIONS = 5
#: With at most this many candidates per hit, they are decided one by one.
_DENSE = 16
#: A pair is uncertain if its estimate is at most this many standard errors above the threshold.
_UNCERTAIN_ERRORS = 2.0
#: Attributes derived from the signatures, a column for each hit.
_PLANES = ("plane", "planes")


@dataclass(frozen=True)
class Compared:
    """Fingerprints prepared for comparison; derived columns are computed on first use.

    Args:
        prints: the fingerprints.
        bits: bits of a value.
    """

    prints: FingerprintColumns
    bits: int

    def __len__(self) -> int:
        return len(self.prints)

    @cached_property
    def plane(self) -> Uint64s:
        """The lowest bit of every value of a hit, packed: uint64 (1, words, n)."""
        made: Uint64s | None = self.__dict__.get("planes")
        return bit_planes(self.prints.signatures, self.bits, 1) if made is None else made[:1]

    @cached_property
    def planes(self) -> Uint64s:
        """Every bit of the values, packed alike: uint64 (bits, words, n)."""
        return bit_planes(self.prints.signatures, self.bits)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The positions of the hits that have a supershingle, by supershingle."""
        places: dict[str, list[int]] = {}
        for place, words in enumerate(self.prints.keywords):
            for word in set(words):
                places.setdefault(word, []).append(place)
        return places

    @cached_property
    def repeated(self) -> bool:
        """Whether two hits have the same text."""
        texts: list[int] = self.prints.digests[self.prints.digests >= 0].tolist()
        return len(set(texts)) < len(texts)

    def take(self, rows: list[int]) -> "Compared":
        """Return the fingerprints of the given rows, with their derived columns."""
        taken = Compared(self.prints.take(rows), self.bits)
        made = taken.__dict__
        for name in _PLANES:
            if name in self.__dict__:
                made[name] = self.__dict__[name][:, :, rows]
        return taken

    def join(self, other: "Compared") -> "Compared":
        """Return these fingerprints followed by the others, with the derived columns that both have."""
        joined = Compared(self.prints.join(other.prints), self.bits)
        made = joined.__dict__
        for name in _PLANES:
            if name in self.__dict__ and name in other.__dict__:
                made[name] = np.concatenate((self.__dict__[name], other.__dict__[name]), axis=2)
        return joined


@dataclass(frozen=True, slots=True)
class Matcher:
    """Decides which hits of one request match, under one scheme.

    Two hits match when their digests are equal. They also match when both have a signature and similar
    lengths, share ``min_shared`` supershingles and agree in at least ``need`` of their values, whatever their
    languages. In both cases all scopes must be equal; a hit without a value for a scope matches none. Hits
    whose facts differ never match.
    """

    values: int
    bits: int
    need: int
    min_shared: int
    min_length_ratio: float
    spans: tuple[float, ...]

    @classmethod
    def of(cls, scheme: Scheme, options: FoldOptions) -> "Matcher":
        """Return the matcher of a request; options that are None follow the scheme.

        Raises:
            ConfigError: neither resemblance nor supershingles are required, so everything would match.
        """
        sketch, decision = scheme.sketch, scheme.decision
        least = _or_default(options.min_resemblance, decision.min_resemblance)
        shared = _or_default(options.min_shared, 0 if least > 0 else decision.min_shared)
        if least <= 0 and shared < 1:
            raise ConfigError("min_resemblance 0 and min_shared 0 would fold everything: raise one of them")
        return cls(
            values=sketch.values,
            bits=sketch.bits,
            need=_agreement_for(least, sketch.values, sketch.bits),
            min_shared=int(shared),
            min_length_ratio=_or_default(options.min_length_ratio, decision.min_length_ratio),
            spans=tuple(0.0 if scope.within is None else scope.within for scope in options.scope),
        )

    def prepare(self, prints: FingerprintColumns) -> Compared:
        """Return fingerprints prepared for comparison."""
        return Compared(prints, self.bits)

    def matches(self, ones: Compared, rows: Int64s, others: Compared, begin: int = 0) -> Mask:
        """Return bool (R, m − begin): which of the rows of ``ones`` match which of ``others`` from ``begin``.

        If ``ones`` is ``others``, no hit matches itself.

        Cost: about 8 ns a pair, more if most are alike.
        """
        found = [np.zeros((0, len(others) - begin), np.bool_)]
        for at in range(0, len(rows), ROWS):
            part = rows[at : at + ROWS]
            near = self.candidates(ones, part, others, begin)
            found.append(self.decide(near, ones, part, others, begin))
        return np.concatenate(found)

    def candidates(self, ones: Compared, rows: Int64s, others: Compared, begin: int) -> Mask:
        """Return which pairs may match by their signatures.

        Compares one bit of each value, and of only as many values as rule out unrelated pairs, which agree in
        half of the bits. Signatures agree in at least as many bits as values, so no match is lost.
        """
        words = self.sufficient_words
        near = self._agreement_mask(ones.plane[:, :words], rows, others.plane[:, :words], begin)
        if self.min_shared:
            near &= _shared_counts(ones.prints, rows, others, begin) >= self.min_shared
        return _without_self(near, ones, rows, others, begin)

    def later_candidates(self, block: Compared, begin: int, end: int) -> Mask:
        """Return which later hits may match each from ``begin`` to ``end``: bool (end − begin, n − begin)."""
        plane = block.plane[:, : self.sufficient_words]
        count = end - begin
        if self.need:
            near = count_differing(plane[:, :, begin:end], plane[:, :, begin:]) <= self.values - self.need
        else:
            near = np.ones((count, len(block) - begin), np.bool_)
        if self.min_shared:
            near &= _shared_counts(block.prints, np.arange(begin, end), block, begin) >= self.min_shared
        places = np.arange(count)
        near[:, :count] &= places > places[:, None]
        return near

    def decide(self, near: Mask, ones: Compared, rows: Int64s, others: Compared, begin: int) -> Mask:
        """Return which candidates match. Writes to ``near``."""
        decide = self.decide_dense if is_dense(near) else self.decide_sparse
        return decide(near, ones, rows, others, begin)

    def decide_dense(self, near: Mask, ones: Compared, rows: Int64s, others: Compared, begin: int) -> Mask:
        """Return which candidates match, comparing all pairs at once; for many candidates."""
        near = near & self._agreement_mask(ones.planes, rows, others.planes, begin)
        near &= self._alike(ones, rows, others, begin)
        return self._apply_digests_and_scopes(near, ones, rows, others, begin)

    def decide_sparse(self, near: Mask, ones: Compared, rows: Int64s, others: Compared, begin: int) -> Mask:
        """Return which candidates match, comparing one by one; for few candidates. Writes to ``near``."""
        self._decide(near, ones.prints, rows, others.prints, begin)
        return self._apply_digests_and_scopes(near, ones, rows, others, begin)

    def _apply_digests_and_scopes(
        self, near: Mask, ones: Compared, rows: Int64s, others: Compared, begin: int
    ) -> Mask:
        """Add pairs with equal digests; remove pairs of different scopes."""
        if others is not ones or ones.repeated:
            texts = ones.prints.digests[rows, None]
            near |= (texts == others.prints.digests[None, begin:]) & (texts >= 0)
            near = _without_self(near, ones, rows, others, begin)
        for column, span in enumerate(self.spans):
            # NaN stands for no value and compares false.
            here = ones.prints.scopes[rows, column, None]
            near &= np.abs(here - others.prints.scopes[None, begin:, column]) <= span
        return without_other_facts(near, ones.prints, rows, others.prints, begin)

    @property
    def sufficient_words(self) -> int | None:
        """How many words of a bit plane rule out unrelated pairs; None: all."""
        return _sufficient_words(self.values, self.bits, self.values - self.need)

    def _agreement_mask(self, ones: Uint64s, rows: Int64s, others: Uint64s, begin: int) -> Mask:
        """Return which pairs differ in at most as many bits of these planes as matching pairs may."""
        if not self.need:
            return np.ones((len(rows), others.shape[2] - begin), np.bool_)
        return count_differing(ones[:, :, rows], others[:, :, begin:]) <= self.values - self.need

    def _alike(self, ones: Compared, rows: Int64s, others: Compared, begin: int) -> Mask:
        """Return which pairs have signatures and similar lengths."""
        here, there = ones.prints, others.prints
        alike = here.signed[rows, None] & there.signed[None, begin:]
        if self.min_length_ratio:
            alike &= self._similar_lengths(ones, rows, others, begin)
        return alike

    def _similar_lengths(self, ones: Compared, rows: Int64s, others: Compared, begin: int) -> Mask:
        """Return which pairs have similar lengths."""
        own, lengths = ones.prints.shingles[rows, None], others.prints.shingles[None, begin:]
        if own.size * lengths.size <= _FEW_PAIRS:
            return length_ratio(own, lengths) >= self.min_length_ratio
        least, most = length_bounds(own[:, 0], self.min_length_ratio)
        return (lengths >= least[:, None]) & (lengths <= most[:, None])

    def matches_of_pairs(
        self, prints: FingerprintColumns, one: Int64s, other: Int64s, agreeing: NDArray[np.integer[Any]]
    ) -> Mask:
        """Return which of these pairs match, given how many of their values agree: bool (P,)."""
        near = self._comparable(prints, one, prints, other) & (agreeing >= self.need)
        if self.min_shared:
            words = [set(own) for own in prints.keywords]
            shared = [len(words[a] & words[b]) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
            near &= np.array(shared, np.int64) >= self.min_shared
        texts = prints.digests
        near |= (texts[one] == texts[other]) & (texts[one] >= 0)
        for column, span in enumerate(self.spans):
            near &= np.abs(prints.scopes[one, column] - prints.scopes[other, column]) <= span
        if prints.facts is not None:
            near &= _facts_agree(prints.facts[one], prints.facts[other])
        return near

    def at(self, resemblance: float) -> "Matcher":
        """Return the same matcher with another minimum resemblance."""
        return replace(self, need=_agreement_for(resemblance, self.values, self.bits))

    def _decide(
        self, near: Mask, ones: FingerprintColumns, rows: Int64s, others: FingerprintColumns, begin: int
    ) -> None:
        """Remove the candidates that do not match by their signatures."""
        flat = np.flatnonzero(near)
        if not len(flat):
            return
        row, column = np.divmod(flat, near.shape[1])
        one, other = rows[row], column + begin
        close = self._comparable(ones, one, others, other)
        if self.need:
            # take() copies whole rows several times faster than indexing.
            signatures = ones.signatures.take(one, axis=0), others.signatures.take(other, axis=0)
            close &= agreement_rows(*signatures, self.bits, self.values) >= self.need
        near.reshape(-1)[flat] = close

    def _comparable(
        self, ones: FingerprintColumns, one: Int64s, others: FingerprintColumns, other: Int64s
    ) -> Mask:
        """Return which pairs have signatures and similar lengths: bool (P,)."""
        close: Mask = ones.signed[one] & others.signed[other]
        if self.min_length_ratio:
            close &= length_ratio(ones.shingles[one], others.shingles[other]) >= self.min_length_ratio
        return close


def without_other_facts(
    near: Mask, ones: FingerprintColumns, rows: Int64s, others: FingerprintColumns, begin: int = 0
) -> Mask:
    """Return pairs without those whose facts differ; a hit without facts differs from none."""
    if ones.facts is None or others.facts is None:
        return near
    return near & _facts_agree(ones.facts[rows, None], others.facts[None, begin:])


def _facts_agree(here: NDArray[np.int32], there: NDArray[np.int32]) -> Mask:
    agree: Mask = (here == there) | (here == 0) | (there == 0)
    return agree


def nonzero(near: Mask) -> tuple[Int64s, Int64s]:
    """Return rows and columns of all True in row order, several times faster than ``numpy.nonzero``."""
    row, column = np.divmod(np.flatnonzero(near), np.int64(max(1, near.shape[1])))
    return row, column


def is_dense(near: Mask) -> bool:
    """Return whether hits have so many candidates that comparing all pairs at once is cheaper."""
    return bool(np.count_nonzero(near) > _DENSE * len(near))


def _or_default(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


@lru_cache(64)
def _agreement_for(resemblance: float, values: int, bits: int) -> int:
    """Return the least number of agreeing values whose estimate reaches a resemblance."""
    estimates, _ = estimate(np.arange(values + 1), values, bits)
    return int(np.searchsorted(estimates, resemblance))


@lru_cache(64)
def _sufficient_words(values: int, bits: int, most: int) -> int | None:
    """Return how many words of 64 values rule out nearly all unrelated pairs; None if even all values do not.

    Of n bits of unrelated signatures n/2 differ, ± √n/2: more than in matching pairs.

    Args:
        most: bits in which matching pairs may differ.
    """
    for words in range(1, values * bits // (64 * bits) + 1):
        compared = 64 * words
        if compared / 2 - _DEVIATIONS * compared**0.5 / 2 >= most:
            return words
    return None


def _without_self(near: Mask, ones: Compared, rows: Int64s, others: Compared, begin: int) -> Mask:
    if ones is others:
        near[np.arange(len(rows)), rows - begin] = False
    return near


def length_bounds(shingles: Int64s, ratio: float) -> tuple[Int64s, Int64s]:
    """Return the least and the greatest number of shingles whose length ratio to each is sufficient.

    The bounds are calculated and then searched for among their neighbours, so that rounding decides as
    ``length_ratio`` does.

    Args:
        shingles: int64 (n,), below 2**51.
        ratio: above 0, at most 1.
    """
    about = np.arange(-1, 2)
    own = np.maximum(shingles, 0)[:, None]
    short = np.ceil(own * (ratio / (2 - ratio))).astype(np.int64) + about
    long = np.floor(np.minimum(own * ((2 - ratio) / ratio), 2.0**51)).astype(np.int64) + about
    low, high = np.clip(short, 0, own), np.maximum(long, own)
    least = np.where(length_ratio(own, low) >= ratio, low, own).min(axis=1)
    return least, np.where(length_ratio(own, high) >= ratio, high, own).max(axis=1)


def _shared_counts(
    ones: FingerprintColumns, rows: Int64s, others: Compared, begin: int
) -> NDArray[np.uint16]:
    """Return the number of supershingles that pairs share, uint16 (R, m − begin)."""
    counts = np.empty((len(rows), len(others)), np.uint16)
    for row, place in enumerate(rows.tolist()):
        found = [other for word in set(ones.keywords[place]) for other in others.places.get(word, ())]
        counts[row] = np.bincount(found, minlength=len(others))
    return counts[:, begin:]


class UncertaintyBand(NamedTuple):
    """The range of estimates in which texts decide a pair.

    ``possible``: matches from the least estimate at which texts can still be alike. A limit of
    two standard errors below the threshold would miss as many copies as it finds.
    ``sure``: matches from two standard errors above the threshold.
    """

    possible: Matcher
    sure: Matcher

    @classmethod
    def of(cls, scheme: Scheme, options: FoldOptions) -> "UncertaintyBand | None":
        """Return the band of a decision; None if no resemblance is required."""
        given = options.min_resemblance
        least = scheme.decision.min_resemblance if given is None else given
        return None if least <= 0 else _band(Matcher.of(scheme, options), scheme, scheme.decision, least)


@lru_cache(16)
def _band(matcher: Matcher, scheme: Scheme, decision: Decision, least: float) -> UncertaintyBand:
    """Return the band; ``decision`` is part of the cache key, because equal schemes may differ in it."""
    low, most = uncertain_range(scheme, least)
    return UncertaintyBand(matcher.at(low), matcher.at(most))


def uncertain_range(scheme: Scheme, least: float) -> tuple[float, float]:
    """Return the range of estimates in which texts decide, for a threshold."""
    decision, sketch = scheme.decision, scheme.sketch
    width = max(sketch.word_width, sketch.char_width)
    low = min(least, max(1e-9, least_estimate(decision.min_similarity, width, sketch)))
    return low, min(1.0, least + _UNCERTAIN_ERRORS * standard_error(least, sketch.values, sketch.bits))
