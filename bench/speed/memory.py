"""The memory of a command with all its processes, pages of its own told apart from those of mapped files."""

import os
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep

_PAUSE = 0.2
_KB = 1024


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that ended well: seconds of the clock and of the processor, and the most memory, in MB.

    ``anonymous``: of its own; ``mapped``: of files it had mapped, which the system takes back when it needs
    them; ``together``: the most of both at one moment. Pages processes share are counted once. ``course``:
    its own memory from the beginning to the end.
    """

    seconds: float
    cpu: float
    anonymous: float
    mapped: float
    together: float
    course: tuple[float, ...] = ()

    def grown(self) -> float:
        """Return its own memory in the last quarter, at the most, over that in the third."""
        half, rest = len(self.course) // 2, 3 * len(self.course) // 4
        return max(self.course[rest:]) / max(self.course[half:rest])


def ran(command: list[str], output: Path) -> Ran:
    """Run a command into a file, and look at its memory five times a second."""
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
    return Ran(perf_counter() - start, cpu, max(anonymous), max(mapped), together, anonymous)


def _look(process: "subprocess.Popen[bytes]", seen: list[tuple[float, float]]) -> None:
    while process.poll() is None:
        pages = [_pages(pid) for pid in _family(process.pid)]
        seen.append((sum(own for own, _ in pages), sum(files for _, files in pages)))
        sleep(_PAUSE)


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
