"""What a gate does beside decisions, about once a second: refreshing, clearing away, looking at its index."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from shinglefold.contracts import Engine, GuardedWrites
from shinglefold.groups.gate.opening import Opened
from shinglefold.steps import drive

#: Seconds after which searches are made to see what was let in.
SECONDS = 1.0


class Aside:
    """Has searches see what was let in while decisions go on, and clears away what the dead have left."""

    def __init__(self, engine: Engine, opened: Opened) -> None:
        self._engine, self._opened, self._shared = engine, opened, opened.shared
        self._refreshed = self._looked = time.monotonic()
        self._refreshing: Future[None] | None = None
        self._rounds: tuple[str, ...] = ()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="shinglefold-gate")

    def look(self, answer: Callable[[Any], Any]) -> None:
        """Do what is due.

        Raises:
            EngineError: the index is another than the gate was opened before, or the engine can't go on.
        """
        if self._shared is None:
            return
        if self._refreshing is not None and self._refreshing.done():
            self._settle()
            drive(self._shared.clean(self._opened.forms), answer)
        if time.monotonic() - self._looked > SECONDS:
            self._same()
        if self._refreshing is None and time.monotonic() - self._refreshed > SECONDS:
            self._rounds = self._shared.settled()
            if self._rounds:
                self._refreshing = self._thread.submit(self._engine.refresh, self._opened.index)

    def wait(self) -> None:
        """Wait for a refresh that goes on."""
        if self._refreshing is not None:
            self._refreshing.exception()
            self._settle()

    def close(self) -> None:
        """End the thread that refreshes."""
        self._thread.shutdown()

    def _settle(self) -> None:
        refreshing, self._refreshing = self._refreshing, None
        self._refreshed = time.monotonic()
        if refreshing is not None and self._shared is not None:
            refreshing.result()
            self._shared.seen(self._rounds)

    def _same(self) -> None:
        if isinstance(self._engine, GuardedWrites):
            self._opened.check_same(self._engine.identities(self._opened.names))
        self._looked = time.monotonic()
