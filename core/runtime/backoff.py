"""Exponential backoff: how often to retry, how long to wait, and the loop that does it."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TypeVar

from shinglefold.errors import EngineUnavailable
from shinglefold.options.validation import check_int, check_number

T = TypeVar("T")
Stop = Callable[[], bool]
_TICK = 0.1


def never() -> bool:
    """Return False: the default for ``stop``, which never stops the retries."""
    return False


def wait(seconds: float, stop: Stop) -> bool:
    """Wait, and return False if ``stop`` returned True before the time was over."""
    end = monotonic() + seconds
    while not stop():
        if (left := end - monotonic()) <= 0:
            return True
        sleep(min(_TICK, left))
    return False


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delays between retries: ``first`` seconds, then twice as long each time, at most ``most``.

    ``jitter`` is the random share of each delay, from 0 to 1. It keeps the clients of a busy server from
    retrying all at the same moment.
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

    def delay(self, retry: int) -> float:
        """Return the seconds to wait before a retry; the first one is number 0."""
        delay = min(self.most, self.first * 2.0 ** min(retry, 64))
        return delay * (1.0 - self.jitter * random.random())


#: The retries of requests by default.
DEFAULT_BACKOFF = Backoff()


def retry_unavailable(
    ask: Callable[[], T],
    backoff: Backoff,
    stop: Stop = never,
    until: Callable[[EngineUnavailable], bool] = lambda _: False,
) -> T:
    """Call a function, and retry it while the engine is unavailable.

    Args:
        stop: checked while waiting; True ends the retries.
        until: returns whether an error ends the retries.
    """
    for retry in range(backoff.retries):
        try:
            return ask()
        except EngineUnavailable as error:
            if until(error) or not backoff.wait(backoff.delay(retry), stop):
                raise
    return ask()
