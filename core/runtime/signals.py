"""Ctrl-C and SIGTERM: handlers record the signal, and the program checks for it between steps.

An exception raised by a signal handler is lost in ``__del__``, in a weak-reference callback or in a fork.
Anywhere else it may leave a step half done. So the handler only records the signal.
"""

import _thread
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import Any, NoReturn

#: Seconds until a wait in ``breakable`` is interrupted; usually ``check`` sees the signal sooner.
_PATIENCE = 0.5
#: Seconds within which a second signal counts as the first: ``timeout`` signals the process and its group.
_SAME_REQUEST = 0.3
#: The signal that interrupts a wait. Windows has none: there, a second Ctrl-C does.
_REMINDER: int | None = getattr(signal, "SIGURG", None)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM requested the end of the process; ``signal`` is the number of the signal."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(signal_word(number))
        self.signal = int(number)


def signal_word(number: int) -> str:
    """Return "terminated" or "interrupted", for messages."""
    return "terminated" if number == signal.SIGTERM else "interrupted"


def raise_interrupted(number: int, _frame: FrameType | None) -> NoReturn:
    """Raise ``Interrupted``, as Python's handler of Ctrl-C raises KeyboardInterrupt."""
    raise Interrupted(number)


_HANDLERS = (signal.default_int_handler, raise_interrupted, signal.SIG_DFL)


class Interrupts:
    """A context that records Ctrl-C and SIGTERM; ``check`` raises them.

    Does nothing outside the main thread, or for a signal that has another handler.
    """

    def __init__(self) -> None:
        #: The number of the signal, 0 before a signal.
        self.signal = 0
        #: Whether a second signal came. Then waits that can end without loss end at once.
        self.insistent = False
        self._since = 0.0
        self._breakable = self._at_once = False
        self._moving: Callable[[], int] | None = None
        self._moved = -1
        # Locked while the block runs, and while the reminder thread runs.
        self._running, self._reminding = threading.Lock(), threading.Lock()
        self._old: dict[int, Any] = {}

    @property
    def pending(self) -> bool:
        """Whether a signal came."""
        return bool(self.signal)

    @property
    def reason(self) -> str:
        """The word for a summary: "interrupted" or "terminated"; empty before a signal came."""
        return signal_word(self.signal) if self.signal else ""

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) in _HANDLERS:
                    self._old[number] = signal.signal(number, self._on_signal)
        if self._old:
            self._running.acquire()
            if _REMINDER is not None:
                self._old[_REMINDER] = signal.signal(_REMINDER, self._on_reminder)
        return self

    def __exit__(self, *_: object) -> None:
        if self._old:
            self._running.release()
            # A thread that wakes while the interpreter exits may crash the process.
            with self._reminding:
                pass
        for number, old in self._old.items():
            signal.signal(number, old)
        self._old.clear()

    def check(self) -> None:
        """Raise if a signal came.

        Raises:
            Interrupted: a signal came.
        """
        if self.signal:
            raise Interrupted(self.signal)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Run the block to its end, then check."""
        yield
        self.check()

    @contextmanager
    def breakable(self, at_once: bool = True, moving: Callable[[], int] | None = None) -> Iterator[None]:
        """Allow an interruption of the block while it waits.

        Args:
            at_once: interrupt at the first signal; else only at the second.
            moving: returns a number; while it grows, only a second signal interrupts.

        Raises:
            Interrupted: within the block, at most half a second after the signal, or a second after progress
                stopped.
        """
        around = self._breakable, self._at_once, self._moving
        self._breakable, self._at_once, self._moving, self._moved = True, at_once, moving, -1
        try:
            yield
        finally:
            self._breakable, self._at_once, self._moving = around

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if not self.signal:
            self.signal, self._since = number, monotonic()
            self._start_reminding()
        elif monotonic() - self._since > _SAME_REQUEST:
            self.insistent = True
        if self.insistent:
            self._break_off()

    def _on_reminder(self, _number: int, _frame: FrameType | None) -> None:
        # Without a signal before, the reminder came from elsewhere; by default processes ignore it.
        if self.signal and (self.insistent or (self._at_once and not self._moves())):
            self._break_off()

    def _moves(self) -> bool:
        """Return whether the block made progress since the last call."""
        if self._moving is None:
            return False
        before, self._moved = self._moved, self._moving()
        return self._moved > before

    def _break_off(self) -> None:
        if self._breakable:
            self._breakable = False
            raise Interrupted(self.signal)

    def _start_reminding(self) -> None:
        # ``__exit__`` may hold the lock, in this very thread; then no reminder is needed.
        if _REMINDER is None or not self._reminding.acquire(blocking=False):
            return
        try:
            # ``_thread`` instead of ``threading``, whose locks may be taken when the signal comes.
            _thread.start_new_thread(self._remind, ())
        except RuntimeError:  # No thread can be started; ``check`` and a second signal still work.
            self._reminding.release()

    def _remind(self) -> None:
        """Send a reminder every half second, because a wait resumes after a handler that does not raise.

        The reminder is SIGURG, which processes ignore by default. The user's own signal would look
        like a second one.
        """
        main = threading.main_thread().ident
        assert main is not None
        assert _REMINDER is not None
        while not self._running.acquire(timeout=_PATIENCE):
            signal.pthread_kill(main, _REMINDER)
        self._reminding.release()


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Delay Ctrl-C, SIGTERM and reminders until the end of the block, whatever their handlers.

    Does nothing outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []
    held = [number for number in (signal.SIGINT, signal.SIGTERM, _REMINDER) if number is not None]
    before = {int(number): signal.getsignal(number) for number in held}
    old = {number: handler for number, handler in before.items() if handler is not None}
    for number in old:
        signal.signal(number, lambda number, _: caught.append(number))
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
    for number in caught:
        signal.raise_signal(number)
