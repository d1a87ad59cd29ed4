"""The run: inputs by seed, the time each takes, a limit to that time, and the most memory used."""

import random
import resource
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from time import perf_counter
from types import FrameType

from support.fuzz.targets import Target
from support.generated import texts

from shinglefold.canon import Canonicalizer
from shinglefold.ingest import Fingerprinter

#: Seconds after which an input hangs, on a busy machine too.
LIMIT = 60
_BLOCK = 1_000
#: Of so many texts one is asked by the slow face as well.
_COMPARED = 50


class Hangs(Exception):
    """An input took longer than the limit."""


@dataclass(frozen=True, slots=True)
class Told:
    """How a kind of input went.

    ``p99`` and ``longest`` are milliseconds of one input (of texts: the mean of a block of 1,000), ``memory``
    is the most this process had used by then, in MB, and ``broken`` has what makes an input that broke a
    promise or hung again, and how it ended.
    """

    kind: str
    count: int
    p99: float
    longest: float
    memory: float
    broken: tuple[str, ...] = ()

    def __str__(self) -> str:
        times = f"p99 {self.p99:.2f} ms, longest {self.longest:.1f} ms, peak memory {self.memory:,.0f} MB"
        broken = "".join(f"\n  {one}" for one in self.broken)
        return f"{self.kind}: {self.count:,} inputs, {times}, {len(self.broken)} broken{broken}"


def throw(targets: Mapping[str, Target], count: int, seed: int) -> Iterator[Told]:
    """Throw so many inputs, shared out over the targets; one that breaks a promise does not end the run."""
    each = max(1, count // len(targets))
    for kind, target in targets.items():
        took, broken = [], []
        for number in range(each):
            name = f"{kind} {seed} {number}"
            begin = perf_counter()
            try:
                with limited():
                    target(random.Random(name))
            except Exception as error:
                broken.append(f"{name}: {type(error).__name__}: {error}")
            took.append((perf_counter() - begin) * 1e3)
        yield _told(kind, took, each, broken)


def canonicalize(fingerprinter: Fingerprinter, canonicalizer: Canonicalizer, count: int, seed: int) -> Told:
    """Fingerprint so many texts, and ask the slow face about some of them."""
    took, broken = [], []
    for begin in range(0, count, _BLOCK):
        block = list(texts(min(_BLOCK, count - begin), seed + begin))
        start = perf_counter()
        try:
            with limited():
                assert len(fingerprinter.fingerprint(block)) == len(block)
                _agree(canonicalizer, block[::_COMPARED])
        except Exception as error:
            broken.append(f"texts {seed} {begin}: {type(error).__name__}: {error}")
        took.append((perf_counter() - start) * 1e3 / len(block))
    return _told("texts", took, count, broken)


def _agree(canonicalizer: Canonicalizer, texts: Sequence[str]) -> None:
    batch = canonicalizer.hash_batch(texts)
    counts = [len(canonicalizer.tokens(text)) for text in texts]
    assert (batch.offsets[1:] - batch.offsets[:-1]).tolist() == counts, "the two faces differ"


def peak_memory() -> float:
    """Return the most memory this process has used, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextmanager
def limited() -> Iterator[None]:
    """Raise ``Hangs`` in what takes longer than the limit."""

    def hang(_number: int, _frame: FrameType | None) -> None:
        raise Hangs(f"longer than {LIMIT} s")

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _told(kind: str, took: Sequence[float], count: int, broken: Sequence[str]) -> Told:
    ranked = sorted(took) or [0.0]
    p99 = ranked[max(0, ceil(len(ranked) * 0.99) - 1)]
    return Told(kind, count, p99, ranked[-1], peak_memory(), tuple(broken))
