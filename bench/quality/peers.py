"""Other ways to tell near-duplicates, each at its own best setting on the very corpus it is measured on.

All get the words as they are written, and those that estimate get candidates found for them, so that what
is compared is what they say of a pair. Thresholds are swept, and the best is taken: more than a user can do.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bench.quality.corpus import Corpus, Pair
from bench.quality.scores import pair_f1
from shinglefold.sketch.minhash import Affine32, minima
from shinglefold.sketch.shingles import resemblance, shingle_set

Words = Sequence[Sequence[str]]
#: Words of a shingle that are tried.
WIDTHS = (1, 2, 3, 5)
#: Thresholds that are tried.
SWEEP = np.arange(0.3, 0.96, 0.02).round(2).tolist()
#: Documents of one TextProfileSignature compared each with each; more are a signature of nothing.
_MOST = 200


@dataclass(frozen=True, slots=True)
class Result:
    """The best a peer reaches: ``setting`` says how, ``folded`` what folds, ``micros`` a document's cost."""

    name: str
    setting: str
    folded: set[Pair]
    micros: float
    size: int


def best(corpus: Corpus, name: str, size: int, tries: Iterable[tuple[str, set[Pair], float]]) -> Result:
    """Return the best of several settings: what each folds, and its seconds."""
    setting, folded, seconds = max(tries, key=lambda one: pair_f1(corpus, one[1]))
    return Result(name, setting, folded, seconds / len(corpus) * 1e6, size)


def swept(
    candidates: NDArray[np.int64], alike: NDArray[np.float64], setting: str, seconds: float
) -> Iterator[tuple[str, set[Pair], float]]:
    """Yield what folds at each threshold."""
    for least in SWEEP:
        rows = candidates[alike >= least].tolist()
        yield f"{setting}, t={least}", {(a, b) for a, b in rows}, seconds


def exact_resemblance(
    corpus: Corpus, hashes: Sequence[NDArray[np.uint64]], candidates: NDArray[np.int64]
) -> Result:
    """Decide by the exact resemblance of the sets of shingles, which no sketch of them beats."""

    def tries() -> Iterator[tuple[str, set[Pair], float]]:
        for width in WIDTHS:
            start = time.perf_counter()
            sets = [shingle_set(one, width) for one in hashes]
            seconds = time.perf_counter() - start
            alike = np.array([resemblance(sets[a], sets[b]) for a, b in candidates.tolist()])
            yield from swept(candidates, alike, f"w={width}", seconds)

    size = 8 * sum(map(len, hashes)) // len(hashes)
    return best(corpus, "exact resemblance of shingles", size, tries())


