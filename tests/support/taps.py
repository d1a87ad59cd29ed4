"""An engine that notes what is asked of the engine behind it."""

from collections.abc import Callable, Mapping
from typing import Any

from shinglefold.contracts.engine import Capabilities, Engine


class Changed:
    """A real engine of which a subclass changes some methods."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


class Tapped:
    """Passes everything on to a real engine and keeps the calls; ``before`` is run ahead of each search.

    It says of itself that it can no more than any engine.
    """

    can = Capabilities()

    def __init__(self, engine: Engine, before: Callable[[int], None] | None = None) -> None:
        self.engine = engine
        self.before = before
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            if name == "search" and self.before is not None:
                self.before(len(self.searches))
            self.calls.append((name, arguments))
            return getattr(self.engine, name)(*arguments)

        return call

    @property
    def templates(self) -> Any:
        return self.engine.templates

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    @property
    def searches(self) -> list[Mapping[str, Any]]:
        return [arguments[1] for name, arguments in self.calls if name == "search"]


class Awaited:
    """The same engine with methods to be awaited."""

    can = Capabilities()

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any) -> Any:
            return getattr(self.engine, name)(*arguments)

        return call
