"""The literature's experiment: 10,376,876 distinct shingles, and how many of them share a fingerprint."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bench.clock import once
from bench.generated import Vocabulary, windows_named
from bench.table import Row
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.relatives.collision_odds import expected_collisions, table
from shinglefold.relatives.fingerprints import crc32, crc64, direct, rolling
from shinglefold.sketch import probability

#: The literature's numbers: shingles, and what it counted for each function.
SHINGLES, WIDTH = 10_376_876, 10
_COUNTED = {"Rabin–Karp, 32 bits": 13_089, "CRC32": 12_320} | dict.fromkeys(
    ("Rabin–Karp, 48 bits", "Rabin–Karp, 56 bits", "Rabin–Karp, 64 bits", "CRC64"), 0
)


def measure() -> list[Row]:
    """Return the exact number of colliding pairs of each function, and the formulas beside them."""
    return [*_collisions(), *_birthdays(), *_arithmetic()]


def _collisions() -> Iterator[Row]:
    vocabulary = Vocabulary.of(50_000)
    numbers = vocabulary.drawn(SHINGLES + SHINGLES // 10, 1)
    distinct = np.sort(np.unique(windows_named(numbers, WIDTH), return_index=True)[1])[:SHINGLES]
    if len(distinct) != SHINGLES:
        raise AssertionError(f"only {len(distinct):,} distinct shingles were generated")
    yield Row("distinct shingles", len(distinct), "", f"of {WIDTH} words, told apart exactly, nothing hashed")
    numbers = numbers[: int(distinct[-1]) + WIDTH]
    for name, bits, fingerprints in _functions(vocabulary, numbers):
        seconds, found = once(fingerprints)
        expected = expected_collisions(SHINGLES, bits)
        told = f"expected n²/2R = {expected:,.3g}" if expected < 100 else f"expected n²/2R = {expected:,.0f}"
        counted = f"; literature: {_COUNTED[name]:,}" if name in _COUNTED else ""
        note = f"{told}{counted}; {seconds / len(found) * 1e6:.2f} µs a window"
        pairs = _colliding_pairs(found[distinct])
        yield Row(name, pairs, "pairs", f"{pairs:,}; {note}")


def _functions(vocabulary: Vocabulary, numbers: Int64s) -> Iterator[tuple[str, int, Callable[[], Uint64s]]]:
    words = numbers.astype(np.uint64)
    for bits in (32, 40, 48, 56, 64):
        if not np.array_equal(rolling(words[:50_000], WIDTH, bits), direct(words[:50_000], WIDTH, bits)):
            raise AssertionError(f"rolling differs from direct at {bits} bits")
        yield f"Rabin–Karp, {bits} bits", bits, partial(rolling, words, WIDTH, bits)
    data, starts, ends = _text(vocabulary, numbers)
    windows = starts[: len(starts) - WIDTH + 1], ends[WIDTH - 1 :]
    yield "CRC32", 32, partial(crc32, data, *windows)
    yield "CRC64", 64, partial(crc64, data, *windows)


def _text(vocabulary: Vocabulary, numbers: Int64s) -> tuple[bytes, Int64s, Int64s]:
    """Return the text as bytes, and where each word begins and ends."""
    words = vocabulary.words
    lengths = np.array([len(word) for word in words])[numbers]
    ends = np.cumsum(lengths + 1) - 1
    return b" ".join(map(words.__getitem__, numbers.tolist())), ends - lengths, ends


def _colliding_pairs(fingerprints: Uint64s) -> int:
    ordered = np.sort(fingerprints)
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    together = np.diff(np.append(first, len(ordered)))
    return int((together * (together - 1) // 2).sum())


def _birthdays() -> Iterator[Row]:
    for row in table():
        at = ", ".join(f"{count:,.0f}" for count in row.shingles)
        yield Row(f"√R at {row.bits} bits", row.root, "shingles", f"N at P = .01, .1, .4: {at}")


def _arithmetic() -> Iterator[Row]:
    """Yield the probability the literature gives as .98, which its own formula does not."""
    one, two = probability(0.9, 6, 14, 1), probability(0.9, 6, 14, 2)
    note = f"1 − (1 − .9¹⁴)⁶; the literature prints .98; two shared: {two:.2f}"
    yield Row("6×14 at resemblance .9, one supershingle shared", one, "probability", note)
