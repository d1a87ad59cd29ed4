"""Similarity hashes beside the default: F1 on the labelled pages, bytes and µs a document."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bench.clock import best, once
from bench.labelled import Labelled, Similarities, available, best_threshold
from bench.similarity_strings import alike_ssdeep, alike_strings
from bench.table import Row
from shinglefold.registry import make_scheme
from shinglefold.relatives.hamming_index import HammingIndex
from shinglefold.relatives.piecewise_hash import piecewise, ssdeep
from shinglefold.relatives.reference_points import on_two_grids, parted, rounded, values
from shinglefold.relatives.simhash import simhashes
from shinglefold.sketch import Sketcher, agreement_matrix
from shinglefold.sketch.b_bit_minhash import corrected

_THRESHOLDS = tuple(np.round(np.arange(0.1, 1.0, 0.02), 2).tolist())
_STEP = 1.0


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to compare documents: ``make`` their signatures, and the similarity of ``all`` pairs of these.

    ``only``: the corpus it is measured on, where it is too slow for all.
    """

    make: Callable[[Labelled], Any]
    all_pairs: Callable[[Any], Similarities]
    size: Callable[[Any], float]
    only: str = ""


def measure() -> list[Row]:
    """Return each strategy's F1 at the threshold that is best for it, and what the index and the grids do."""
    corpora = available()
    rows = [row for name, strategy in STRATEGIES.items() for row in _rows(name, strategy, corpora)]
    return [*rows, *_index(), *_borders()]


def _rows(name: str, strategy: Strategy, corpora: list[Labelled]) -> Iterator[Row]:
    chosen = [corpus for corpus in corpora if strategy.only in ("", corpus.name)]
    made = [(corpus, *once(partial(strategy.make, corpus))) for corpus in chosen]
    documents = sum(map(len, chosen))
    seconds = sum(took for _, took, _ in made)
    size = sum(strategy.size(signatures) for *_, signatures in made) / documents
    threshold, scores = best_threshold(
        [(corpus, strategy.all_pairs(signatures)) for corpus, _, signatures in made], _THRESHOLDS
    )
    single = ", ".join(f"{corpus.name} {score:.3f}" for corpus, score in zip(chosen, scores, strict=True))
    note = f"at {threshold:.2f}: {single}; {size:.0f} bytes, {seconds / documents * 1e6:,.0f} µs a document"
    yield Row(name, float(np.mean(scores)), "mean F1", note)


def _minhash(corpus: Labelled) -> np.ndarray:
    sketcher = Sketcher(make_scheme().sketch)
    return sketcher.signatures(sketcher.sketch(corpus.hashes, corpus.offsets, 2))


def _minhash_pairs(signatures: np.ndarray) -> Similarities:
    sketch = make_scheme().sketch
    agreeing = agreement_matrix(signatures, sketch.bits) / sketch.values
    return corrected(agreeing, sketch.bits).astype(np.float32)


def _simhash(bits: int, shingles: bool) -> Strategy:
    def make(corpus: Labelled) -> np.ndarray:
        features = corpus.shingle_batch() if shingles else (corpus.hashes, corpus.offsets)
        return simhashes(*features, bits=bits)

    return Strategy(make, partial(_hamming, bits), lambda made: len(made) * bits / 8)


def _hamming(bits: int, made: np.ndarray) -> Similarities:
    differing = sum(np.bitwise_count(word[:, None] ^ word[None, :]).astype(np.float32) for word in made.T)
    return (1.0 - differing / bits).astype(np.float32)


