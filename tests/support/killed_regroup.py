"""A regrouping in a process of its own that is killed (-9) at a moment of its work, not of the clock."""

import multiprocessing
import os
import random
import signal
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import sleep

from shinglefold.contracts.engine import Engine
from shinglefold.grouping.regroup import RegroupOptions, regroup

Opener = Callable[[], Engine]
#: Seconds after the moment, at most, and before the next is told: so that it falls between any two steps.
_LATER = 0.02


def killed(opener: Opener, index: str, options: RegroupOptions, moment: tuple[str, int], seed: int) -> bool:
    """Regroup until a step is told for the n-th time, and a little longer; tell whether it was cut short.

    Args:
        opener: a function of a module, as the process opens an engine of its own.
        moment: ``reading``, ``grouping`` or ``writing``, and the number of the time it is told.
    """
    arguments = (opener, index, options, moment, seed)
    process = multiprocessing.get_context("fork").Process(target=_work, args=arguments)
    process.start()
    process.join()
    return process.exitcode == -signal.SIGKILL


def _work(opener: Opener, index: str, options: RegroupOptions, moment: tuple[str, int], seed: int) -> None:
    import shinglefold.grouping.regroup.run as run

    # Many steps of few documents.
    run._ALONE = run._BATCH = 10
    told: list[str] = []
    later = random.Random(seed).uniform(0, _LATER)
    over = threading.Event()

    def report(what: str, _documents: int, _share: float) -> None:
        if over.is_set():
            # On a busy machine the work may be faster than the clock: no step is told after the moment.
            os.kill(os.getpid(), signal.SIGKILL)
        told.append(what)
        if what == moment[0] and told.count(what) == moment[1]:
            over.set()
            threading.Thread(target=_end, args=(later,), daemon=True).start()

    with closing(opener()) as engine:
        regroup(engine, index, options, report=report)


def _end(later: float) -> None:
    sleep(later)
    os.kill(os.getpid(), signal.SIGKILL)


def moments(seed: int) -> list[tuple[str, int]]:
    """Return random moments: twice while it writes, and before and between while it reads or decides."""
    chance = random.Random(seed)
    return [
        (chance.choice(["reading", "grouping"]), 1),
        ("writing", chance.randint(1, 4)),
        ("writing", chance.randint(1, 3)),
        (chance.choice(["reading", "writing"]), 1),
    ]


def checkpoint(folder: Path) -> RegroupOptions:
    """Return options that let a later run go on."""
    return RegroupOptions(checkpoint=folder / "kept.json")
