"""All near-duplicate pairs of a collection."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.scheme import Decision, SketchOptions
from shinglefold.model.values import Bytes, Int64s, Uint64s, fact_codes
from shinglefold.sketch.b_bit_minhash import Floats
from shinglefold.sketch.candidates import CHUNK, iter_ragged, nominate
from shinglefold.sketch.verification import PairVerifier, Texts


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of documents by their positions in the collection: a < b.

    ``a``, ``b``: int64 (P,). ``resemblance``: float64 (P,), estimated; 1 if the digests are equal.
    ``similarity``: float64 (P,), the edit similarity of the texts; 1 if the digests are equal, NaN if the
    texts were not compared.
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
    """Return all near-duplicate pairs of D documents, sorted by a, then b.

    Two documents are a pair if their digests are equal and not empty. They are also a pair if both are valid,
    share ``decision.min_shared`` supershingles, and pass the check that ``decision.verify`` names:

    * ``keywords``: none.
    * ``signature``: the estimated resemblance and the length ratio.
    * ``text``: their texts, as in ``alike_by_text``. Pairs with a text of more than
      ``verification.LONGEST`` words, or without texts, are checked by signature.

    Args:
        supershingles: uint64 (D, M or more). Supershingles beyond the M stored ones find more pairs. They are
            ignored if two must be shared, or if keywords decide.
        signatures: uint8 (D, B), packed with ``options.bits``.
        shingles: int64 (D,), shingle positions.
        digests: equal for equal texts; empty for a text without one. Documents whose digests have different
            facts are not a pair.
        valid: bool (D,); rows of other documents are ignored.
        texts: the texts of all documents, if they are available.

    Cost: sorting, then in proportion to the candidates. Memory grows with the pairs; ``iter_pairs`` yields
    them in chunks.
    """
    found = list(iter_pairs(supershingles, signatures, shingles, digests, options, decision, valid, texts))
    whole = _concatenate(found)
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
    """Yield the pairs of ``find_pairs``, unordered, in chunks of at most ``chunk``."""
    if decision.min_shared > 1 or decision.verify == "keywords":
        supershingles = supershingles[:, : options.groups]
    codes = _codes(digests)
    yield from _equal_digests(codes, chunk)
    originals = _originals(codes, supershingles, signatures, shingles, valid)
    leaders = np.flatnonzero((originals == np.arange(len(originals))) & valid)
    members = _Members.of(originals, leaders)
    verifier = PairVerifier(signatures, shingles, options, decision, texts, fact_codes(digests))
    for a, b in nominate(supershingles[leaders], decision.min_shared, chunk):
        other_text = (codes[leaders[a]] != codes[leaders[b]]) | (codes[leaders[a]] < 0)
        near = other_text & verifier.similar_length(leaders[a], leaders[b])
        ones, others = a[near], b[near]
        verdicts = verifier.verify(leaders[ones], leaders[others])
        kept = verdicts.kept
        yield from members.expand(
            ones[kept], others[kept], verdicts.resemblance[kept], verdicts.similarity[kept], chunk
        )


def find_leaders(  # noqa: PLR0917 - as find_pairs
    supershingles: Uint64s,
    signatures: Bytes,
    shingles: Int64s,
    digests: Sequence[Hashable],
    options: SketchOptions,
    decision: Decision,
    valid: NDArray[np.bool_],
    texts: Texts | None = None,
) -> Int64s:
    """Return the leader of each of D documents: ``leader_clusters`` of the pairs, without verifying all.

    Copies have the leader of the first document with their text.

    Returns:
        int64 (D,); a document without a near-duplicate is its own leader.

    Cost: sorting, and a verification for each document and each leader that it may match. So a crowd of n
    near-copies costs n verifications, not n²/2.
    """
    if decision.min_shared > 1 or decision.verify == "keywords":
        supershingles = supershingles[:, : options.groups]
    firsts = _firsts(_codes(digests))
    rows = np.flatnonzero((firsts == np.arange(len(firsts))) & valid)
    verifier = PairVerifier(signatures, shingles, options, decision, texts, fact_codes(digests))
    leader = np.arange(len(firsts), dtype=np.int64)
    for a, b in nominate(supershingles[rows], decision.min_shared):
        ones, begins = np.unique(a, return_index=True)
        # ``split`` returns one empty part even without pairs.
        for one, others in zip(rows[ones].tolist(), np.split(rows[b], begins[1:]), strict=False):
            if leader[one] != one:
                continue
            free = others[leader[others] == others]
            free = free[verifier.similar_length(np.full(len(free), one), free)]
            if len(free):
                leader[free[verifier.verify(np.full(len(free), one), free).kept]] = one
    return leader[firsts]


def _firsts(codes: Int64s) -> Int64s:
    """Return for each document the first one with the same digest."""
    own = np.arange(len(codes), dtype=np.int64)
    if not len(codes):
        return own
    _, first, number = np.unique(codes, return_index=True, return_inverse=True)
    return np.where(codes >= 0, first[number], own)


@dataclass(frozen=True, slots=True, eq=False)
class _Members:
    """The copies of each leader: ``documents[starts[i]:starts[i] + sizes[i]]`` for leader i."""

    documents: Int64s
    starts: Int64s
    sizes: Int64s

    @classmethod
    def of(cls, originals: Int64s, leaders: Int64s) -> "_Members":
        documents = np.argsort(originals, kind="stable").astype(np.int64)
        ranked = originals[documents]
        starts = np.searchsorted(ranked, leaders, "left").astype(np.int64)
        return cls(documents, starts, np.searchsorted(ranked, leaders, "right").astype(np.int64) - starts)

    def expand(
        self, a: Int64s, b: Int64s, resemblance: Floats, similarity: Floats, chunk: int
    ) -> Iterator[Pairs]:
        """Yield the pairs of each copy of leader a with each copy of leader b."""
        for owner, number in iter_ragged(self.sizes[a] * self.sizes[b], chunk):
            of_a, of_b = np.divmod(number, self.sizes[b[owner]])
            one = self.documents[self.starts[a[owner]] + of_a]
            other = self.documents[self.starts[b[owner]] + of_b]
            low, high = np.minimum(one, other), np.maximum(one, other)
            yield Pairs(low, high, resemblance[owner], similarity[owner])


def _codes(digests: Iterable[Hashable]) -> Int64s:
    """Return a number for each distinct digest, from 0; −1 for an empty digest."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(d, len(numbers)) if d else -1 for d in digests], np.int64)