def _points(grids: int) -> Strategy:
    """Return the strategy of 84 bytes: 84 values on one grid, or 42 on each of two."""

    def make(corpus: Labelled) -> np.ndarray:
        found = values(*corpus.shingle_batch(), 84 // grids)
        return rounded(found, _STEP)[..., None] if grids == 1 else on_two_grids(found, _STEP)

    return Strategy(make, _equal_points, lambda made: made.size)


def _equal_points(made: np.ndarray) -> Similarities:
    """Return the share of values that are equal on any of their grids."""
    equal = np.zeros((len(made), len(made)), np.float32)
    for column in made.astype(np.int8).transpose(1, 2, 0):
        equal += np.logical_or.reduce([grid[:, None] == grid[None, :] for grid in column])
    return equal / made.shape[1]


def _cosines(found: np.ndarray) -> Similarities:
    rows = found.astype(np.float32)
    squares = np.square(rows).sum(axis=1)
    return 1.0 - (squares[:, None] + squares[None, :] - 2.0 * rows @ rows.T) / (2.0 * rows.shape[1])


def _piecewise(corpus: Labelled) -> list[Any]:
    return [piecewise(document) for document in np.split(corpus.hashes, corpus.offsets[1:-1])]


#: What is compared, by name; each takes canonical tokens but ssdeep, which takes the text's bytes.
STRATEGIES = {
    "MinHash (default)": Strategy(_minhash, _minhash_pairs, lambda made: made.size),
    "simhash of tokens, 32 bits": _simhash(32, shingles=False),
    "simhash of tokens, 64 bits": _simhash(64, shingles=False),
    "simhash of tokens, 128 bits": _simhash(128, shingles=False),
    "simhash of shingles, 32 bits": _simhash(32, shingles=True),
    "simhash of shingles, 64 bits": _simhash(64, shingles=True),
    "simhash of shingles, 128 bits": _simhash(128, shingles=True),
    "piecewise hash of tokens": Strategy(
        _piecewise, alike_strings, lambda made: sum(len(str(one)) for one in made)
    ),
    "ssdeep of bytes": Strategy(
        lambda corpus: [ssdeep(text.encode()) for text in corpus.texts],
        alike_ssdeep,
        lambda made: sum(map(len, made)),
        # Pages of the other manuals have so many letters in common that comparing them takes an hour.
        only="gnome-uk",
    ),
    "reference points, 84 values, one grid": _points(1),
    "reference points, 42 values, two grids": _points(2),
    "the values unrounded, 84 in half precision": Strategy(
        lambda corpus: values(*corpus.shingle_batch(), 84), _cosines, lambda made: made.size * 2
    ),
}


def _index() -> Iterator[Row]:
    """Yield what the index saves against a scan of a million fingerprints, after both have agreed."""
    chance = np.random.default_rng(4)
    fingerprints = chance.integers(0, 2**64, 1_000_000, np.uint64)
    near = fingerprints[:200] ^ (np.uint64(1) << chance.integers(0, 64, 200).astype(np.uint64))
    queries = np.concatenate((near, chance.integers(0, 2**64, 200, np.uint64)))
    built, index = once(lambda: HammingIndex(fingerprints))
    scan, expected = once(lambda: _scanned(fingerprints, queries))
    asked, found = index.within(queries)
    if list(zip(asked.tolist(), found.tolist(), strict=True)) != expected:
        raise AssertionError("the index differs from a scan")
    a_query = best(lambda: index.within(queries)) / len(queries)
    slower = scan / len(queries) / a_query
    note = f"of 10⁶, within 3 bits; a scan takes {slower:,.0f} times as long; built in {built:.1f} s"
    yield Row("Hamming index: a query", a_query * 1e6, "µs", note)


def _scanned(fingerprints: np.ndarray, queries: np.ndarray) -> list[tuple[int, int]]:
    return [
        (number, int(near))
        for number, query in enumerate(queries)
        for near in np.flatnonzero(np.bitwise_count(fingerprints ^ query) <= 3)
    ]


def _borders() -> Iterator[Row]:
    """Yield how many values that differ a little are rounded apart, on one grid and on both of two."""
    first = np.random.default_rng(5).normal(size=1_000_000)
    for difference in (0.1, 0.3, 0.45, 0.6):
        one, other = on_two_grids(first, _STEP), on_two_grids(first + difference, _STEP)
        apart = one != other
        note = (
            f"computed {parted(difference, _STEP, 1):.2f}; on both of two shifted grids "
            f"{apart.all(axis=1).mean():.3f}, computed {parted(difference, _STEP, 2):.2f}"
        )
        yield Row(f"border effect: values {difference} steps apart", apart[:, 0].mean(), "share parted", note)
