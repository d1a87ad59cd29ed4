"""Sans-IO generators: a generator yields requests, and a driver sends the responses back."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

Request = TypeVar("Request")
Result = TypeVar("Result")


def run(steps: Generator[Request, Any, Result], answer: Callable[[Request], Any]) -> Result:
    """Run a generator to completion and return its result.

    Args:
        answer: returns the response to a request. Its errors are raised at the ``yield``, so that the
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
    """Run a generator like ``run``, awaiting each response."""
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
