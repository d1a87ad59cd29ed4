"""State that the pages of one index share: the index, completion of commands, and cached slow results."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Any

from shinglefold.api import FoldedIndex
from shinglefold.errors import EngineUnavailable, complete_commands

_SECONDS = 60.0
#: The most results that are kept, and that are made at the same time.
_MOST, _AT_ONCE = 16, 2


class Recent:
    """A cache of results of the last minute, by request; threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        #: When each was made, which is never while it is being made.
        self._made: dict[Hashable, tuple[float, Future[Any]]] = {}

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it makes
        """Return the result of the last minute, else a new one; concurrent callers wait for the same one."""
        future: Future[Any] = Future()
        with self._lock:
            now = monotonic()
            self._made = {one: made for one, made in self._made.items() if made[0] + _SECONDS > now}
            found = self._made.get(key)
            if found is None:
                busy = sum(not made.done() for _, made in self._made.values())
                if busy >= _AT_ONCE:
                    raise EngineUnavailable(
                        f"{busy} other pages are reading whole indices at the moment: try again in a minute"
                    )
                while len(self._made) >= _MOST:
                    del self._made[next(one for one, (_, made) in self._made.items() if made.done())]
                self._made[key] = float("inf"), future
        if found is not None:
            return found[1].result()
        try:
            made = make()
        except BaseException as error:
            with self._lock:
                del self._made[key]
            future.set_exception(error)
            raise
        with self._lock:
            self._made[key] = monotonic(), future
        future.set_result(made)
        return made


def without_backquotes(text: str) -> str:
    """Return a message with its commands as they are, without the backquotes around them."""
    return complete_commands(text, lambda words: words)


@dataclass(frozen=True, slots=True)
class Shared:
    """The index of the pages; ``complete`` completes the commands of messages.

    ``reader``: who reads; results that take long are not shown to others.
    """

    index: FoldedIndex
    complete: Callable[[str], str] = without_backquotes
    recent: Recent = field(default_factory=Recent)
    reader: Hashable = None

    def once(self, kind: Hashable, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it makes
        """Return a result of the last minute, else a new one; see ``Recent``."""
        return self.recent.get((self.index.name, self.reader, kind), make)
