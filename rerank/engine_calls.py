"""Searches as sans-IO generators of engine calls: run blocking or awaited, one or several together."""

from collections.abc import Awaitable, Generator, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from operator import methodcaller
from typing import Any, Generic, Literal, TypeVar

from shinglefold.contracts.engine import JSON, AsyncEngine, Engine
from shinglefold.errors import ConfigError, EngineError, ShinglefoldError
from shinglefold.runtime import sans_io

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a method of ``Engine``; the answer is what the method returns."""

    method: Literal["all_mappings", "search_pipeline", "search", "msearch", "open_pit", "close_pit", "read"]
    arguments: tuple[Any, ...]

    def on(self, engine: Engine | AsyncEngine) -> Any:  # noqa: ANN401 - an answer, or an awaitable
        """Call the method of an engine."""
        return getattr(engine, self.method)(*self.arguments)


#: Yields calls, is sent their answers, returns the result.
Steps = Generator[Call, Any, Result]


def run(engine: Engine, steps: Steps[Result]) -> Result:
    """Return the result of a search on an engine. Errors are raised at the call, so that it can clean up."""
    return sans_io.run(steps, methodcaller("on", engine))


async def run_async(engine: AsyncEngine, steps: Steps[Result]) -> Result:
    """Return the result of a search on an engine whose methods are awaited; refuse one that blocks."""

    def answer(call: Call) -> Awaitable[Any]:
        result = call.on(engine)
        if not isawaitable(result):
            raise ConfigError(
                f"engine: {type(engine).__name__} blocks; give one whose methods are awaited, whose class "
                "begins with Async"
            )
        return result

    return await sans_io.run_async(steps, answer)


def search_all(index: str | None, bodies: Sequence[JSON]) -> Steps[list[JSON]]:
    """Return the answers to several searches, sent as one request; raise the first error among them."""
    if not bodies:
        return []
    if len(bodies) == 1:
        return [(yield Call("search", (index, bodies[0])))]
    answers: list[JSON | EngineError] = yield Call("msearch", ([(index, body) for body in bodies],))
    whole = []
    for one in answers:
        if isinstance(one, EngineError):
            raise one
        whole.append(one)
    return whole


def run_together(searches: Sequence[Steps[Result]]) -> Steps[list[Result | ShinglefoldError]]:
    """Run searches together, and return the result of each, or the error that it raised.

    The requests that they wait for at the same time are sent as one.
    """
    lanes = [_Lane(steps) for steps in searches]
    for lane in lanes:
        # Start the searches one after the other, so that the mappings of an index are read once.
        yield from lane.advance()
    while waiting := [lane for lane in lanes if lane.search is not None]:
        for lane, answer in zip(waiting, (yield from _search_together(waiting)), strict=True):
            yield from lane.advance(answer)
    return [lane.result() for lane in lanes]


def _search_together(waiting: "Sequence[_Lane[Any]]") -> Steps[Sequence[Any]]:
    """Return the answers that lanes wait for; errors are returned, so that all lanes can clean up."""
    searches = [lane.search for lane in waiting if lane.search is not None]
    try:
        if len(searches) == 1:
            return [(yield Call("search", searches[0]))]
        return (yield Call("msearch", (searches,)))  # type: ignore[no-any-return]
    except BaseException as error:
        return [error] * len(searches)


class _Lane(Generic[Result]):
    """One of the searches.

    Attributes:
        search: the arguments of the search that it waits for; None before the start and after the end.
    """

    def __init__(self, steps: Steps[Result]) -> None:
        self.search: tuple[Any, ...] | None = None
        self._steps = steps
        self._outcome: list[Result | BaseException] = []

    def advance(self, answer: Any = None) -> Steps[None]:  # noqa: ANN401 - whatever an engine returns
        """Send an answer or an error, and run to the next search; other requests are yielded."""
        self.search = None
        while True:
            try:
                failed = isinstance(answer, BaseException)
                call = self._steps.throw(answer) if failed else self._steps.send(answer)
            except StopIteration as end:
                self._outcome.append(end.value)
                return
            except BaseException as error:
                self._outcome.append(error)
                return
            # A gateway's steps yield more than calls of an engine.
            if isinstance(call, Call) and call.method == "search":
                self.search = call.arguments
                return
            try:
                answer = yield call
            except BaseException as error:
                answer = error

    def result(self) -> Result | ShinglefoldError:
        """Return the result or the error of the search; raise errors of other kinds."""
        (found,) = self._outcome
        if isinstance(found, BaseException) and not isinstance(found, ShinglefoldError):
            raise found
        return found