def minhash(  # noqa: PLR0917 - what a sketch is of
    corpus: Corpus,
    name: str,
    hashes: Sequence[NDArray[np.uint64]],
    candidates: NDArray[np.int64],
    values: int,
    bits: int,
) -> Result:
    """Decide by K values of b bits each, the share of strangers taken out."""

    def tries() -> Iterator[tuple[str, set[Pair], float]]:
        functions = Affine32.of(values, 1)
        mask = np.uint32(2**bits - 1)
        for width in WIDTHS:
            start = time.perf_counter()
            sets = [shingle_set(one, width) for one in hashes]
            filled = [one if len(one) else np.zeros(1, np.uint64) for one in sets]
            starts = np.cumsum([0, *map(len, filled)])[:-1]
            kept = minima(np.concatenate(filled), starts.astype(np.int64), functions) & mask
            seconds = time.perf_counter() - start
            share = (kept[candidates[:, 0]] == kept[candidates[:, 1]]).mean(axis=1)
            alike = (share - 2.0**-bits) / (1 - 2.0**-bits)
            yield from swept(candidates, alike, f"w={width}", seconds)

    return best(corpus, name, values * bits // 8, tries())


def datasketch_lsh(corpus: Corpus, words: Words) -> Result:
    """Ask datasketch's index, which bands 128 values of 32 bits by the threshold it is told."""
    from datasketch import MinHash, MinHashLSH

    def tries() -> Iterator[tuple[str, set[Pair], float]]:
        for width in (2, 3):
            start = time.perf_counter()
            made = MinHash.bulk(_encode(words, width), num_perm=128)
            seconds = time.perf_counter() - start
            for least in (0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8):
                index = MinHashLSH(threshold=least, num_perm=128)
                for number, one in enumerate(made):
                    index.insert(number, one)
                found = ((number, other) for number, one in enumerate(made) for other in index.query(one))
                yield f"w={width}, t={least}", {(a, b) for a, b in found if a < b}, seconds

    return best(corpus, "datasketch MinHashLSH, 128 values", 1024, tries())


def rensa(corpus: Corpus, words: Words, candidates: NDArray[np.int64]) -> Result:
    """Decide by rensa's R-MinHash of 128 values of 32 bits."""
    from rensa import RMinHash

    def tries() -> Iterator[tuple[str, set[Pair], float]]:
        for width in (2, 3):
            start = time.perf_counter()
            rows = []
            for one in _shingles(words, width):
                made = RMinHash(num_perm=128, seed=42)
                made.update(one)
                rows.append(made.digest())
            seconds = time.perf_counter() - start
            kept = np.array(rows, np.uint32)
            alike = (kept[candidates[:, 0]] == kept[candidates[:, 1]]).mean(axis=1)
            yield from swept(candidates, alike, f"w={width}", seconds)

    return best(corpus, "rensa RMinHash, 128 values", 512, tries())


def simhash(corpus: Corpus, words: Words, candidates: NDArray[np.int64]) -> Result:
    """Decide by the distance of the simhash package's 64 bits."""
    from simhash import Simhash

    def tries() -> Iterator[tuple[str, set[Pair], float]]:
        for width in (1, 2, 3):
            start = time.perf_counter()
            # The package can weigh nothing by more than 255 with numpy 2.
            bags = map(_weights, _shingles(words, width))
            made = [Simhash(one, f=64).value for one in bags]
            seconds = time.perf_counter() - start
            apart = np.array([(made[a] ^ made[b]).bit_count() for a, b in candidates.tolist()])
            for most in range(17):
                rows = candidates[apart <= most].tolist()
                yield f"w={width}, {most} bits", {(a, b) for a, b in rows}, seconds

    return best(corpus, "simhash, 64 bits", 8, tries())


def _weights(shingles: Sequence[str]) -> dict[str, int]:
    return {shingle: min(count, 255) for shingle, count in Counter(shingles).items()}


def text_profile(corpus: Corpus, words: Words) -> Result:
    """Fold equal TextProfileSignatures, as Nutch and Solr have it.

    Source: org.apache.solr.update.processor.TextProfileSignature: frequencies of tokens of ``minTokenLen``
    letters and more, rounded down to multiples of ``quant`` = round(maxFreq · quantRate), at least 2, or 1
    where nothing comes twice; those below it left out; the list by falling frequency is hashed by MD5.
    """

    def tries() -> Iterator[tuple[str, set[Pair], float]]:
        for least in (1, 2, 4):
            for rate in (0.01, 0.05, 0.1, 0.2, 0.3, 0.5):
                start = time.perf_counter()
                made = [profile(one, least, rate) for one in words]
                seconds = time.perf_counter() - start
                yield f"minTokenLen={least}, quantRate={rate}", _equal(made), seconds

    return best(corpus, "TextProfileSignature", 16, tries())


def profile(words: Sequence[str], min_length: int, rate: float) -> bytes:
    """Return the TextProfileSignature of a text."""
    counts = Counter(word for word in words if len(word) >= min_length)
    most = max(counts.values(), default=0)
    quant = round(most * rate)
    if quant < 2:
        quant = 2 if most > 1 else 1
    rounded = ((word, count // quant * quant) for word, count in counts.items())
    kept = sorted((one for one in rounded if one[1] >= quant), key=lambda one: (-one[1], one[0]))
    return md5("\n".join(f"{word} {count}" for word, count in kept).encode()).digest()


def _equal(made: Sequence[bytes]) -> set[Pair]:
    groups: Mapping[bytes, list[int]] = defaultdict(list)
    for number, one in enumerate(made):
        groups[one].append(number)
    return {pair for group in groups.values() if len(group) <= _MOST for pair in combinations(group, 2)}


def _shingles(words: Words, width: int) -> list[list[str]]:
    return [[" ".join(one[at : at + width]) for at in range(max(1, len(one) - width + 1))] for one in words]


def _encode(words: Words, width: int) -> list[list[bytes]]:
    return [[shingle.encode() for shingle in one] for one in _shingles(words, width)]


def all_of(
    corpus: Corpus, words: Words, hashes: Sequence[NDArray[np.uint64]], candidates: NDArray[np.int64]
) -> Iterator[Result]:
    """Yield the best of every peer."""
    asked: Sequence[Callable[[], Result]] = (
        lambda: exact_resemblance(corpus, hashes, candidates),
        lambda: minhash(corpus, "64 values of 2 bits, as Fess", hashes, candidates, 64, 2),
        lambda: minhash(corpus, "128 values of 32 bits, as Milvus, refined", hashes, candidates, 128, 32),
        lambda: datasketch_lsh(corpus, words),
        lambda: rensa(corpus, words, candidates),
        lambda: simhash(corpus, words, candidates),
        lambda: text_profile(corpus, words),
    )
    for ask in asked:
        yield ask()
