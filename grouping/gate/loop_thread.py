"""An event loop in a thread of its own, in which other threads run coroutines."""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from shinglefold.errors import EngineError

Given = ParamSpec("Given")
Result = TypeVar("Result")
#: Seconds between two looks at whether the thread is still there.
_ALIVE = 1.0


class LoopThread:
    """Runs an event loop in a daemon thread, until ``stop`` or until nobody has this object any more."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        # An engine that blocks blocks it, which is no news in debug mode.
        self._loop.slow_callback_duration = float("inf")
        self._process = os.getpid()
        self._thread = threading.Thread(target=_serve, args=(self._loop,), name=name, daemon=True)
        self._thread.start()
        # Also before the interpreter ends: a thread that wakes while it does may crash the process.
        self._stop = weakref.finalize(self, _stop, self._loop, self._thread, self._process)

    @property
    def stopped(self) -> bool:
        """Whether the thread was ended."""
        return not self._stop.alive

    @property
    def forked(self) -> bool:
        """Whether this process is a fork of the one that started the thread, and so has no such thread."""
        return os.getpid() != self._process

    def submit(
        self,
        work: Callable[Given, Coroutine[Any, Any, Result]],
        *args: Given.args,
        **more: Given.kwargs,
    ) -> Future[Result]:
        """Begin a coroutine.

        Raises:
            EngineError: the thread is of another process, or was stopped.
        """
        if self.forked:
            raise EngineError("gates don't survive fork(): open one in the child")
        coroutine = work(*args, **more)
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise _closed() from None

    def run(
        self,
        work: Callable[Given, Coroutine[Any, Any, Result]],
        *args: Given.args,
        **more: Given.kwargs,
    ) -> Result:
        """Run a coroutine and return its result; where the caller is interrupted, it is cancelled.

        Raises:
            EngineError: the thread is of another process, or was stopped.
        """
        future = self.submit(work, *args, **more)
        try:
            while True:
                with suppress(TimeoutError):
                    return future.result(_ALIVE)
                if future.done():
                    return future.result()
                if not self._thread.is_alive():
                    raise _closed()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the thread; again it does nothing."""
        self._stop()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread, process: int) -> None:
    if os.getpid() == process and thread.is_alive():
        loop.call_soon_threadsafe(loop.stop)
        # The garbage collector may come here in that very thread.
        if thread is not threading.current_thread():
            thread.join()


def _closed() -> EngineError:
    return EngineError("this gate is closed: open another")
