"""The run: inputs by seed, the time each takes, a limit to that time, and the most memory used."""

import random
import resource
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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
    """How a kind of input went: ``p99`` and ``longest`` in milliseconds of one input."""

    kind: str
    count: int
    p99: float
    longest: float

    def __str__(self) -> str:
        return f"{self.kind}: {self.count:,} inputs, p99 {self.p99:.2f} ms, longest {self.longest:.1f} ms"


def throw(targets: Mapping[str, Target], count: int, seed: int) -> Iterator[Told]:
    """Throw so many inputs, shared out over the targets.

    Raises:
        AssertionError: an input broke a promise or hung; the message has what makes it again.
    """
    each = max(1, count // len(targets))
    for kind, target in targets.items():
        took = []
        for number in range(each):
            name = f"{kind} {seed} {number}"
            begin = perf_counter()
            try:
                with limited():
                    target(random.Random(name))
            except Exception as error:
                raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
            took.append((perf_counter() - begin) * 1e3)
        yield _told(kind, took)


def canonicalize(fingerprinter: Fingerprinter, canonicalizer: Canonicalizer, count: int, seed: int) -> Told:
    """Fingerprint so many texts, and ask the slow face about some of them.

    Raises:
        AssertionError: a text raised, hung, or the two faces differ.
    """
    took = []
    for begin in range(0, count, _BLOCK):
        block = list(texts(min(_BLOCK, count - begin), seed + begin))
        start = perf_counter()
        with limited():
            assert len(fingerprinter.fingerprint(block)) == len(block)
        took += [(perf_counter() - start) * 1e3 / len(block)]
        some = block[::_COMPARED]
        batch = canonicalizer.hash_batch(some)
        counts = [len(canonicalizer.tokens(text)) for text in some]
        assert (batch.offsets[1:] - batch.offsets[:-1]).tolist() == counts, f"texts {seed} {begin}"
    return _told("texts", took, count)


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


def _told(kind: str, took: list[float], count: int | None = None) -> Told:
    ranked = sorted(took)
    return Told(kind, count or len(ranked), ranked[int(len(ranked) * 0.99) - 1], ranked[-1])
