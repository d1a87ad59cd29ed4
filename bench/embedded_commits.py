"""What a commit of a few documents costs on the embedded engine beside many, and fingerprints of a window."""

from collections.abc import Iterator
from contextlib import closing
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from bench.groups.places import words
from bench.groups.stored import fill, prints
from bench.table import Row
from shinglefold.contracts.engine import JSON
from shinglefold.engines.embedded import EmbeddedEngine

SIZES = (1_000, 100_000)
_AT_ONCE, _ROUNDS, _WINDOW = 8, 60, 200
_INDEX = "commits"


def measure() -> list[Row]:
    """Return milliseconds of a commit of eight documents, and of reading the fingerprints of 200."""
    return [row for count in SIZES for row in _measure(count)]


def _measure(count: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder, closing(EmbeddedEngine(folder, words)) as engine:
        fill(engine, _INDEX, count)
        note = f"beside {count:,} documents with fingerprints"
        made = list(_documents(_AT_ONCE * _ROUNDS))
        times, spent = [], process_time()
        for begin in range(0, len(made), _AT_ONCE):
            start = perf_counter()
            assert not engine.bulk(made[begin : begin + _AT_ONCE]).failures
            engine.refresh(_INDEX)
            times.append((perf_counter() - start) * 1000)
        spent = (process_time() - spent) * 1000 / _ROUNDS
        yield Row(f"commit of {_AT_ONCE}", median(times), "ms", f"median by the clock; {note}")
        yield Row(f"commit of {_AT_ONCE}: processor", spent, "ms", f"merging included; {note}")
        yield Row(f"fingerprints of {_WINDOW}", _read(engine) * 1000, "ms", f"best of ten; {note}")


def _documents(count: int) -> Iterator[JSON]:
    for number, (_, made) in enumerate(prints(count, seed=3)):
        source = {"title": "heron", "dedup": made.to_field()}
        yield {"_index": _INDEX, "_id": f"new-{number}", "_source": source}


def _read(engine: EmbeddedEngine) -> float:
    fields = ["dedup.signature", "dedup.scheme", "dedup.shingles"]
    body = {"size": _WINDOW, "_source": False, "docvalue_fields": fields}
    times = []
    for _ in range(10):
        start = perf_counter()
        hits = engine.search(_INDEX, body)["hits"]["hits"]
        times.append(perf_counter() - start)
        assert len(hits) == _WINDOW
        assert all(len(hit["fields"]) == len(fields) for hit in hits)
    return min(times)
