"""Fingerprints of as many documents as wanted, made up by a seed: groups, exact copies and boilerplate."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shinglefold.model.scheme import Scheme
from shinglefold.model.values import Bytes, Int64s, Uint32s, Uint64s
from shinglefold.sketch.b_bit_minhash import packed_size
from shinglefold.sketch.minhash import letters
from shinglefold.sketch.shingles import mix64

#: The share of documents that have near-copies, of these that are exact ones, and the largest group of a
#: million.
_COPIES, _EXACT, _LARGEST = 0.3, 0.2, 1_000
#: How much of its text a copy keeps, and documents that share boilerplate, as shares of all: in three slots.
_KEPT, _BOILERPLATE, _SLOTS = (0.82, 0.98), (0.01, 0.005, 0.0025, 0.001), 3
_ROWS = 1 << 16
_BITS = np.uint64(30)


@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """D documents: ``groups`` says of which text each is, int64 (D,); ``sizes``: how many are of a text."""

    scheme: Scheme
    groups: Int64s
    sizes: Int64s
    boilerplate: Int64s
    seed: int

    @classmethod
    def of(cls, scheme: Scheme, count: int, seed: int = 1) -> "Planted":
        """Return so many, in random order."""
        chance = np.random.default_rng(seed)
        wanted, largest = int(count * _COPIES), max(2, count * _LARGEST // 1_000_000)
        # Sizes fall off as those of real groups do: by Pareto's law, twice as large is a third as common.
        sizes = np.minimum(chance.pareto(1.6, wanted).astype(np.int64) + 2, largest)
        sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), wanted))]
        # One group of the largest size, which the law has only now and then.
        sizes[:1] = largest
        sizes = np.concatenate((sizes, np.ones(count - int(sizes.sum()), np.int64)))
        groups = np.repeat(np.arange(len(sizes)), sizes)
        chance.shuffle(groups)
        boilerplate = np.full(count, -1, np.int64)
        for number, share in enumerate(_BOILERPLATE):
            boilerplate[chance.choice(count, int(count * share), replace=False)] = number
        return cls(scheme, groups, sizes, boilerplate, seed)

    def __len__(self) -> int:
        return len(self.groups)

    def blocks(self) -> Iterator["PlantedBlock"]:
        """Yield the fingerprints, some at a time."""
        for begin in range(0, len(self), _ROWS):
            yield self._block(begin, min(begin + _ROWS, len(self)))

    def _block(self, begin: int, end: int) -> "PlantedBlock":
        chance = np.random.default_rng((self.seed, begin))
        sketch, count = self.scheme.sketch, end - begin
        size, slots = packed_size(sketch.values, sketch.bits), sketch.groups
        groups = self.groups[begin:end]
        words = chance.integers(0, 2**30, (count, slots), dtype=np.uint32)
        signatures = chance.integers(0, 256, (count, size), dtype=np.uint8)
        digests = chance.integers(0, 256, (count, 9), dtype=np.uint8)
        shingles = np.asarray(50 + _draw(groups, 1)[:, 0] % np.uint64(950)).astype(np.int64)
        rows = np.flatnonzero(self.sizes[groups] > 1)
        exact = chance.random(len(rows)) < _EXACT
        share = np.where(exact, 1.0, chance.uniform(*_KEPT, len(rows)))
        kept = chance.integers(0, 256, (len(rows), sketch.values), dtype=np.uint8) < (share * 256)[:, None]
        kept[exact] = True
        _copy(words, signatures, rows, groups[rows], kept, sketch.group_size)
        digests[rows[exact]] = _draw(groups[rows[exact]], 2)[:, :2].copy().view(np.uint8)[:, :9]
        shingles[rows[~exact]] += chance.integers(0, 3, int((~exact).sum()))
        self._boilerplate(begin, words)
        return PlantedBlock(begin, words, signatures, digests, shingles)

    def _boilerplate(self, begin: int, words: Uint32s) -> None:
        shared = self.boilerplate[begin : begin + len(words)]
        for number in range(len(_BOILERPLATE)):
            for slot in range(number * _SLOTS, (number + 1) * _SLOTS):
                words[shared == number, slot] = 12_345 + number


def _draw(groups: Int64s, words: int) -> Uint64s:
    """Return random numbers that depend on the group alone, uint64 (N, words)."""
    keys = groups.astype(np.uint64)[:, None] * np.uint64(64) + np.arange(words, dtype=np.uint64)
    return mix64(keys + np.uint64(1))


def _copy(  # noqa: PLR0917
    words: Uint32s, signatures: Bytes, rows: Int64s, groups: Int64s, kept: np.ndarray, group_size: int
) -> None:
    """Let documents keep values of their group's text: those that ``kept`` says, bool (N, K)."""
    slots, size = words.shape[1], signatures.shape[1]
    whole = kept[:, : slots * group_size].reshape(len(rows), slots, group_size).all(axis=2)
    theirs = (_draw(groups, slots) >> (np.uint64(64) - _BITS)).astype(np.uint32)
    words[rows] = np.where(whole, theirs, words[rows])
    bits = np.packbits(kept, axis=1, bitorder="little")
    mask = _TWICE[bits].view(np.uint8).reshape(len(rows), -1)[:, :size]
    drawn = _draw(groups + (1 << 40), -(-size // 8)).view(np.uint8)[:, :size]
    signatures[rows] = (drawn & mask) | (signatures[rows] & ~mask)


#: Every bit of a byte twice: values have two bits.
_TWICE = np.array([sum(3 << 2 * bit for bit in range(8) if byte >> bit & 1) for byte in range(256)], "<u2")


@dataclass(frozen=True, slots=True, eq=False)
class PlantedBlock:
    """The fingerprints of some documents, from number ``begin`` on, as ``Block`` has them."""

    begin: int
    words: Uint32s
    signatures: Bytes
    digests: Bytes
    shingles: Int64s


def write_signed(planted: Planted, path: Path) -> None:
    """Write documents as ``sign --only-ids`` would."""
    import pyarrow.parquet as pq

    writer = None
    for block in planted.blocks():
        table = _table(planted.scheme, block)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()


def _table(scheme: Scheme, block: PlantedBlock):  # noqa: ANN202 - a table of pyarrow's
    from base64 import b64encode, urlsafe_b64encode

    import pyarrow as pa

    count, slots = block.words.shape
    text = letters(block.words.astype(np.uint64))
    keywords = _texts(text.tobytes(), text.shape[2], count * slots)
    signatures = b64encode(block.signatures.tobytes())
    digests = urlsafe_b64encode(block.digests.tobytes()).decode()
    heads = [f"{scheme.id}.ru.{many}." for many in block.shingles.tolist()]
    parts = {
        "scheme": pa.array([scheme.id] * count),
        "lang": pa.array(["ru"] * count),
        "shingles": pa.array(block.shingles),
        "digest": pa.array([head + digests[12 * at : 12 * at + 12] for at, head in enumerate(heads)]),
        "supershingles": pa.ListArray.from_arrays(
            pa.array(np.arange(count + 1, dtype=np.int32) * slots), keywords
        ),
        "signature": _texts(signatures, len(signatures) // count, count),
    }
    made = pa.StructArray.from_arrays(list(parts.values()), list(parts))
    ids = pa.array([f"d{number}" for number in range(block.begin, block.begin + count)])
    return pa.table({"_id": ids, "_dedup": made})


def _texts(data: bytes, width: int, count: int):  # noqa: ANN202 - an array of pyarrow's
    import pyarrow as pa

    ends = np.arange(count + 1, dtype=np.int32) * width
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends.tobytes()), pa.py_buffer(data))
