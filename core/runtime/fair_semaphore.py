"""A semaphore for threads that serves them in the order in which they came."""

import threading
from collections import deque


class FairSemaphore:
    """Counts like ``threading.Semaphore``, which lets a new thread pass those that wait.

    ``asyncio.Semaphore`` is fair by itself.
    """

    def __init__(self, value: int) -> None:
        self._value = value
        self._lock = threading.Lock()
        #: A lock for each waiting thread, which is released when its turn comes.
        self._waiting: deque[threading.Lock] = deque()

    def acquire(self, timeout: float) -> bool:
        """Wait for a turn, and return whether it came within ``timeout`` seconds."""
        with self._lock:
            if self._value:
                self._value -= 1
                return True
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        try:
            if turn.acquire(timeout=timeout):
                return True
        except BaseException:
            if not self._withdraw(turn):
                self.release()
            raise
        return not self._withdraw(turn)

    def release(self) -> None:
        """Pass the turn to the thread that waits longest; if none waits, count up."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._value += 1

    def _withdraw(self, turn: threading.Lock) -> bool:
        """Stop waiting, and return False if the turn came meanwhile."""
        with self._lock:
            if turn not in self._waiting:
                return False
            self._waiting.remove(turn)
            return True
