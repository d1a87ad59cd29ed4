"""Searches as sans-IO generators: they yield calls of an engine, blocking or awaited."""

from collections.abc import Awaitable, Generator
from dataclasses import dataclass
from inspect import isawaitable
from operator import methodcaller
from typing import Any, Literal, TypeVar

from shinglefold.contracts.engine import AsyncEngine, Engine
from shinglefold.errors import ConfigError
from shinglefold.runtime import sans_io

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a method of ``Engine``. Its answer is what the method returns."""

    method: Literal["mappings", "all_mappings", "search", "msearch", "open_pit", "close_pit"]
    arguments: tuple[Any, ...]

    def on(self, engine: Engine | AsyncEngine) -> Any:  # noqa: ANN401 - an answer, or an awaitable
        """Call the method of an engine."""
        return getattr(engine, self.method)(*self.arguments)


#: Yields calls, is sent their answers, returns the result.
Steps = Generator[Call, Any, Result]


def run(engine: Engine, steps: Steps[Result]) -> Result:
    """Run a search on an engine. Its errors are raised at the call, so that the search can clean up."""
    return sans_io.run(steps, methodcaller("on", engine))


async def run_async(engine: AsyncEngine, steps: Steps[Result]) -> Result:
    """Run a search on an engine whose methods are awaited.

    Raises:
        ConfigError: the engine's methods block.
    """

    def answer(call: Call) -> Awaitable[Any]:
        answered = call.on(engine)
        if not isawaitable(answered):
            raise ConfigError(
                f"engine: {type(engine).__name__} blocks; give one whose methods are awaited, whose class "
                "begins with Async"
            )
        return answered

    return await sans_io.run_async(steps, answer)
