"""Relatives that keep (some of) a document's shingles themselves, as ways to decide."""

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.minhash_variants import nearest_by_xor
from bench.quality.corpus import Corpus, Pair
from bench.quality.peers import Result, best, swept
from shinglefold.model.values import Uint64s
from shinglefold.passages.shingle_positions import winnow
from shinglefold.relatives.bloom import MatrixFilter, PseudoMatrixFilter, Shape
from shinglefold.relatives.rabin_karp import direct
from shinglefold.sketch import resemblance, shingle_set
from shinglefold.sketch.hash_mixing import stream
from shinglefold.sketch.shingles import shingle_hashes

#: What is sampled and how many values an XOR signature has, as in the literature; the share of strangers
#: that a Bloom filter takes for its own.
_VALUES, _RATE = 84, 0.05
Pairs = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Returns how alike candidates are, given the shingles of all documents, and the bytes of a document.
Compare = Callable[[Sequence[Uint64s], Pairs], tuple[Floats, int]]


def all_of(corpus: Corpus, hashes: Sequence[Uint64s], candidates: Pairs) -> Iterator[Result]:
    """Yield the best of each."""
    ways: dict[str, tuple[Callable[[Uint64s, int], Uint64s], Compare]] = {
        "Rabin–Karp, all shingles in 32 bits": (
            lambda one, width: np.unique(direct(one, width, 32)),
            _as_sets,
        ),
        "winnowed shingles, as stored for passages": (_winnowed, _as_sets),
        "a random sample of 84 shingles": (shingle_set, _as_samples),
        "84 minima by XOR": (shingle_set, _by_xor),
        "Bloom filter, a row a document": (shingle_set, _by_rows),
        "Bloom filter, several documents a row": (shingle_set, _by_shared_rows),
    }
    for name, (shingles, compare) in ways.items():
        yield _best(corpus, name, hashes, candidates, shingles, compare)


def _best(  # noqa: PLR0917 - what it is of, and how it is made and compared
    corpus: Corpus,
    name: str,
    hashes: Sequence[Uint64s],
    candidates: Pairs,
    shingles: Callable[[Uint64s, int], Uint64s],
    compare: Compare,
) -> Result:
    sizes: dict[int, int] = {}

    def tries() -> Iterator[tuple[str, set[Pair], float]]:
        for width in (1, 2):
            start = time.perf_counter()
            sets = [shingles(one, width) for one in hashes]
            seconds = time.perf_counter() - start
            alike, sizes[width] = compare(sets, candidates)
            yield from swept(candidates, alike, f"w={width}", seconds)

    found = best(corpus, name, 0, tries())
    size = sizes[int(found.setting[2])]
    return Result(name, found.setting, found.folded, found.micros, size)


def _rolled(one: Uint64s, width: int) -> Uint64s:
    return np.unique(direct(one, width, 32))


def _winnowed(one: Uint64s, width: int) -> Uint64s:
    return winnow(shingle_hashes(one, width + 3))


def _as_sets(sets: Sequence[Uint64s], candidates: Pairs) -> tuple[Floats, int]:
    alike = np.array([resemblance(sets[a], sets[b]) for a, b in candidates.tolist()])
    return alike, 4 * sum(map(len, sets)) // len(sets)


def _as_samples(sets: Sequence[Uint64s], candidates: Pairs) -> tuple[Floats, int]:
    """Estimate resemblance by what two random samples have in common, grown by what they were drawn from."""
    chance = np.random.default_rng(7)
    kept = [np.sort(chance.choice(one, min(_VALUES, len(one)), replace=False)) for one in sets]

    def alike(a: int, b: int) -> float:
        common = len(np.intersect1d(kept[a], kept[b])) / max(1, len(kept[a]) * len(kept[b]))
        shared = min(common * len(sets[a]) * len(sets[b]), len(sets[a]), len(sets[b]))
        return shared / max(1.0, len(sets[a]) + len(sets[b]) - shared)

    return np.array([alike(a, b) for a, b in candidates.tolist()]), 4 * _VALUES


def _by_xor(sets: Sequence[Uint64s], candidates: Pairs) -> tuple[Floats, int]:
    made = nearest_by_xor([one if len(one) else np.zeros(1, np.uint64) for one in sets], stream(1, _VALUES))
    # A byte of each, as the default keeps few bits of its own.
    kept = (made >> np.uint64(8)).astype(np.uint8)
    share = (kept[candidates[:, 0]] == kept[candidates[:, 1]]).mean(axis=1)
    return (share - 1 / 256) / (1 - 1 / 256), _VALUES


def _by_rows(sets: Sequence[Uint64s], candidates: Pairs) -> tuple[Floats, int]:
    shape = Shape.of(max(map(len, sets)), _RATE)
    rows = MatrixFilter(shape)
    for number, one in enumerate(sets):
        rows.insert(str(number), one)
    held = shape.rates(np.array([len(one) for one in sets]))
    asked = _asked(candidates)
    counts = {a: rows.counts(sets[a]) for a in asked}

    def share(a: int, b: int) -> float:
        found = counts[a][str(b)] / max(1, len(sets[a]))
        return float((found - held[b]) / (1 - held[b]))

    return _both_ways(share, sets, candidates), rows.lanes.nbytes // len(sets)


def _by_shared_rows(sets: Sequence[Uint64s], candidates: Pairs) -> tuple[Floats, int]:
    """A row says that one of its documents has a shingle, not which."""
    rows = PseudoMatrixFilter(Shape.of(2 * max(map(len, sets)), _RATE))
    for number, one in enumerate(sets):
        rows.insert(str(number), one)
    row_of = [next(iter(rows.pieces(str(number)))).row if len(one) else 0 for number, one in enumerate(sets)]
    shares = {a: rows.row_shares(sets[a]) for a in _asked(candidates)}
    alike = _both_ways(lambda a, b: float(shares[a][row_of[b]]), sets, candidates)
    return alike, rows.lanes.nbytes // len(sets)


def _asked(candidates: Pairs) -> list[int]:
    return np.unique(candidates).tolist()  # type: ignore[no-any-return]


def _both_ways(share: Callable[[int, int], float], sets: Sequence[Uint64s], candidates: Pairs) -> Floats:
    """Return the resemblance that the shares of each in the other's row speak for."""

    def alike(a: int, b: int) -> float:
        common = min(share(a, b) * len(sets[a]), share(b, a) * len(sets[b]), len(sets[a]), len(sets[b]))
        return max(0.0, common) / max(1.0, len(sets[a]) + len(sets[b]) - max(0.0, common))

    return np.array([alike(a, b) for a, b in candidates.tolist()])
