"""What a gate does beside decisions, about once a second: refreshing, clearing away, looking at its index.

Where the engine is not there for a moment all this is done a second later: decisions meet the same, and what
was let in is known to all until searches see it.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from shinglefold.contracts.engine import Engine, GuardedWrites
from shinglefold.errors import EngineUnavailable
from shinglefold.groups.gate.opening import Opened
from shinglefold.groups.gate.protocol.intent_register import Shared
from shinglefold.runtime.sans_io import run

#: Seconds after which searches are made to see what was let in.
SECONDS = 1.0
#: Seconds for which it may fail.
_PATIENCE = 60.0


class Borne:
    """What may fail for a while."""

    def __init__(self) -> None:
        self._since: float | None = None

    def bear(self, error: EngineUnavailable) -> None:
        """Note a failure.

        Raises:
            EngineUnavailable: it has failed for too long.
        """
        self._since = self._since or time.monotonic()
        if time.monotonic() - self._since > _PATIENCE:
            raise error

    def done(self) -> None:
        """Note that it went well."""
        self._since = None


class Aside:
    """Has searches see what was let in while decisions go on, and clears away what the dead have left."""

    def __init__(self, engine: Engine, opened: Opened) -> None:
        self._engine, self._opened, self._shared = engine, opened, opened.shared
        self._refreshed = self._looked = time.monotonic()
        self._refreshing: Future[None] | None = None
        self._rounds: tuple[str, ...] = ()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="shinglefold-gate")
        self._borne = Borne()

    def look(self, answer: Callable[[Any], Any]) -> None:
        """Do what is due.

        Raises:
            EngineError: the index is another than the gate was opened before, or the engine can't go on.
        """
        if self._shared is None:
            return
        try:
            self._settle_what_is_due(self._shared, answer)
        except EngineUnavailable as error:
            self._borne.bear(error)
        if self._refreshing is None and time.monotonic() - self._refreshed > SECONDS:
            self._rounds = self._shared.settled()
            if self._rounds:
                self._refreshing = self._thread.submit(self._engine.refresh, self._opened.index)

    def wait(self) -> None:
        """Wait for a refresh that goes on; where it fails, what it was for stays known to all."""
        if self._refreshing is not None:
            self._refreshing.exception()
            with suppress(EngineUnavailable):
                self._settle()

    def close(self) -> None:
        """End the thread that refreshes."""
        self._thread.shutdown()

    def _settle_what_is_due(self, shared: Shared, answer: Callable[[Any], Any]) -> None:
        if self._refreshing is not None and self._refreshing.done():
            self._settle()
            self._borne.done()
            run(shared.clean(self._opened.forms), answer)
        if time.monotonic() - self._looked > SECONDS:
            self._looked = time.monotonic()
            self._same()

    def _settle(self) -> None:
        refreshing, self._refreshing = self._refreshing, None
        self._refreshed = time.monotonic()
        if refreshing is not None and self._shared is not None:
            refreshing.result()
            self._shared.seen(self._rounds)

    def _same(self) -> None:
        if isinstance(self._engine, GuardedWrites):
            self._opened.check_same(self._engine.identities(self._opened.names))
