"""Time and memory. A machine that others use too is slow now and then, never fast: the best run counts."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def best(work: Callable[[], object], runs: int = 5) -> float:
    """Return the seconds of the fastest of some runs."""
    return min(once(work)[0] for _ in range(runs))


def once(work: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds of one run, and its answer."""
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, answer


def in_turns(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return of each way the seconds of processor time of its best round, all ways in each round."""
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, work in ways.items():
            least[name] = min(least[name], processor_time(work))
    return least


def processor_time(work: Callable[[], object]) -> float:
    """Return the processor time of one run, all threads of this process included."""
    start = time.process_time()
    work()
    return time.process_time() - start


def peak_memory() -> float:
    """Return the most memory this process ever held, in MB.

    Not by ``getrusage``, which counts what started this process, too.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
