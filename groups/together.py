"""Calls of an engine that are made at the same time, as a server works on one request with one processor."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

Item = TypeVar("Item")
#: Of how many items on there are two requests; of fewer the second costs more than it brings.
_MANY = 100


@dataclass(frozen=True, slots=True)
class Together:
    """Calls none of which waits for another; answered with a list."""

    calls: tuple[Callable[[], Any], ...]


Call = Callable[[], Any] | Together


def called(call: Call) -> Any:  # noqa: ANN401 - what the call is answered
    """Make a call, or several at once. All have ended when this returns or raises what one of them did."""
    if not isinstance(call, Together):
        return call()
    with ThreadPoolExecutor(len(call.calls)) as threads:
        return [begun.result() for begun in [threads.submit(one) for one in call.calls]]


async def awaited(call: Callable[[], Awaitable[Any]] | Together) -> Any:  # noqa: ANN401 - see above
    """Do as ``called`` does, in an event loop."""
    if not isinstance(call, Together):
        return await call()
    answers = await asyncio.gather(*(one() for one in call.calls), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers


def halves(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Return many items in two parts, few in one."""
    if len(items) < _MANY:
        return [items]
    middle = (len(items) + 1) // 2
    return [items[:middle], items[middle:]]
