"""Cores kept from falling asleep, as on a site that is asked all the time."""

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager


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
