"""Edit similarity: how much of two sequences of words stands in both in the same order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.scheme import Decision, SketchOptions
from shinglefold.model.values import Bytes, Int64s, Uint32s, Uint64s
from shinglefold.sketch.b_bit_minhash import Floats, agreement_rows, estimate, length_ratio, standard_error

#: Words up to which two texts are compared exactly: some 60 printed pages, and 40 ms. The time grows with the
#: square, so a pair with a longer text is left to its signature.
LONGEST = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """The words of D documents as numbers, T in all: equal words have equal numbers.

    ``numbers``: uint32 (T,), of all documents one after another. ``offsets``: int64 (D + 1,).
    """

    numbers: Uint32s
    offsets: Int64s

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, hashes: Uint64s, offsets: Int64s) -> "Words":
        """Take 64-bit hashes of tokens for words.

        32 bits of each are kept: of two texts of 500 words each, one pair in 17,000 then has two unlike words
        that count as equal, which moves its similarity by a thousandth.
        """
        return cls((hashes >> np.uint64(32)).astype(np.uint32), offsets)

    @classmethod
    def joined(cls, parts: Sequence["Words"]) -> "Words":
        """Return the documents of several parts, in order."""
        counts = [np.diff(part.offsets) for part in parts]
        ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), *counts]))
        return cls(np.concatenate([np.zeros(0, np.uint32), *(part.numbers for part in parts)]), ends)

    @classmethod
    def packed(cls, documents: Sequence[bytes]) -> "Words":
        """Return documents of which each is given as ``bytes_of`` returns it."""
        numbers = np.frombuffer(b"".join(documents), np.uint32)
        sizes = np.fromiter(map(len, documents), np.int64, len(documents)) // 4
        return cls(numbers, np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]))

    def bytes_of(self) -> Iterator[bytes]:
        """Yield the words of each document as bytes, to travel between processes."""
        for start, end in pairwise(self.offsets.tolist()):
            yield self.numbers[start:end].tobytes()

    def similarities(self, a: Int64s, b: Int64s, least: float) -> Floats:
        """Return the edit similarity of pairs of documents, float64 (P,); 0 where it is below ``least``.

        NaN where a text has more than ``LONGEST`` words: it would take too long.
        """
        bounds = self.offsets
        short = np.maximum(bounds[a + 1] - bounds[a], bounds[b + 1] - bounds[b]) <= LONGEST
        found = np.where(short, 0.0, np.nan)
        rows = np.flatnonzero(short)
        last, words = -1, []
        for row, one, other in zip(rows.tolist(), a[rows].tolist(), b[rows].tolist(), strict=True):
            # Pairs come in order of a, mostly.
            if one != last:
                last, words = one, self._words(one)
            found[row] = similarity(words, self._words(other), least)
        return found

    def _words(self, document: int) -> list[int]:
        found: list[int] = self.numbers[self.offsets[document] : self.offsets[document + 1]].tolist()
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """What D documents say: ``written``, their words as written; ``canonical``, their canonical tokens.

    ``facts``: uint64 (D,), what must be equal beside that, as ``facts_of`` has it; None where nothing must.
    """

    written: Words
    canonical: Words
    facts: Uint64s | None = None

    def __len__(self) -> int:
        return len(self.written)

    def same_facts(self, a: Int64s, b: Int64s) -> NDArray[np.bool_]:
        """Tell of which pairs of documents the facts are equal."""
        return np.ones(len(a), np.bool_) if self.facts is None else self.facts[a] == self.facts[b]

    def shared(self, a: Int64s, b: Int64s) -> Floats:
        """Return of pairs of documents the share of canonical tokens both have, wherever they stand."""
        return np.array([_shared(self._tokens(d), self._tokens(e)) for d, e in zip(a, b, strict=True)])

    def _tokens(self, document: int) -> Uint32s:
        words = self.canonical
        return words.numbers[words.offsets[document] : words.offsets[document + 1]]


def _shared(one: Uint32s, other: Uint32s) -> float:
    """Return 2·|A ∩ B|/(|A| + |B|) of two bags."""
    words, counts = np.unique(one, return_counts=True)
    others, times = np.unique(other, return_counts=True)
    _, here, there = np.intersect1d(words, others, assume_unique=True, return_indices=True)
    total = len(one) + len(other)
    return 2 * int(np.minimum(counts[here], times[there]).sum()) / total if total else 0.0


def similarity(one: Sequence[int], other: Sequence[int], least: float = 0.0) -> float:
    """Return 2·LCS/(n + m) of two sequences of n and m words, LCS the longest common subsequence; 0 of none.

    It is 1 less the share of words to be deleted or inserted (normalised Indel similarity): a replaced word
    counts as one of each, so that one word of ten replaced leaves .9.

    Args:
        least: what matters; 0 is returned for less, and found sooner.

    Cost: 5 to 20 µs for 200 to 500 words, 10 to 25 ms for 11,000, with a cut-off of .8; bit-parallel, in a
    band as wide as ``least`` allows (Hyyrö 2004).
    """
    from rapidfuzz.distance import Indel

    if not one or not other:
        return 0.0
    total = len(one) + len(other)
    # Counted in words: as a share, rounding would refuse a pair of exactly the similarity that is needed.
    allowed = int((1 - least) * total + 1e-6)
    edits: int = Indel.distance(one, other, score_cutoff=allowed)
    return 0.0 if edits > allowed else max(least, 1 - edits / total)


def alike_by_text(
    texts: Texts, a: Int64s, b: Int64s, least: float, hopeful: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.bool_], Floats]:
    """Tell which pairs of documents say the same, and how similar they are.

    Their words as written reach the edit similarity ``least``; or (1 + least)/2 of their canonical tokens
    stand in both, wherever: other endings or another order are no other text, if little else differs. Facts,
    where they count, must be equal in any case.

    Args:
        hopeful: bool (P,), for which pairs the second way is looked at; None means all.

    Returns:
        bool (P,), and the similarities, float64 (P,): 0 for less than ``least`` where a pair is none, NaN
        where a text is too long to be asked; these are no pairs.
    """
    similarity = texts.written.similarities(a, b, least)
    kept = np.nan_to_num(similarity) >= least
    open_ = ~kept & ~np.isnan(similarity)
    rest = np.flatnonzero(open_ if hopeful is None else open_ & hopeful)
    copies = rest[texts.shared(a[rest], b[rest]) >= (1 + least) / 2]
    similarity[copies] = texts.written.similarities(a[copies], b[copies], 0.0)
    kept[copies] = True
    return kept & texts.same_facts(a, b), similarity


def least_estimate(similar: float, width: int, options: SketchOptions) -> float:
    """Return the estimate below which no pair of texts need be asked for its edit similarity.

    Of two texts of n words and similarity s, (1 − s)·n words of each are in no match, and each of them spoils
    up to w shingles. So the resemblance is at least (1 − w(1 − s))/(1 + w(1 − s)), where no edit stands
    beside another; three standard errors are taken off for the estimate.
    """
    spoiled = min(1.0, width * (1 - similar))
    worst = (1 - spoiled) / (1 + spoiled)
    return max(0.0, worst - 3 * standard_error(worst, options.values, options.bits))


class PairVerdicts(NamedTuple):
    """Of P candidates, which are pairs and how alike they are."""

    kept: NDArray[np.bool_]
    resemblance: Floats
    similarity: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PairVerifier:
    """Decides on candidates as a scheme's decision says."""

    signatures: Bytes
    shingles: Int64s
    options: SketchOptions
    decision: Decision
    texts: Texts | None

    def near(self, a: Int64s, b: Int64s) -> NDArray[np.bool_]:
        """Tell which pairs of documents are near enough in length."""
        if self.decision.verify == "keywords":
            return np.ones(len(a), np.bool_)
        return length_ratio(self.shingles[a], self.shingles[b]) >= self.decision.min_length_ratio

    def verified(self, a: Int64s, b: Int64s) -> PairVerdicts:
        """Decide on pairs of documents of a length."""
        options, decision = self.options, self.decision
        rows = self.signatures[a], self.signatures[b]
        agreeing = agreement_rows(*rows, options.bits, options.values)
        resemblance, _ = estimate(agreeing, options.values, options.bits)
        similarity = np.full(len(a), np.nan)
        if decision.verify == "keywords":
            return PairVerdicts(np.ones(len(a), np.bool_), resemblance, similarity)
        kept = resemblance >= decision.min_resemblance
        if decision.verify == "text" and self.texts is not None:
            by_text = self._by_text(self.texts, a, b, resemblance, similarity)
            kept = by_text | (kept & np.isnan(similarity) & self.texts.same_facts(a, b))
        return PairVerdicts(kept, resemblance, similarity)

    def _by_text(
        self, texts: Texts, a: Int64s, b: Int64s, resemblance: Floats, similarity: Floats
    ) -> NDArray[np.bool_]:
        """Ask the texts of the pairs that may be alike; write what they tell to ``similarity``."""
        least = self.decision.min_similarity
        asked = self._may_reach(least, resemblance)
        similarity[~asked] = 0.0
        rows = np.flatnonzero(asked)
        hopeful = self._may_reach((1 + least) / 2, resemblance[rows])
        alike, similarity[rows] = alike_by_text(texts, a[rows], b[rows], least, hopeful)
        kept = np.zeros(len(a), np.bool_)
        kept[rows] = alike
        return kept

    def _may_reach(self, similar: float, resemblance: Floats) -> NDArray[np.bool_]:
        width = max(self.options.word_width, self.options.char_width)
        return resemblance >= least_estimate(similar, width, self.options)
