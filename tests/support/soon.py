"""Work that must end soon, held against other work that the same machine does at the same moment."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from time import thread_time

#: Elements of the walk that work is compared with, which takes some 50 ms where nothing else runs.
_ELEMENTS = 1_000_000


@contextmanager
def soon(walks: float = 20) -> Iterator[None]:
    """The work inside takes less than so many walks through a list of a million elements.

    A second is another amount of work where two processes share a core, and processor time with it; so the
    walk is timed before the work and after it, and the slower one counts. Neither other threads nor the
    collection of what other tests left behind are the work's.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        before = _walk()
        began = thread_time()
        yield
        took = thread_time() - began
    finally:
        if collecting:
            gc.enable()
    bound = walks * max(before, _walk())
    assert took < bound, f"{took:.2f} s of the processor, and {walks} walks take {bound:.2f} s"


def _walk() -> float:
    """Return the seconds of looking at each element of a long list."""
    began = thread_time()
    assert all(isinstance(one, int) for one in repeat(1, _ELEMENTS))
    return thread_time() - began
