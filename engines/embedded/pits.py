"""Points in time: snapshots kept under an id until they are closed or run out."""

import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from shinglefold.engines.embedded.snapshot import Snapshot
from shinglefold.errors import PitExpired, UnsupportedQuery

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


@dataclass(slots=True)
class Pits:
    """The open points in time of an engine; ``clock`` gives seconds."""

    clock: Callable[[], float] = time.monotonic
    _open: dict[str, tuple[Snapshot, float]] = field(default_factory=dict)

    def open(self, snapshot: Snapshot, keep_alive: str) -> str:
        """Keep a snapshot and return its id."""
        seconds = _seconds(keep_alive)
        self._expire()
        pit = uuid.uuid4().hex
        self._open[pit] = snapshot, self.clock() + seconds
        return pit

    def snapshot(self, pit: str, keep_alive: str | None) -> Snapshot:
        """Return the snapshot of a point in time; it is kept for longer when ``keep_alive`` says so.

        Raises:
            PitExpired: it was closed, or ran out.
        """
        self._expire()
        if pit not in self._open:
            raise PitExpired(f"no point in time {pit!r}: it was closed or ran out; open another")
        snapshot, until = self._open[pit]
        if keep_alive is not None:
            self._open[pit] = snapshot, max(until, self.clock() + _seconds(keep_alive))
        return snapshot

    def close(self, pit: str) -> None:
        """Give a snapshot back."""
        self._open.pop(pit, None)

    def drop(self, index: str) -> None:
        """Close all points in time of an index."""
        self._open = {pit: kept for pit, kept in self._open.items() if kept[0].name != index}

    def clear(self) -> None:
        """Close all points in time."""
        self._open.clear()

    def _expire(self) -> None:
        now = self.clock()
        self._open = {pit: kept for pit, kept in self._open.items() if kept[1] > now}


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d{1,9})(ms|s|m|h|d)", text)
    if found is None:
        raise UnsupportedQuery(
            f"keep_alive {text!r}: expected a number and one of {', '.join(_UNITS)}, such as 1m"
        )
    return int(found[1]) * _UNITS[found[2]]
