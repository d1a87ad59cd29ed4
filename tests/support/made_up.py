"""Random collections: groups of near-copies of every size, exact copies, strangers that share a keyword."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.scheme import Scheme, SketchOptions
from shinglefold.model.values import Int64s
from shinglefold.offline.dedupe.fingerprint_table import (
    DIGEST,
    DIGESTED,
    SIGNED,
    FingerprintBlock,
    FingerprintTable,
    id_columns,
)
from shinglefold.sketch.b_bit_minhash import low_bits, pack
from shinglefold.sketch.minhash import supershingles

#: Small, so that unlike documents share supershingles, too.
SKETCH = SketchOptions(values=24, bits=2, groups=4, group_size=2)


def random_block(seed: int, count: int, scheme: Scheme, whole: bool, crowd: int = 0) -> FingerprintBlock:
    """Documents of which most resemble an earlier one; ``crowd`` of them share a supershingle besides."""
    chance = np.random.default_rng(seed)
    sketch = scheme.sketch
    minima = chance.integers(0, 2**32, (count, sketch.values), dtype=np.uint32)
    parents = np.arange(count)
    for row in range(1, count):
        if chance.random() < 0.7:
            parents[row] = chance.integers(0, row)
            kept = chance.random(sketch.values) < chance.choice([0.3, 0.6, 0.8, 0.95, 1.0])
            minima[row] = np.where(kept, minima[parents[row]], minima[row])
    minima[count - crowd :, : sketch.group_size] = 7
    equal = (minima == minima[parents]).all(axis=1) & (parents != np.arange(count))
    texts = np.arange(count)
    for row in np.flatnonzero(equal & (chance.random(count) < 0.8)).tolist():
        texts[row] = texts[parents[row]]
    return _block(chance, minima, texts, scheme, whole)


def one_text(count: int, scheme: Scheme, changed: float = 0.0) -> FingerprintBlock:
    """One text so many times, each with its share of minima changed."""
    chance = np.random.default_rng(count)
    minima = np.tile(chance.integers(0, 2**32, scheme.sketch.values, dtype=np.uint32), (count, 1))
    other = chance.integers(0, 2**32, minima.shape, dtype=np.uint32)
    minima = np.where(chance.random(minima.shape) < changed, other, minima)
    texts = np.arange(count) if changed else np.zeros(count, np.int64)
    return _block(chance, minima, texts, scheme, whole=False)


def _block(
    chance: np.random.Generator, minima: NDArray[np.uint32], texts: Int64s, scheme: Scheme, whole: bool
) -> FingerprintBlock:
    sketch, count = scheme.sketch, len(minima)
    digests = chance.integers(0, 256, (count, DIGEST), dtype=np.uint8)[texts]
    shingles = np.where(chance.random(count) < 0.9, 100, 60)
    flags = np.where(chance.random(count) < 0.95, SIGNED, 0) | np.where(
        chance.random(count) < 0.97, DIGESTED, 0
    )
    slots = sketch.values // sketch.group_size if whole else sketch.groups
    words = supershingles(minima, slots, sketch.group_size)
    ids = id_columns([f"doc{number}" for number in range(count)])
    return FingerprintBlock(
        words if whole else (words & np.uint64(0x3FFFFFFF)).astype(np.uint32),
        pack(low_bits(minima, sketch.bits), sketch.bits),
        shingles.astype(np.int64),
        digests,
        flags.astype(np.uint8),
        *ids,
        ["made up"] * count,
        np.arange(1, count + 1, dtype=np.int64),
    )


@contextmanager
def made_up(
    seed: int, count: int, scheme: Scheme, whole: bool = False, crowd: int = 0
) -> Iterator[FingerprintTable]:
    with columns(random_block(seed, count, scheme, whole, crowd), scheme, whole) as table:
        yield table


@contextmanager
def columns(block: FingerprintBlock, scheme: Scheme, whole: bool = False) -> Iterator[FingerprintTable]:
    with closing(FingerprintTable(scheme, whole)) as table:
        table.add(block)
        yield table
