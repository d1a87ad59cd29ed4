"""An index that one process at a time may write to: waiting for it, and keeping it from batch to batch."""

import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any

from shinglefold.contracts.exclusive_writes import ExclusiveWrites
from shinglefold.errors import EngineError, EngineUnavailable

#: Seconds to wait for another process that writes to an embedded index.
_PATIENCE = 60.0
#: Seconds between two tries, and for which who was asked for the index leaves it to others.
_TRIED, _LEFT = 0.005, 0.03
#: Seconds without a batch after which the index is given back.
_IDLE = 0.1


class Patient:
    """Has an index alone while a batch is decided, and keeps other processes from writing until the next one.

    Each giving back waits for segments to be merged, which otherwise goes on beside decisions. So it is given
    back only once another gate wants it, or nothing came for a while.

    Args:
        fields: by which documents are found that searches can't see yet.
    """

    def __init__(self, engine: ExclusiveWrites, index: str, fields: Sequence[str]) -> None:
        self._engine, self._index, self._fields = engine, index, fields
        self._lock = threading.Lock()
        self._kept = ExitStack()
        self._keeps = False
        self._batch: AbstractContextManager[None] | None = None
        self._used = 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._used = float("inf")
            try:
                if not self._keeps:
                    self._keep()
                self._batch = self._engine.deciding(self._index, self._fields)
                self._batch.__enter__()
            except BaseException:
                self._used = time.monotonic()
                raise

    def __exit__(self, *raised: Any) -> None:  # noqa: ANN401 - as of any context
        assert self._batch is not None
        try:
            self._batch.__exit__(*raised)
        finally:
            self._used = time.monotonic()
            if self._engine.wanted(self._index):
                self.give_back()
                time.sleep(_LEFT)

    def give_back(self) -> None:
        """Let other processes write."""
        with self._lock:
            self._give_back()

    def _give_back(self) -> None:
        if self._keeps:
            self._keeps = False
            self._kept.close()

    def _keep(self) -> None:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                self._kept.enter_context(self._engine.held(self._index))
            except EngineUnavailable:
                if time.monotonic() > end:
                    raise
                self._engine.want(self._index)
                time.sleep(_TRIED)
            else:
                break
        self._keeps = True
        threading.Thread(target=self._watch, name="shinglefold-gate-idle").start()

    def _watch(self) -> None:
        """Give the index back once nothing comes any more."""
        while self._keeps:
            time.sleep(_IDLE / 2)
            with self._lock, suppress(EngineError):
                if time.monotonic() - self._used > _IDLE:
                    self._give_back()
