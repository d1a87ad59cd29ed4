"""Work without input and output: steps that yield their requests, driven by whoever can answer them."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

Request = TypeVar("Request")
Result = TypeVar("Result")


def drive(steps: Generator[Request, Any, Result], answer: Callable[[Request], Any]) -> Result:
    """Answer each request of steps, and return what comes of them.

    What answering raises is raised where the request was made, so that the steps can clean up.
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


async def drive_async(
    steps: Generator[Request, Any, Result], answer: Callable[[Request], Awaitable[Any]]
) -> Result:
    """Do as ``drive`` does, where answers are awaited."""
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