def _equal_digests(codes: Int64s, chunk: int) -> Iterator[Pairs]:
    ranked = np.argsort(codes, kind="stable").astype(np.int64)
    ranked = ranked[np.searchsorted(codes[ranked], 0) :]
    ends = np.searchsorted(codes[ranked], codes[ranked], "right")
    # Each document is paired with the later ones of its digest.
    for owner, number in iter_ragged(ends - np.arange(len(ranked)) - 1, chunk):
        same = np.ones(len(owner))
        yield Pairs(ranked[owner], ranked[owner + 1 + number], same, same)


def _originals(
    codes: Int64s, supershingles: Uint64s, signatures: Bytes, shingles: Int64s, valid: NDArray[np.bool_]
) -> Int64s:
    """Return for each document the first one with the same digest and sketch, usually itself.

    So thousands of copies of one page cost the search for candidates no more than one.
    """
    own = np.arange(len(codes), dtype=np.int64)
    if not len(codes):
        return own
    _, first, number = np.unique(codes, return_index=True, return_inverse=True)
    original = first[number]
    same = (codes >= 0) & valid & valid[original] & (shingles == shingles[original]) & (original != own)
    copies = np.flatnonzero(same)
    copied = original[copies]
    # Equal digests can have different sketches: two languages with shingles of different widths.
    same[copies] = (supershingles[copies] == supershingles[copied]).all(axis=1)
    same[copies] &= (signatures[copies] == signatures[copied]).all(axis=1)
    return np.where(same, original, own)


def _concatenate(parts: Sequence[Pairs]) -> Pairs:
    nothing = np.zeros(0, np.int64)
    parts = parts or [Pairs(nothing, nothing, np.zeros(0), np.zeros(0))]
    columns = (np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Pairs))
    return Pairs(*columns)
