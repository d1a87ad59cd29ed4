"""Exponential backoff: how often to retry, how long to wait, and the loop that does it."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TypeVar

from shinglefold.errors import EngineUnavailable
from shinglefold.options.validation import check_int, check_number

T = TypeVar("T")
Stop = Callable[[], bool]
_TICK = 0.1


def never() -> bool:
    """Return False: nothing stops the retries."""
    return False


def wait(seconds: float, stop: Stop) -> bool:
    """Wait, and return whether the whole time passed before ``stop`` returned True."""
    end = monotonic() + seconds
    while not stop():
        if (left := end - monotonic()) <= 0:
            return True
        sleep(min(_TICK, left))
    return False


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often to retry: after ``first`` seconds, doubled each time, at most ``most``.

    ``jitter`` is the share of each delay that is random, from 0 to 1. Without it, all clients that a busy
    server turned away come back at the same moment.
    """

    retries: int = 6
    first: float = 0.5
    most: float = 30.0
    jitter: float = 0.0
    wait: Callable[[float, Stop], bool] = wait

    def __post_init__(self) -> None:
        check_int("retries", self.retries)
        check_number("first (seconds)", self.first)
        check_number("most (seconds)", self.most)

    def delays(self) -> Iterator[float]:
        """Yield the seconds to wait before each retry."""
        for retry in range(self.retries):
            delay = min(self.most, self.first * 2.0**retry)
            yield delay * (1.0 - self.jitter * random.random())


def retry_unavailable(
    ask: Callable[[], T],
    backoff: Backoff,
    stop: Stop = never,
    until: Callable[[EngineUnavailable], bool] = lambda _: False,
) -> T:
    """Return the answer, and ask again while the engine is unavailable.

    Args:
        stop: checked while waiting; once true, nothing is retried.
        until: returns whether an error ends the retries at once.
    """
    for delay in backoff.delays():
        try:
            return ask()
        except EngineUnavailable as error:
            if until(error) or not backoff.wait(delay, stop):
                raise
    return ask()
