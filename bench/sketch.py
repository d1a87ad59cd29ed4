"""Times of sketching on generated token hashes, each answer checked before its time is taken."""

from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from bench.table import Row
from shinglefold.model.scheme import Decision, SketchOptions
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.sketch import (
    Sketcher,
    agreement,
    agreement_matrix,
    agreement_rows,
    find_pairs,
    low_bits,
    pack,
    resemblance,
    shingle_hashes,
    shingle_set,
)
from shinglefold.sketch.shingles import batch_shingles

TOKENS = 500
DOCUMENTS = 256


def measure() -> list[Row]:
    """Return µs a document of each stage, ms of comparing windows, seconds of finding all pairs."""
    rows = [
        Row(name, value, "µs / 500 tokens", f"{DOCUMENTS} generated documents")
        for name, value in stages().items()
    ]
    rows += [Row(name, value, "ms") for hits in (200, 1_000) for name, value in window(hits).items()]
    found = (collection(documents) for documents in (10_000, 50_000))
    units = {"pairs found": "pairs"}
    return rows + [Row(name, value, units.get(name, "s")) for one in found for name, value in one.items()]


def stages(rounds: int = 15) -> dict[str, float]:
    """Return µs a 500-token document of each stage, at its best of some rounds."""
    hashes, offsets = _pages(DOCUMENTS)
    times = {"shingles w=2": _best(lambda: batch_shingles(hashes, offsets, 2), rounds)}
    times["shingles w=5"] = _best(lambda: batch_shingles(hashes, offsets, 5), rounds)
    for values in (84, 168, 336):
        tool = Sketcher(SketchOptions(values=values))
        _check_minima(tool, hashes, offsets)
        times[f"sketch K={values}"] = _best(partial(tool.sketch, hashes, offsets), rounds)
    tool = Sketcher()
    sketches = tool.sketch(hashes, offsets)
    assert len(set(tool.keywords(sketches)[0])) == 21
    times["supershingles 21×4"] = _best(lambda: tool.supershingles(sketches), rounds)
    times["supershingles and keywords 21×4"] = _best(lambda: tool.keywords(sketches), rounds)
    times["signatures 336×2"] = _best(lambda: tool.signatures(sketches), rounds)
    times["digests"] = _best(lambda: tool.digests(hashes, offsets), rounds)
    return {name: seconds / DOCUMENTS * 1e6 for name, seconds in times.items()}


def window(hits: int = 200, rounds: int = 15) -> dict[str, float]:
    """Return ms of comparing a window of hits completely, and one hit with all of it."""
    values = np.random.default_rng(1).integers(0, 2**32, (hits, 336), dtype=np.uint32)
    signatures = pack(low_bits(values, 2), 2)
    naive = [agreement_rows(np.broadcast_to(row, signatures.shape), signatures, 2) for row in signatures]
    assert (agreement_matrix(signatures, 2) == np.array(naive)).all()
    return {
        f"agreement matrix {hits}": _best(lambda: agreement_matrix(signatures, 2), rounds) * 1e3,
        f"agreement 1 with {hits}": _best(lambda: agreement(signatures[0], signatures, 4), rounds) * 1e3,
    }


def collection(documents: int = 10_000, rounds: int = 3) -> dict[str, float]:
    """Return seconds of sketching a collection of revised pages and of finding all its pairs."""
    hashes, offsets = revised_pages(documents)
    tool, decision = Sketcher(), Decision()
    sketches = tool.sketch(hashes, offsets)
    columns = tool.supershingles(sketches), tool.signatures(sketches), sketches.shingles
    digests = tool.digests(hashes, offsets)

    def run() -> int:
        return len(find_pairs(*columns, digests, tool.options, decision, sketches.valid))

    found = find_pairs(*columns, digests, tool.options, decision, sketches.valid)
    _check_pairs(found.a, found.b, hashes, offsets)
    return {
        f"sketch {documents}": _best(lambda: tool.sketch(hashes, offsets), rounds),
        f"pairs of {documents}": _best(run, rounds),
        "pairs found": float(len(found)),
    }


def revised_pages(documents: int, seed: int = 1) -> tuple[Uint64s, Int64s]:
    """Return pages of 50 to 600 tokens in three versions each: two of the three with up to 10 % replaced."""
    rng = np.random.default_rng(seed)
    lengths = np.repeat(rng.integers(50, 600, -(-documents // 3)), 3)[:documents]
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    hashes = rng.integers(1, 2**64, offsets[-1], dtype=np.uint64)
    for first in range(0, documents, 3):
        page = hashes[offsets[first] : offsets[first + 1]]
        for version in range(first + 1, min(first + 3, documents)):
            copy = hashes[offsets[version] : offsets[version + 1]]
            copy[:] = np.where(rng.random(len(page)) < rng.random() * 0.1, copy, page)
    return hashes, offsets


def _pages(documents: int) -> tuple[Uint64s, Int64s]:
    drawn = np.random.default_rng(1).integers(1, 2**64, documents * TOKENS, dtype=np.uint64)
    return drawn, np.arange(documents + 1, dtype=np.int64) * TOKENS


def _check_minima(tool: Sketcher, hashes: Uint64s, offsets: Int64s) -> None:
    shingles = shingle_hashes(hashes[:TOKENS], 2)
    low, high = shingles.astype(np.uint32), (shingles >> np.uint64(32)).astype(np.uint32)
    halves: tuple[NDArray[np.uint32], ...] = (low, high)
    functions = tool.functions
    expected = [
        int((halves[i % 2] * functions.multipliers[i] + functions.addends[i]).min())
        for i in range(len(functions))
    ]
    assert tool.sketch(hashes, offsets).minima[0, : len(functions)].tolist() == expected


def _check_pairs(a: Int64s, b: Int64s, hashes: Uint64s, offsets: Int64s) -> None:
    sets = [shingle_set(hashes[offsets[d] : offsets[d + 1]], 2) for d in range(3 * ((len(offsets) - 1) // 3))]
    found = set(zip(a.tolist(), b.tolist(), strict=True))
    assert all(one // 3 == other // 3 for one, other in found)
    near = [(d, d + 1) for d in range(0, len(sets), 3) if resemblance(sets[d], sets[d + 1]) >= 0.8]
    # The estimate scatters by .03 at .80; the threshold is .61.
    assert sum(pair in found for pair in near) >= 0.999 * len(near)


def _best(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)
