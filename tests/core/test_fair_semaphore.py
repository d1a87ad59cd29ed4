"""Threads get their turn in the order in which they came; one that gives up passes its turn on."""

import threading
from collections.abc import Callable
from time import monotonic, sleep

import pytest

from shinglefold.engines.http.engine import FairSemaphore


def until(condition: Callable[[], object]) -> None:
    end = monotonic() + 20
    while not condition():
        assert monotonic() < end
        sleep(0.001)


def queued(semaphore: FairSemaphore, count: int, served: list[int]) -> list[threading.Thread]:
    """Start threads that wait for the semaphore one behind the other."""

    def wait(number: int) -> None:
        assert semaphore.acquire(20)
        served.append(number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(count)]
    for number, thread in enumerate(threads, 1):
        thread.start()
        until(lambda number=number: len(semaphore._waiting) == number)
    return threads


def test_threads_are_served_in_the_order_in_which_they_came():
    semaphore, served = FairSemaphore(2), []
    assert semaphore.acquire(0)
    assert semaphore.acquire(0)
    threads = queued(semaphore, 5, served)
    for done in range(1, 6):
        semaphore.release()
        # A newcomer does not pass those that wait.
        assert not semaphore.acquire(0)
        until(lambda done=done: len(served) == done)
    assert served == [0, 1, 2, 3, 4]
    for thread in threads:
        thread.join()
    semaphore.release()
    assert semaphore.acquire(0)
    assert not semaphore.acquire(0.01)


def test_a_thread_that_is_interrupted_passes_its_turn_on(monkeypatch):
    semaphore = FairSemaphore(1)
    assert semaphore.acquire(0)

    class Interrupted:
        """A lock whose waiting thread gets its turn and is interrupted at the same moment."""

        def __init__(self) -> None:
            self.calls = 0

        def acquire(self, **_: float) -> bool:
            self.calls += 1
            if self.calls == 2:
                semaphore.release()
                raise KeyboardInterrupt
            return True

        def release(self) -> None:
            """Do nothing."""

    with monkeypatch.context() as patch:
        patch.setattr(threading, "Lock", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            semaphore.acquire(1)
    assert semaphore.acquire(0)
