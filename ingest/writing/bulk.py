"""Documents to the engine in bulk; what it is too busy for is sent again."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any, NamedTuple, TypeVar

from shinglefold.checks import check_number, check_whole
from shinglefold.contracts import BulkFailure, BulkResult, Engine
from shinglefold.errors import EngineUnavailable

T = TypeVar("T")
Action = Mapping[str, Any]
_BUSY = (429, 503)
_TICK = 0.1


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often to try again: after ``first`` seconds, doubled each time, at most ``most``."""

    retries: int = 6
    first: float = 0.5
    most: float = 30.0

    def __post_init__(self) -> None:
        check_whole("retries", self.retries)
        check_number("first (seconds)", self.first)
        check_number("most (seconds)", self.most)

    def delays(self) -> Iterator[float]:
        """Yield the seconds to wait before each retry."""
        for retry in range(self.retries):
            yield min(self.most, self.first * 2.0**retry)


class Sent(NamedTuple):
    """What became of some actions: the refused ones, and how many were sent again; all else was done.

    ``written_over``: how many took the place of a document with their id. ``renamed``: how many are in an
    index of another name, by its name.
    """

    refused: list[BulkFailure]
    again: int
    written_over: int = 0
    renamed: Mapping[str, int] = {}


def send(
    engine: Engine,
    actions: Sequence[Action],
    backoff: Backoff,
    stop: Callable[[], bool] = lambda: False,
) -> Sent:
    """Run bulk actions until the engine took or finally refused each.

    Args:
        stop: asked while waiting; once true nothing is tried again.

    Raises:
        EngineError: the engine can't be reached, or refuses the request as a whole.
    """
    refused: list[BulkFailure] = []
    again = written_over = 0
    renamed: Counter[str] = Counter()
    delays = backoff.delays()
    while True:
        delay = next(delays, None)
        result = _attempt(engine, actions, last=delay is None or stop())
        written_over += result.written_over
        renamed.update(result.renamed)
        busy = [failure for failure in result.failures if failure.status in _BUSY]
        refused += [failure for failure in result.failures if failure.status not in _BUSY]
        if not busy:
            return Sent(refused, again, written_over, renamed)
        if delay is None or not _wait(delay, stop):
            return Sent(refused + busy, again, written_over, renamed)
        actions = [failure.action for failure in busy]
        again += len(actions)


def patiently(ask: Callable[[], T], backoff: Backoff, stop: Callable[[], bool] = lambda: False) -> T:
    """Return the answer, asking again while the engine does not answer.

    Args:
        stop: asked while waiting; once true it is not asked again.
    """
    for delay in backoff.delays():
        try:
            return ask()
        except EngineUnavailable:
            if not _wait(delay, stop):
                raise
    return ask()


def _attempt(engine: Engine, actions: Sequence[Action], last: bool) -> BulkResult:
    """Return the engine's result; an engine that does not answer counts as busy but for the last attempt."""
    try:
        return engine.bulk(actions)
    except EngineUnavailable as error:
        if last:
            raise
        return BulkResult(0, tuple(BulkFailure(action, 503, str(error)) for action in actions))


def _wait(seconds: float, stop: Callable[[], bool]) -> bool:
    """Wait, and tell whether it was not cut short."""
    end = monotonic() + seconds
    while not stop():
        if (left := end - monotonic()) <= 0:
            return True
        sleep(min(_TICK, left))
    return False
