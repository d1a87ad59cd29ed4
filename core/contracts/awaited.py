"""The contracts of engines whose methods are awaited."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from shinglefold.contracts.engine import JSON, Capabilities, Engine, Parameters, Search
from shinglefold.errors import EngineError


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


@runtime_checkable
class Threaded(Protocol):
    """What awaited engines offer that have a blocking one do the work, in threads."""

    @property
    def blocking(self) -> Engine:
        """The engine that does the work; it may be used beside, in any thread."""
        ...


@runtime_checkable
class Connected(Protocol):
    """What awaited engines of servers offer."""

    @property
    def connection(self) -> Any:  # noqa: ANN401 - engines know what it is
        """How the server is reached: ``open_engine`` makes a blocking engine of it."""
        ...
