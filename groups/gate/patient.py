"""Waiting for an index that one process at a time may write to."""

import time
from contextlib import AbstractContextManager
from typing import Any

from shinglefold.contracts import ExclusiveWrites
from shinglefold.errors import EngineUnavailable

#: Seconds to wait for another process that writes to an embedded index.
_PATIENCE = 60.0


class Patient:
    """Waits until no other process writes to an index, and keeps it from doing so."""

    def __init__(self, engine: ExclusiveWrites, index: str) -> None:
        self._engine, self._index = engine, index
        self._held: AbstractContextManager[None] | None = None

    def __enter__(self) -> None:
        end = time.monotonic() + _PATIENCE
        while True:
            held = self._engine.exclusive(self._index)
            try:
                held.__enter__()
            except EngineUnavailable:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
            else:
                self._held = held
                return

    def __exit__(self, *raised: Any) -> None:  # noqa: ANN401 - as of any context
        assert self._held is not None
        self._held.__exit__(*raised)
