"""Time and memory. A machine that others use too is slow now and then, never fast: the best run counts."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import NamedTuple, TypeVar

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


@contextmanager
def awake() -> Iterator[None]:
    """Keep every core busy with work that gives way to all other work at once; does nothing but on Linux.

    Between two requests of a single client all cores fall asleep, and waking them costs a virtual machine
    more than a request does.
    """
    if not hasattr(os, "SCHED_IDLE"):
        yield
        return
    context = multiprocessing.get_context("spawn")
    keepers = [context.Process(target=_spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for keeper in keepers:
        keeper.start()
    try:
        yield
    finally:
        for keeper in keepers:
            keeper.terminate()
            keeper.join()


def _spin() -> None:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        pass


class Typed(NamedTuple):
    """A command that ended well: seconds of the clock and of the processor, and what it printed."""

    seconds: float
    cpu: float
    printed: str


def typed(command: Sequence[str | Path]) -> Typed:
    """Run a command as it is typed. Of a process that waited for its children the time is theirs, too."""
    start = perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return Typed(perf_counter() - start, used.ru_utime + used.ru_stime, printed)


#: The command line of the product.
COMMAND = str(Path(sys.executable).with_name("shinglefold"))
_PAUSE = 0.2
_KB = 1024


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that ended well: seconds of the clock and of the processor, and the most memory, in MB.

    ``anonymous``: of its own; ``mapped``: of files it had mapped, which the system takes back when it needs
    them; ``together``: the most of both at one moment. Pages processes share are counted once.
    """

    seconds: float
    cpu: float
    anonymous: float
    mapped: float
    together: float


def ran(command: list[str], output: Path) -> Ran:
    """Run a command with its output in a file, and sample its memory five times a second."""
    seen: list[tuple[float, float]] = []
    before, start = os.times(), perf_counter()
    with output.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=subprocess.PIPE) as process:
        watch = threading.Thread(target=_look, args=(process, seen))
        watch.start()
        told = process.communicate()[1]
        watch.join()
    after = os.times()
    assert process.returncode == 0, told.decode()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    anonymous, mapped = zip(*seen, strict=True)
    together = max(own + files for own, files in seen)
    return Ran(perf_counter() - start, cpu, max(anonymous), max(mapped), together)


def _look(process: "subprocess.Popen[bytes]", seen: list[tuple[float, float]]) -> None:
    while process.poll() is None:
        pages = [_pages(pid) for pid in _family(process.pid)]
        seen.append((sum(own for own, _ in pages), sum(files for _, files in pages)))
        sleep(_PAUSE)


def tree_memory(pid: int) -> float:
    """Return the memory of its own that a process and those it started hold now, in MB."""
    return sum(_pages(one)[0] for one in _family(pid))


def _family(pid: int) -> list[int]:
    """Return a process and those it started."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return [pid, *(one for child in children for one in _family(int(child)))]


def _pages(pid: int) -> tuple[float, float]:
    """Return the MB of a process of its own, and of files."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    sizes = {line.split()[0]: int(line.split()[1]) / _KB for line in lines[1:]}
    return sizes.get("Pss_Anon:", 0.0), sizes.get("Pss_File:", 0.0) + sizes.get("Pss_Shmem:", 0.0)
