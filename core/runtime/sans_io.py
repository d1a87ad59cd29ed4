"""Sans-IO generators: each yields its requests, and a driver answers them."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

Request = TypeVar("Request")
Result = TypeVar("Result")


def run(steps: Generator[Request, Any, Result], answer: Callable[[Request], Any]) -> Result:
    """Run a generator to completion and return its result.

    Args:
        answer: returns the answer to a request. What it raises is raised at the ``yield``, so that the
            generator can clean up.
    """
    try:
        request = next(steps)
        while True:
            try:
                answered = answer(request)
            except BaseException as error:
                request = steps.throw(error)
            else:
                request = steps.send(answered)
    except StopIteration as end:
        result: Result = end.value
        return result


async def run_async(
    steps: Generator[Request, Any, Result], answer: Callable[[Request], Awaitable[Any]]
) -> Result:
    """Run a generator as ``run`` does, and await each answer."""
    try:
        request = next(steps)
        while True:
            try:
                answered = await answer(request)
            except BaseException as error:
                request = steps.throw(error)
            else:
                request = steps.send(answered)
    except StopIteration as end:
        result: Result = end.value
        return result
