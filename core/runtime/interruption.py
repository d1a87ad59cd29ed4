"""Ctrl-C and SIGTERM as one exception."""

import signal
from types import FrameType
from typing import NoReturn


class Interrupted(KeyboardInterrupt):
    """Somebody asked the process to end; ``signal`` is how."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(said(number))
        self.signal = int(number)


def said(number: int) -> str:
    """Return the word for what a signal does to a run."""
    return "terminated" if number == signal.SIGTERM else "interrupted"


def raise_interrupted(number: int, _frame: FrameType | None) -> NoReturn:
    """Handle a signal as Python handles Ctrl-C."""
    raise Interrupted(number)
