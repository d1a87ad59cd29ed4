"""Columns of documents: what was added comes back, and memory does not grow with the length of texts."""

import tracemalloc

import numpy as np

from shinglefold.ingest.columns import Columns
from shinglefold.ingest.fingerprint import Beside
from shinglefold.model import Fingerprint


def beside(number: int, words: int, signed: bool = True) -> Beside:
    said = np.arange(number, number + words, dtype=np.uint32)
    signature = bytes([number % 256] * 84) if signed else b""
    made = Fingerprint("sf", "ru", words, f"digest-{number:05}", (), signature)
    keys = np.full(42, number, np.uint64).tobytes()
    return Beside(made, keys, said.tobytes(), said[::-1].tobytes())


def test_what_was_added_comes_back_in_order():
    columns = Columns()
    sizes = [3, 0, 7, 1]
    for number, words in enumerate(sizes):
        columns.add(beside(number, words, signed=bool(words)))
    assert len(columns) == 4
    assert columns.valid.tolist() == [True, False, True, True]
    assert columns.shingles.tolist() == sizes
    assert columns.supershingles[:, 5].tolist() == [0, 1, 2, 3]
    assert columns.signatures(84)[:, 0].tolist() == [0, 0, 2, 3]
    assert columns.digests[3] == "digest-00003"
    texts = columns.texts()
    assert texts.written.numbers.tolist() == [0, 1, 2, *range(2, 9), 3]
    assert texts.written.offsets.tolist() == [0, 3, 3, 10, 11]
    assert texts.canonical.numbers.tolist() == [2, 1, 0, *range(8, 1, -1), 3]


def test_more_can_be_added_after_a_look():
    columns = Columns()
    columns.add(beside(1, 4))
    assert len(columns.texts().written.numbers) == 4
    assert columns.shingles.tolist() == [4]
    columns.add(beside(2, 4))
    assert len(columns.texts().written.numbers) == 8


def test_of_nothing_there_is_nothing():
    columns = Columns()
    columns.add(Beside(Fingerprint("sf", "ru", 0), bytes(8)))
    assert columns.texts().written.offsets.tolist() == [0, 0]
    assert columns.signatures(84).tolist() == [[0] * 84]


def test_a_document_takes_as_much_memory_however_long_it_is():
    tracemalloc.start()
    columns = Columns()
    for number in range(2_000):
        columns.add(beside(number, 2_000))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Half a megabyte or two are buffers.
    assert (held - (1 << 21)) / 2_000 < 800
