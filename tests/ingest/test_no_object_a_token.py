"""Fingerprinting a batch creates no Python object per token: the number of calls does not grow."""

import gc
import sys
from collections.abc import Callable

import numpy as np
import pytest

from shinglefold.ingest import Fingerprinter

WORDS = [
    "кошка",
    "ловила",
    "мышь",
    "в",
    "тёмном",
    "подвале",
    "старого",
    "дома",
    "пока",
    "хозяин",
    "читал",
    "вечернюю",
    "газету",
    "у",
    "окна",
]


def pages(words: int, seed: int = 0) -> list[str]:
    """20 pages: few enough characters for one block, whatever their length."""
    chance = np.random.default_rng(seed)
    return [" ".join(chance.choice(WORDS, words)) for _ in range(20)]


def calls(work: Callable[[], object]) -> int:
    """How many calls, of Python functions and of C ones, the work makes."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def blocks(work: Callable[[], object]) -> int:
    """How many blocks of memory of Python's own the answer of the work holds."""
    gc.collect()
    before = sys.getallocatedblocks()
    kept = work()
    after = sys.getallocatedblocks()
    del kept
    return after - before


def test_ten_times_the_tokens_are_the_same_calls(scheme, canonicalizer):
    fingerprinter = Fingerprinter(scheme, canonicalizer)
    fingerprinter.fingerprint(pages(1))
    short, long = pages(30, seed=1), pages(300, seed=2)
    fingerprinter.fingerprint(long)
    more_tokens = 20 * (300 - 30)
    more_calls = calls(lambda: fingerprinter.fingerprint(long)) - calls(
        lambda: fingerprinter.fingerprint(short)
    )
    assert more_calls < more_tokens / 50


@pytest.mark.long
def test_hashes_are_kept_as_arrays_and_not_as_objects(canonicalizer):
    texts = pages(300, seed=3)
    canonicalizer.hash_batch(texts)
    assert blocks(lambda: canonicalizer.hash_batch(texts)) < 200
