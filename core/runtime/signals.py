"""Ctrl-C and SIGTERM, noted where they fall and looked at between steps, so that no moment is special.

An exception raised by a signal handler is lost where it falls into ``__del__``, a weak-reference callback or
a fork, and leaves half a step behind anywhere else. So the handler only takes a note.
"""

import _thread
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import Any, NoReturn

#: Seconds until a wait that nothing can be lost in is broken off; until then the note is mostly seen.
_PATIENCE = 0.5
#: ``timeout`` and some supervisors send a signal to the process and again to its group.
_SAME_REQUEST = 0.3


class Interrupted(KeyboardInterrupt):
    """Somebody asked the process to end; ``signal`` is how."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(signal_word(number))
        self.signal = int(number)


def signal_word(number: int) -> str:
    """Return the word for what a signal does to a run."""
    return "terminated" if number == signal.SIGTERM else "interrupted"


def raise_interrupted(number: int, _frame: FrameType | None) -> NoReturn:
    """Handle a signal as Python handles Ctrl-C."""
    raise Interrupted(number)


_HANDLERS = (signal.default_int_handler, raise_interrupted, signal.SIG_DFL)


class Interrupts:
    """Between ``with`` and its end: take note of Ctrl-C and SIGTERM, for ``check`` to raise.

    Does nothing outside the main thread, or for a signal that somebody else handles.
    """

    def __init__(self) -> None:
        #: The number of the signal, 0 before there is one.
        self.asked = 0
        #: Whether it was asked for again: what can be given up is not waited for any longer.
        self.insistent = False
        self._since = 0.0
        self._breakable = self._at_once = False
        self._moving: Callable[[], int] | None = None
        self._moved = -1
        # Held while the block goes on, and while the thread that reminds of a signal is there.
        self._going_on, self._reminding = threading.Lock(), threading.Lock()
        self._old: dict[int, Any] = {}

    @property
    def pending(self) -> bool:
        """Whether the run is to end."""
        return bool(self.asked)

    @property
    def reason(self) -> str:
        """What a summary says ended the run; empty where nothing was asked for."""
        return signal_word(self.asked) if self.asked else ""

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) in _HANDLERS:
                    self._old[number] = signal.signal(number, self._on_signal)
        if self._old:
            self._going_on.acquire()
            self._old[signal.SIGURG] = signal.signal(signal.SIGURG, self._on_reminder)
        return self

    def __exit__(self, *_: object) -> None:
        if self._old:
            self._going_on.release()
            # A thread that wakes while the interpreter ends crashes the process now and then.
            with self._reminding:
                pass
        for number, old in self._old.items():
            signal.signal(number, old)
        self._old.clear()

    def check(self) -> None:
        """Go on, or not.

        Raises:
            Interrupted: the run is to end.
        """
        if self.asked:
            raise Interrupted(self.asked)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let nothing break off the block, and look at the note at its end."""
        yield
        self.check()

    @contextmanager
    def breakable(self, at_once: bool = True, moving: Callable[[], int] | None = None) -> Iterator[None]:
        """Break the block off where it waits: nothing is lost by that.

        Args:
            at_once: at the first signal, else only where it is asked for again.
            moving: tells how far the block is. While that grows it is not broken off, unless asked for again.

        Raises:
            Interrupted: in the middle of the block, at the latest half a second after the signal, or a second
                after what was moving came to a stop.
        """
        around = self._breakable, self._at_once, self._moving
        self._breakable, self._at_once, self._moving, self._moved = True, at_once, moving, -1
        try:
            yield
        finally:
            self._breakable, self._at_once, self._moving = around

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if not self.asked:
            self.asked, self._since = number, monotonic()
            self._start_reminding()
        elif monotonic() - self._since > _SAME_REQUEST:
            self.insistent = True
        if self.insistent:
            self._break_off()

    def _on_reminder(self, _number: int, _frame: FrameType | None) -> None:
        # Not ours, where nothing was asked for: who sends it to this process meant nobody, as it is ignored.
        if self.asked and (self.insistent or (self._at_once and not self._moves())):
            self._break_off()

    def _moves(self) -> bool:
        """Tell whether the block got further since it was asked."""
        if self._moving is None:
            return False
        before, self._moved = self._moved, self._moving()
        return self._moved > before

    def _break_off(self) -> None:
        if self._breakable:
            self._breakable = False
            raise Interrupted(self.asked)

    def _start_reminding(self) -> None:
        # The end of the block may hold the lock, in this very thread: then there is nothing to remind of.
        if not self._reminding.acquire(blocking=False):
            return
        try:
            # Lower than ``threading``: the signal may have come while that holds its locks.
            _thread.start_new_thread(self._remind, ())
        except RuntimeError:  # No thread is to be had: the note is seen between steps, and a second signal.
            self._reminding.release()

    def _remind(self) -> None:
        """Signal again and again: a wait goes on after a handler that raises nothing.

        By a signal that is ignored elsewhere: a reminder that is the user's signal could not be told from one
        more of the user's, which comes at the same moment.
        """
        main = threading.main_thread().ident
        assert main is not None
        while not self._going_on.acquire(timeout=_PATIENCE):
            signal.pthread_kill(main, signal.SIGURG)
        self._reminding.release()


@contextmanager
def deferred() -> Iterator[None]:
    """Hold Ctrl-C, SIGTERM and reminders of them back until the end of the block, whoever handles them.

    Outside the main thread do nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []
    held = (signal.SIGINT, signal.SIGTERM, signal.SIGURG)
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
