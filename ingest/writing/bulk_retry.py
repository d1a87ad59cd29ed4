"""Bulk requests, with retries of what the engine is too busy for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from shinglefold.contracts.engine import BulkFailure, BulkResult, Engine
from shinglefold.errors import EngineUnavailable
from shinglefold.runtime.backoff import Backoff, Stop, never

Action = Mapping[str, Any]
_BUSY = (429, 503)


class Sent(NamedTuple):
    """What became of some actions: those refused, and how many were retried. All others were done.

    ``written_over`` counts the documents that replaced one with their id. ``renamed`` counts those that went
    into an index of another name, by that name.
    """

    refused: list[BulkFailure]
    again: int
    written_over: int = 0
    renamed: Mapping[str, int] = {}


def send(
    engine: Engine,
    actions: Sequence[Action],
    backoff: Backoff,
    stop: Stop = never,
) -> Sent:
    """Run bulk actions until the engine took or finally refused each of them.

    Args:
        stop: checked while waiting; once true, nothing is retried.

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
        if delay is None or not backoff.wait(delay, stop):
            return Sent(refused + busy, again, written_over, renamed)
        actions = [failure.action for failure in busy]
        again += len(actions)


def _attempt(engine: Engine, actions: Sequence[Action], last: bool) -> BulkResult:
    """Return the engine's result. An unavailable engine counts as busy, except in the last attempt."""
    try:
        return engine.bulk(actions)
    except EngineUnavailable as error:
        if last:
            raise
        return BulkResult(0, tuple(BulkFailure(action, 503, str(error)) for action in actions))
