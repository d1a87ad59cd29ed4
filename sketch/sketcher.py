"""The sketcher: from token hashes to min-hashes, supershingles, signatures and digests."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import xxhash
from numpy.typing import NDArray

from shinglefold.model.scheme import SketchOptions
from shinglefold.model.values import Bytes, Int64s, Uint32s, Uint64s
from shinglefold.sketch.b_bit_minhash import low_bits, pack
from shinglefold.sketch.minhash import EMPTY, Affine32, BatchMinima, batch_minima, supershingles, to_keywords
from shinglefold.sketch.shingles import check_width, shingle_counts

#: Documents with fewer tokens have no digest: texts of one word are not duplicates.
LEAST_TOKENS = 2
#: Bytes of a digest. With 72 bits, one in a million collections of a hundred million documents has a
#: collision. Each further byte costs nearly four on disk: stored, indexed and as doc value.
_BYTES = 9
#: Characters of a digest: base64 without padding.
LENGTH = 12


def token_digests(hashes: Uint64s, offsets: Int64s) -> list[str]:
    """Return the digest of each document's canonical token sequence.

    Args:
        hashes: uint64 (T,), token hashes.
        offsets: int64 (D + 1,).

    Returns:
        D strings of 12 URL-safe characters (XXH3, the first 72 of 128 bits), or "" for fewer than two tokens.
    """
    data = memoryview(np.ascontiguousarray(hashes, "<u8").view(np.uint8).data)
    bounds = (offsets * 8).tolist()
    long_enough = (np.diff(offsets) >= LEAST_TOKENS).tolist()
    # Nine bytes are exactly twelve characters, so one call encodes all documents.
    joined = b"".join(xxhash.xxh3_128_digest(data[start:end])[:_BYTES] for start, end in pairwise(bounds))
    text = urlsafe_b64encode(joined).decode("ascii")
    return [
        text[LENGTH * place : LENGTH * (place + 1)] if good else "" for place, good in enumerate(long_enough)
    ]


_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Sketches:
    """The sketches of D documents.

    ``minima``: uint32 (D, K), with ``both_ends`` the second half are maxima; 2³² − 1 for documents that are
    not valid.
    ``shingles``: int64 (D,), shingle positions: max(0, tokens − width + 1).
    ``valid``: bool (D,), whether a document has enough distinct shingles for a signature.
    """

    minima: Uint32s
    shingles: Int64s
    valid: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.shingles)


@dataclass(frozen=True, slots=True)
class Sketcher:
    """Sketches documents by one set of options.

    ``block``: tokens processed at a time, chosen for the cache; the sketches do not depend on it.
    """

    options: SketchOptions = SketchOptions()
    block: int = _BLOCK
    functions: Affine32 = field(init=False, compare=False, repr=False)
    documents: BatchMinima = field(default=batch_minima, compare=False, repr=False)

    def __post_init__(self) -> None:
        count = self.options.values // (1 + self.options.both_ends)
        object.__setattr__(self, "functions", Affine32.of(count, self.options.seed))

    def compiled(self) -> "Sketcher":
        """Return a sketcher with the same results that runs compiled code.

        Raises:
            ImportError: numba is not installed.
        """
        from shinglefold.sketch.compiled_sketch import compiled_documents

        return replace(self, documents=compiled_documents)

    def sketch(self, hashes: Uint64s, offsets: Int64s, widths: Int64s | int | None = None) -> Sketches:
        """Sketch a batch of documents.

        Args:
            hashes: uint64 (T,), the token hashes of all documents one after another.
            offsets: int64 (D + 1,), ascending; document d is ``hashes[offsets[d]:offsets[d + 1]]``.
            widths: the shingle width of each document, int64 (D,), or of all; by default ``word_width``.

        Raises:
            ConfigError: a width is outside 1…10.

        The sketch of a document does not depend on the rest of the batch.

        Cost: for a document of 500 tokens, 4 µs, 3 more if repeats count, and 0.11 µs for each function (0.14
        with ``both_ends``). This is for batches of at least 16,000 tokens.
        """
        width = self.options.word_width if widths is None else widths
        each = np.broadcast_to(np.asarray(width, np.int64), (len(offsets) - 1,))
        for one in np.unique(each).tolist():
            check_width(one)
        result = Sketches(
            np.full((len(each), self.options.values), EMPTY, np.uint32),
            np.zeros(len(each), np.int64),
            np.zeros(len(each), np.bool_),
        )
        for block in _blocks(offsets, self.block):
            for one in np.unique(each[block]).tolist():
                chosen = block.start + np.flatnonzero(each[block] == one)
                self._sketch(*_select(hashes, offsets, chosen), one, result, chosen)
        return result

    def supershingles(self, sketches: Sketches, every: bool = False) -> Uint64s:
        """Return the M supershingles of each document, uint64 (D, M); zeros if it is not valid.

        Args:
            every: make supershingles of all K values, so M is K // N, instead of only the stored ones.
        """
        options = self.options
        groups = options.values // options.group_size if every else options.groups
        found = supershingles(sketches.minima, groups, options.group_size)
        found[~sketches.valid] = 0
        return found

    def keywords(self, sketches: Sketches) -> list[tuple[str, ...]]:
        """Return the M keywords of each document; none if it is not valid."""
        return to_keywords(self.supershingles(sketches), sketches.valid)

    def signatures(self, sketches: Sketches) -> Bytes:
        """Return the packed signatures, uint8 (D, ceil(K·bits/8)); zeros for documents that are not valid."""
        packed = pack(low_bits(sketches.minima, self.options.bits), self.options.bits)
        packed[~sketches.valid] = 0
        return packed

    def _sketch(self, hashes: Uint64s, offsets: Int64s, width: int, result: Sketches, rows: Int64s) -> None:
        found, valid = self.documents(hashes, offsets, width, self.options, self.functions)
        # Consecutive rows are copied by one slice.
        own = slice(int(rows[0]), int(rows[-1]) + 1) if rows[-1] - rows[0] + 1 == len(rows) else rows
        result.minima[own], result.valid[own] = found, valid
        result.shingles[own] = shingle_counts(offsets, width)


def _blocks(offsets: Int64s, tokens: int) -> Iterator[slice]:
    """Yield runs of documents with at most this many tokens, or single longer documents."""
    begin, documents = 0, len(offsets) - 1
    while begin < documents:
        end = int(np.searchsorted(offsets, offsets[begin] + tokens, "right")) - 1
        end = min(max(end, begin + 1), documents)
        yield slice(begin, end)
        begin = end


def _select(hashes: Uint64s, offsets: Int64s, chosen: Int64s) -> tuple[Uint64s, Int64s]:
    """Return the tokens of the given documents, and their offsets."""
    first, last = int(chosen[0]), int(chosen[-1])
    if last - first + 1 == len(chosen):
        return hashes[offsets[first] : offsets[last + 1]], offsets[first : last + 2] - offsets[first]
    starts, lengths = offsets[:-1][chosen], np.diff(offsets)[chosen]
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    inside = np.arange(int(ends[-1])) + np.repeat(starts - ends[:-1], lengths)
    return hashes[inside], ends
