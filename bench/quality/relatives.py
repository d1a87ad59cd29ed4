"""The method's relatives as ways to decide, under the terms of the peers; ``python -m bench relatives``."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.quality import relative_sets
from bench.quality.corpus import MANY, Corpus, Pair, corpus, names
from bench.quality.ours import candidates, run
from bench.quality.peers import Result, best, swept
from bench.quality.scores import pair_f1
from bench.table import Row
from shinglefold.canon import Canonicalizer
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.registry import make_scheme
from shinglefold.relatives import piecewise_hash as piecewise
from shinglefold.relatives.piecewise_hash import ssdeep, ssdeep_similarity
from shinglefold.relatives.reference_points import on_two_grids, rounded, values
from shinglefold.relatives.simhash import distance, simhashes
from shinglefold.sketch import shingle_set

#: The step of a grid of reference points, in standard deviations of their values.
_STEP = 1.0
#: Makes signatures of all documents from their shingle sets laid one after another.
Make = Callable[[Uint64s, Int64s], Any]
#: How alike the signatures of candidates are.
Alike = Callable[[Any, NDArray[np.int64]], NDArray[np.float64]]


def measure() -> list[Row]:
    """Return the relatives on each corpus that is at hand, beside the default."""
    return [row for name in names() for row in beside(corpus(name))]


def beside(whole: Corpus) -> Iterator[Row]:
    """Yield the scores of the default and of the relatives on a sample of a corpus."""
    sample = whole.sample(6 if len(whole) > MANY else 1)
    made = run(sample, "signature")
    note = f"one threshold for all; {made.printing:,.0f} µs with the canonical text, 84 bytes a document"
    yield Row(f"{sample.name}: the default, by signature", pair_f1(sample, made.folded), "F1", note)
    batch = Canonicalizer.as_written(make_scheme()).hash_batch(sample.texts)
    hashes = np.split(batch.hashes, batch.offsets[1:-1])
    nominated = candidates(sample)
    for found in (*all_of(sample, hashes, nominated), *relative_sets.all_of(sample, hashes, nominated)):
        note = f"{found.setting}; {found.micros:,.0f} µs, {found.size:,} bytes a document"
        yield Row(f"{sample.name}: {found.name}", pair_f1(sample, found.folded), "F1", note)


def all_of(
    corpus: Corpus, hashes: Sequence[NDArray[np.uint64]], candidates: NDArray[np.int64]
) -> Iterator[Result]:
    """Yield the best of every relative, of one and of two words a shingle."""
    for bits in (32, 64, 128):
        made: Make = lambda shingles, offsets, bits=bits: simhashes(shingles, offsets, bits)  # noqa: E731
        yield _sketched(corpus, f"our simhash, {bits} bits", bits // 8, hashes, candidates, made, _bits(bits))
    yield _sketched(corpus, "reference points, one grid", 84, hashes, candidates, _one_grid, _equal_points)
    yield _sketched(corpus, "reference points, two grids", 84, hashes, candidates, _two_grids, _equal_points)
    yield _piecewise(corpus, hashes, candidates)
    yield _ssdeep(corpus, candidates)


def _sketched(  # noqa: PLR0917 - what a sketch is of, and how it is made and compared
    corpus: Corpus,
    name: str,
    size: int,
    hashes: Sequence[NDArray[np.uint64]],
    candidates: NDArray[np.int64],
    make: Make,
    alike: Alike,
) -> Result:
    def tries() -> Iterator[tuple[str, set[Pair], float]]:
        for width in (1, 2):
            start = time.perf_counter()
            sets = [shingle_set(one, width) for one in hashes]
            made = make(np.concatenate(sets), np.cumsum([0, *map(len, sets)]))
            seconds = time.perf_counter() - start
            yield from swept(candidates, alike(made, candidates), f"w={width}", seconds)

    return best(corpus, name, size, tries())


def _bits(bits: int) -> Alike:
    return lambda made, pairs: 1.0 - distance(made[pairs[:, 0]], made[pairs[:, 1]]) / bits


def _one_grid(shingles: Uint64s, offsets: Int64s) -> NDArray[np.int32]:
    return rounded(values(shingles, offsets, 84), _STEP)[..., None]


def _two_grids(shingles: Uint64s, offsets: Int64s) -> NDArray[np.int32]:
    return on_two_grids(values(shingles, offsets, 42), _STEP)


def _equal_points(made: NDArray[np.int32], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of values that are equal on any of their grids."""
    return (made[pairs[:, 0]] == made[pairs[:, 1]]).any(axis=2).mean(axis=1)


def _piecewise(corpus: Corpus, hashes: Sequence[NDArray[np.uint64]], candidates: NDArray[np.int64]) -> Result:
    """Decide by the edit distance of the pieces' letters."""
    start = time.perf_counter()
    made = [piecewise.piecewise(one) for one in hashes]
    seconds = time.perf_counter() - start
    alike = np.array([piecewise.similarity(made[a], made[b]) for a, b in candidates.tolist()])
    size = sum(len(str(one)) for one in made) // len(made)
    return best(corpus, "piecewise hash of words", size, swept(candidates, alike, "w=3", seconds))


def _ssdeep(corpus: Corpus, candidates: NDArray[np.int64]) -> Result:
    """Decide by ssdeep's score of the texts' bytes."""
    start = time.perf_counter()
    made = [ssdeep(text.encode("utf-8", "surrogatepass")) for text in corpus.texts]
    seconds = time.perf_counter() - start
    alike = np.array([ssdeep_similarity(made[a], made[b]) for a, b in candidates.tolist()])
    size = sum(map(len, made)) // len(made)
    return best(corpus, "ssdeep of bytes", size, swept(candidates, alike, "7 bytes", seconds))
