"""MinHash and what looks like it: XOR with random numbers, a random sample, and how N decides the error."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bench.labelled import Labelled, available
from bench.table import Row
from shinglefold.model.values import Uint32s, Uint64s
from shinglefold.sketch import resemblance
from shinglefold.sketch.hash_mixing import stream
from shinglefold.sketch.minhash import Affine32, minima

Floats = NDArray[np.float64]
#: Values a signature has; so many XORs that only their bias is left.
_COUNTS, _LITERATURE, _MANY = (30, 84, 150, 300), 84, 2_000
#: Pairs looked at, of those with at least this resemblance.
_PAIRS, _LEAST = 1_000, 0.3


def measure() -> list[Row]:
    """Return the error of each variant on pairs of labelled pages whose resemblance is known exactly."""
    corpora = available()
    ones, others = _pairs(corpora)
    exact = np.array([resemblance(one, other) for one, other in zip(ones, others, strict=True)])
    return [
        *_affine(ones, others, exact),
        *_xor(ones, others, exact),
        *_sampled(ones, others, exact),
    ]


def _pairs(corpora: list[Labelled]) -> tuple[list[Uint64s], list[Uint64s]]:
    """Return the shingle sets of labelled pairs, as many from each corpus as it has, drawn at random."""
    chance = np.random.default_rng(6)
    pairs = [
        (corpus.shingles[a], corpus.shingles[b])
        for corpus in corpora
        for a, b in zip(corpus.one.tolist(), corpus.other.tolist(), strict=True)
    ]
    drawn = [pairs[at] for at in chance.permutation(len(pairs)).tolist()]
    kept = [pair for pair in drawn if _LEAST <= resemblance(*pair) < 1.0][:_PAIRS]
    return [one for one, _ in kept], [other for _, other in kept]


def _affine(ones: list[Uint64s], others: list[Uint64s], exact: Floats) -> Iterator[Row]:
    """Yield the default's functions, multiply and add."""
    for count in _COUNTS:
        functions = Affine32.of(count, 0)
        found = _agreement(_each(ones, functions), _each(others, functions))
        yield _row(f"multiply-add, N = {count}", found, exact, count)


def _each(sets: list[Uint64s], functions: Affine32) -> Uint32s:
    starts = np.cumsum([0, *map(len, sets)])[:-1]
    return minima(np.concatenate(sets), starts, functions)


def _xor(ones: list[Uint64s], others: list[Uint64s], exact: Floats) -> Iterator[Row]:
    """Yield XOR with fixed random numbers: no permutation it makes moves neighbours apart."""
    for count in (*_COUNTS, _MANY):
        keys = stream(1, count)
        found = _agreement(nearest_by_xor(ones, keys), nearest_by_xor(others, keys))
        yield _row(f"XOR, N = {count}", found, exact, count)


def nearest_by_xor(sets: list[Uint64s], keys: Uint64s) -> Uint64s:
    """Return for each key the shingle whose XOR with it is least, uint64 (D, N)."""
    return np.stack([_least_xor(np.sort(shingles), keys) for shingles in sets])


def _least_xor(ordered: Uint64s, keys: Uint64s) -> Uint64s:
    """Return the least of x XOR key over the shingles, for each key.

    The nearest shares the longest beginning with the key, bit by bit, so the range of candidates is halved
    from the highest bit on.
    """
    low, high = np.zeros(len(keys), np.int64), np.full(len(keys), len(ordered), np.int64)
    prefix = np.zeros(len(keys), np.uint64)
    for bit in range(63, -1, -1):
        step = np.uint64(1 << bit)
        middle = np.clip(np.searchsorted(ordered, prefix | step), low, high)
        wanted = (keys & step) != 0
        upper = np.where(wanted, middle < high, middle == low)
        low, high = np.where(upper, middle, low), np.where(upper, high, middle)
        prefix = np.where(upper, prefix | step, prefix)
    return ordered[low] ^ keys


def _sampled(ones: list[Uint64s], others: list[Uint64s], exact: Floats) -> Iterator[Row]:
    """Yield a plain random sample of each page's fingerprints, compared as sets; equal pages too."""
    chance = np.random.default_rng(7)

    def sample(shingles: Uint64s) -> Uint64s:
        return np.sort(chance.choice(shingles, min(_LITERATURE, len(shingles)), replace=False))

    def estimated(pairs: list[tuple[Uint64s, Uint64s]]) -> Floats:
        return np.array([resemblance(sample(one), sample(other)) for one, other in pairs])

    yield _row("random sample of 84", estimated(list(zip(ones, others, strict=True))), exact, _LITERATURE)
    large = [one for one in ones if len(one) > 2 * _LITERATURE]
    sizes = np.array([len(one) for one in large])
    common = _LITERATURE**2 / sizes
    expected = (common / (2 * _LITERATURE - common)).mean()
    found = estimated([(one, one) for one in large]).mean()
    note = f"of a page and itself, {sizes.mean():,.0f} shingles on average; expected {expected:.3f}, true 1"
    yield Row("random sample of 84: equal pages", found, "mean estimate", note)


def _agreement(one: NDArray[np.unsignedinteger], other: NDArray[np.unsignedinteger]) -> Floats:
    return np.asarray((one == other).mean(axis=1), np.float64)


def _row(name: str, found: Floats, exact: Floats, count: int) -> Row:
    errors = found - exact
    expected = np.sqrt((exact * (1 - exact)).mean() / count)
    note = f"expected √(J(1 − J)/N) = {expected:.4f}; mean error {errors.mean():+.4f}; {len(exact):,} pairs"
    return Row(name, float(np.sqrt(np.square(errors).mean())), "error (root mean square)", note)
