"""All near-duplicate pairs of a collection."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.scheme import Decision, SketchOptions
from shinglefold.model.values import Bytes, Int64s, Uint64s
from shinglefold.sketch.b_bit_minhash import Floats
from shinglefold.sketch.candidates import CHUNK, nominate, ragged
from shinglefold.sketch.verification import PairVerifier, Texts


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of documents by their places in the collection: a < b.

    ``a``, ``b``: int64 (P,). ``resemblance``: float64 (P,), estimated; 1 where the digests are equal.
    ``similarity``: float64 (P,), the edit similarity of the texts; 1 where the digests are equal, NaN where
    the texts were not asked.
    """

    a: Int64s
    b: Int64s
    resemblance: Floats
    similarity: Floats

    def __len__(self) -> int:
        return len(self.a)


def find_pairs(  # noqa: PLR0917 - one column of the collection each
    supershingles: Uint64s,
    signatures: Bytes,
    shingles: Int64s,
    digests: Sequence[Hashable],
    options: SketchOptions,
    decision: Decision,
    valid: NDArray[np.bool_],
    texts: Texts | None = None,
) -> Pairs:
    """Return all near-duplicate pairs of D documents, ascending by a, then b.

    Two documents are a pair where their digests are equal and not empty; or where both are valid, share
    ``decision.min_shared`` supershingles and are verified as ``decision.verify`` says: by nothing more; by
    the estimated resemblance and the length ratio; or by their texts, where these are given: s is the
    edit similarity of the words as written they must reach; or (1 + s)/2 of their canonical tokens must stand
    in both, wherever, as in copies with other endings or moved passages. A pair with a text of more than
    ``edit.LONGEST`` words is verified by its signatures.

    Args:
        supershingles: uint64 (D, M or more): of all values, where they are at hand. The further ones find
            pairs that those an index stores would miss; where two must be shared, or where they decide, they
            don't count.
        signatures: uint8 (D, B), packed with ``options.bits``.
        shingles: int64 (D,), shingle positions.
        digests: of all D documents: equal for equal texts, and empty for none.
        valid: bool (D,); the rows of others are not looked at.
        texts: of all D documents.

    Cost: sorting, and work in proportion to the candidates; never all with all. Memory grows with the
    pairs found: ``iter_pairs`` hands them out in chunks.
    """
    found = list(iter_pairs(supershingles, signatures, shingles, digests, options, decision, valid, texts))
    whole = _joined(found)
    order = np.lexsort((whole.b, whole.a))
    return Pairs(*(getattr(whole, column.name)[order] for column in fields(Pairs)))


def iter_pairs(  # noqa: PLR0917 - as find_pairs
    supershingles: Uint64s,
    signatures: Bytes,
    shingles: Int64s,
    digests: Sequence[Hashable],
    options: SketchOptions,
    decision: Decision,
    valid: NDArray[np.bool_],
    texts: Texts | None = None,
    chunk: int = CHUNK,
) -> Iterator[Pairs]:
    """Yield what ``find_pairs`` returns in chunks of at most ``chunk`` pairs; every pair once, unordered."""
    if decision.min_shared > 1 or decision.verify == "keywords":
        supershingles = supershingles[:, : options.groups]
    codes = _codes(digests)
    yield from _equal_digests(codes, chunk)
    twins = _twins(codes, supershingles, signatures, shingles, valid)
    leaders = np.flatnonzero((twins == np.arange(len(twins))) & valid)
    members = _Members.of(twins, leaders)
    judge = PairVerifier(signatures, shingles, options, decision, texts)
    for a, b in nominate(supershingles[leaders], decision.min_shared, chunk):
        other_text = (codes[leaders[a]] != codes[leaders[b]]) | (codes[leaders[a]] < 0)
        near = other_text & judge.near(leaders[a], leaders[b])
        ones, others = a[near], b[near]
        told = judge.verified(leaders[ones], leaders[others])
        kept = told.kept
        yield from members.expand(
            ones[kept], others[kept], told.resemblance[kept], told.similarity[kept], chunk
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Members:
    """The documents behind each leader: ``documents[starts[i]:starts[i] + sizes[i]]`` for leader i."""

    documents: Int64s
    starts: Int64s
    sizes: Int64s

    @classmethod
    def of(cls, twins: Int64s, leaders: Int64s) -> "_Members":
        documents = np.argsort(twins, kind="stable").astype(np.int64)
        ranked = twins[documents]
        starts = np.searchsorted(ranked, leaders, "left").astype(np.int64)
        return cls(documents, starts, np.searchsorted(ranked, leaders, "right").astype(np.int64) - starts)

    def expand(
        self, a: Int64s, b: Int64s, resemblance: Floats, similarity: Floats, chunk: int
    ) -> Iterator[Pairs]:
        """Yield every member of leader a with every member of leader b."""
        for owner, number in ragged(self.sizes[a] * self.sizes[b], chunk):
            of_a, of_b = np.divmod(number, self.sizes[b[owner]])
            one = self.documents[self.starts[a[owner]] + of_a]
            other = self.documents[self.starts[b[owner]] + of_b]
            low, high = np.minimum(one, other), np.maximum(one, other)
            yield Pairs(low, high, resemblance[owner], similarity[owner])


def _codes(digests: Iterable[Hashable]) -> Int64s:
    """Number the digests from 0; −1 for an empty one."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(d, len(numbers)) if d else -1 for d in digests], np.int64)


def _equal_digests(codes: Int64s, chunk: int) -> Iterator[Pairs]:
    ranked = np.argsort(codes, kind="stable").astype(np.int64)
    ranked = ranked[np.searchsorted(codes[ranked], 0) :]
    ends = np.searchsorted(codes[ranked], codes[ranked], "right")
    # Each document is paired with those of its digest that stand behind it.
    for owner, number in ragged(ends - np.arange(len(ranked)) - 1, chunk):
        same = np.ones(len(owner))
        yield Pairs(ranked[owner], ranked[owner + 1 + number], same, same)


def _twins(
    codes: Int64s, supershingles: Uint64s, signatures: Bytes, shingles: Int64s, valid: NDArray[np.bool_]
) -> Int64s:
    """Return for each document the first one of the same digest and sketch: itself, mostly.

    Thousands of copies of one page then cost the search of candidates no more than one.
    """
    twins = np.arange(len(codes), dtype=np.int64)
    if not len(codes):
        return twins
    _, first, number = np.unique(codes, return_index=True, return_inverse=True)
    twin = first[number]
    same = (codes >= 0) & valid & valid[twin] & (shingles == shingles[twin]) & (twin != twins)
    copies = np.flatnonzero(same)
    originals = twin[copies]
    # Equal digests can have unequal sketches: two languages with shingles of different widths.
    same[copies] = (supershingles[copies] == supershingles[originals]).all(axis=1)
    same[copies] &= (signatures[copies] == signatures[originals]).all(axis=1)
    return np.where(same, twin, twins)


def _joined(parts: Sequence[Pairs]) -> Pairs:
    nothing = np.zeros(0, np.int64)
    parts = parts or [Pairs(nothing, nothing, np.zeros(0), np.zeros(0))]
    columns = (np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Pairs))
    return Pairs(*columns)
