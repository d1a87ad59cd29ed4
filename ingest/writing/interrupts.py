"""Ctrl-C, held back while the engine writes, so that what was written is also counted."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupts:
    """Between ``with`` and its end: raise KeyboardInterrupt at once, but inside ``held`` at its end.

    Does nothing outside the main thread, or where somebody else handles the signal.
    """

    def __init__(self) -> None:
        self.pending = False
        self._held = False
        self._old: Any = None

    def __enter__(self) -> "Interrupts":
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            try:
                self._old = signal.signal(signal.SIGINT, self._on_signal)
            except ValueError:
                self._old = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._old is not None:
            signal.signal(signal.SIGINT, self._old)
            self._old = None

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if not self._held:
            raise KeyboardInterrupt
        self.pending = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold Ctrl-C back until the end of the block."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self.pending:
            self.pending = False
            raise KeyboardInterrupt


@contextmanager
def deferred() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the block, whoever handles it; outside the main thread do nothing."""
    caught: list[int] = []
    old = signal.getsignal(signal.SIGINT)
    if old is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old)
    if caught:
        signal.raise_signal(signal.SIGINT)
