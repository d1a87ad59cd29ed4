"""Checks of a running language: threads, processes, memory, speed."""

import gc
import random
import sys
import threading
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from shinglefold.testing.languages.process import Answers
from shinglefold.testing.languages.subject import Subject

_THREADS = 4
_WARM_UP, _NEW_WORDS = 2000, 4000
#: Bytes a new word may leave behind: an entry of a dict costs about 100.
_BYTES_LEFT = 48


def is_thread_safe(subject: Subject) -> None:
    """Check that threads sharing an instance get a single thread's answers, from the very first word on."""
    expected = {word: subject.language.canonical(word) for word in subject.asked}
    shared = subject.fresh()
    barrier = threading.Barrier(_THREADS)

    def ask(seed: int) -> Answers:
        words = random.Random(seed).sample(list(subject.asked), len(subject.asked))
        barrier.wait()
        return {word: shared.canonical(word) for word in words}

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            results = list(pool.map(ask, range(_THREADS)))
    finally:
        sys.setswitchinterval(interval)
    for found in results:
        _expect_same(expected, found, "in one of several threads")


def is_the_same_in_every_process(subject: Subject) -> None:
    """Check that answers and version do not depend on the process or its hash seed."""
    expected = {word: subject.language.canonical(word) for word in subject.asked}
    for process in subject.processes:
        _expect_same(expected, process.answers, "in a process with another hash seed")
        here = subject.cls.version()
        assert process.version == here, (
            f"version() is {here!r} here and {process.version!r} in another process"
        )


def is_fork_safe(subject: Subject) -> None:
    """Check that a forked process gets its parent's answers; nothing to check where there is no fork."""
    for process in subject.processes:
        for what, answers in process.forked.items():
            _expect_same(process.answers, answers, f"in a forked process, {what}")


def uses_no_network(subject: Subject) -> None:
    """Check that neither loading the language nor asking it opens a socket."""
    for process in subject.processes:
        assert not process.network, f"tried to use the network: {', '.join(process.network)}"


def has_bounded_memory(subject: Subject) -> None:
    """Check that new words leave nothing behind: canon caches, a plugin need not, and must not for good."""
    language = subject.fresh()
    for word in subject.new_words(_WARM_UP, seed=5):
        language.canonical(word)
    words = subject.new_words(_NEW_WORDS, seed=6)
    left = _bytes_left(words, language.canonical)
    assert left <= _BYTES_LEFT, (
        f"each new word leaves {left:.0f} bytes behind; drop the plugin's cache, canon has a bounded one"
    )


def is_fast_enough(subject: Subject) -> None:
    """Check that new words are taken at the floor's rate or faster."""
    rate = subject.words_per_second
    assert rate >= subject.floor, (
        f"{rate:,.0f} new words a second of CPU time, fewer than {subject.floor:,.0f}"
    )


def _bytes_left(words: Sequence[str], canonical: object) -> float:
    assert callable(canonical)
    gc.collect()
    tracemalloc.start()
    try:
        for word in words:
            canonical(word)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / len(words)
    finally:
        tracemalloc.stop()


def _expect_same(expected: Answers, found: Answers, where: str) -> None:
    wrong = [word for word in expected if found.get(word, "") != expected[word]]
    shown = "; ".join(f"{word!r}: {found.get(word, '')!r}, not {expected[word]!r}" for word in wrong[:5])
    assert not wrong, f"{len(wrong)} other answers {where}: {shown}"
