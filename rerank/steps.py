"""Searching without input and output: a generator of calls, driven by any engine, sync or async."""

from collections.abc import Awaitable, Generator
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Literal, TypeVar

from shinglefold import steps as general
from shinglefold.awaited import AsyncEngine
from shinglefold.contracts import Engine
from shinglefold.errors import ConfigError

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a method of ``Engine``, to be answered with what it returns."""

    method: Literal["mappings", "all_mappings", "search", "msearch", "open_pit", "close_pit"]
    arguments: tuple[Any, ...]


#: Yields calls, is sent their answers, returns the result.
Steps = Generator[Call, Any, Result]


def drive(engine: Engine, steps: Steps[Result]) -> Result:
    """Run a search on an engine. What the engine raises is raised at the call, so that it can clean up."""
    return general.drive(steps, lambda call: getattr(engine, call.method)(*call.arguments))


async def drive_async(engine: AsyncEngine, steps: Steps[Result]) -> Result:
    """Run a search on an engine whose methods are awaited.

    Raises:
        ConfigError: they are not.
    """

    def answer(call: Call) -> Awaitable[Any]:
        answered = getattr(engine, call.method)(*call.arguments)
        if not isawaitable(answered):
            raise ConfigError(
                f"engine: {type(engine).__name__} blocks; give one whose methods are awaited, whose class "
                "begins with Async"
            )
        return answered

    return await general.drive_async(steps, answer)
