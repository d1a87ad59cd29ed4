"""Searching without input and output: a generator of calls, driven by any engine, sync or async."""

from collections.abc import Awaitable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from shinglefold import steps as general
from shinglefold.contracts import JSON, Capabilities, Engine, Parameters, Search
from shinglefold.errors import EngineError

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a method of ``Engine``, to be answered with what it returns."""

    method: Literal["mappings", "all_mappings", "search", "msearch", "open_pit", "close_pit"]
    arguments: tuple[Any, ...]


#: Yields calls, is sent their answers, returns the result.
Steps = Generator[Call, Any, Result]


class AsyncEngine(Protocol):
    """The methods of ``Engine`` that a search needs, to be awaited."""

    @property
    def can(self) -> Capabilities:
        """What the engine can do; see ``Engine``."""
        ...

    def mappings(self, index: str) -> Awaitable[JSON]:
        """Return the mappings of an index."""
        ...

    def all_mappings(self, pattern: str) -> Awaitable[dict[str, JSON]]:
        """Return the mappings of each index that a name means."""
        ...

    def search(
        self, index: str | None, body: Mapping[str, Any], parameters: Parameters | None = None
    ) -> Awaitable[JSON]:
        """Run a search."""
        ...

    def msearch(self, searches: Sequence[Search]) -> Awaitable[list[JSON | EngineError]]:
        """Run several searches at once."""
        ...

    def open_pit(
        self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None
    ) -> Awaitable[str]:
        """Open a point in time and return its id."""
        ...

    def close_pit(self, pit: str) -> Awaitable[None]:
        """Close a point in time."""
        ...


def drive(engine: Engine, steps: Steps[Result]) -> Result:
    """Run a search on an engine. What the engine raises is raised at the call, so that it can clean up."""
    return general.drive(steps, lambda call: getattr(engine, call.method)(*call.arguments))


async def drive_async(engine: AsyncEngine, steps: Steps[Result]) -> Result:
    """Run a search on an engine whose methods are awaited."""
    return await general.drive_async(steps, lambda call: getattr(engine, call.method)(*call.arguments))
