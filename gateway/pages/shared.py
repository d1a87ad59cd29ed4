"""What the pages of one index share: the index, how commands are completed, and results that take long."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Any

from shinglefold.api import FoldedIndex
from shinglefold.errors import complete_commands

_SECONDS = 60.0
#: The most results that are kept.
_MOST = 16


class Recent:
    """Results of the last minute, by what was asked; a second request waits instead of scanning, too."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: dict[object, tuple[float, Any]] = {}

    def get(self, key: object, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it makes
        """Return the result of the last minute, else a new one."""
        with self._lock:
            now = monotonic()
            self._made = {one: made for one, made in self._made.items() if made[0] + _SECONDS > now}
            if key not in self._made:
                while len(self._made) >= _MOST:
                    del self._made[next(iter(self._made))]
                made = make()
                self._made[key] = monotonic(), made
            return self._made[key][1]


def without_backquotes(text: str) -> str:
    """Return a message with its commands as they are, without the backquotes around them."""
    return complete_commands(text, lambda words: words)


@dataclass(frozen=True, slots=True)
class Shared:
    """The index of the pages; ``complete`` completes the commands of messages."""

    index: FoldedIndex
    complete: Callable[[str], str] = without_backquotes
    recent: Recent = field(default_factory=Recent)
