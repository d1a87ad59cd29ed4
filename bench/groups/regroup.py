"""Grouping a whole index anew: the time of each step, and the memory."""

import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from time import perf_counter, process_time

from bench.clock import peak_memory
from bench.groups.stored import SCHEME, count, engines, fill, kept, prints
from bench.table import Row
from shinglefold.grouping.regroup import RegroupCounts, RegroupOptions, regroup
from shinglefold.grouping.regroup.census import CensusReader
from shinglefold.grouping.regroup.clustering import leaders
from shinglefold.grouping.regroup.plan import plan
from shinglefold.model.linkage import Linkage

INDEX = "bench-regrouped"
_LINKAGES: tuple[Linkage, ...] = ("leader", "connected")


def measure() -> list[Row]:
    """Return seconds of each step and the memory, after asserting what the groups are."""
    rows = _apart(_in_memory)
    with kept():
        with engines() as places:
            for _, engine in places:
                fill(engine, INDEX, count())
            names = [name for name, _ in places]
        # Each in a process of its own, whose memory is that of the regrouping.
        return [*rows, *(row for name in names for row in _apart(_indexed, name))]


def _apart(work: Callable[..., list[Row]], *arguments: object) -> list[Row]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def _in_memory() -> list[Row]:
    """Group fingerprints that are read from nowhere: what the steps besides reading and writing take."""
    number, before = count(), peak_memory()
    note = f"{number:,} documents, a fifth of them copies; without an engine"
    reader = CensusReader(SCHEME, "_dedup")
    start = perf_counter()
    made = prints(number)
    while page := list(islice(made, 1000)):
        reader.add([_hit(one.digest, one.to_field() | {"group": group}) for group, one in page])
    rows = [Row("regroup, made and taken", perf_counter() - start, "s", note)]
    census = reader.census()
    for linkage in _LINKAGES:
        start = perf_counter()
        found = leaders(census, SCHEME, RegroupOptions(linkage))
        rows.append(Row(f"regroup, pairs and groups by {linkage}", perf_counter() - start, "s", note))
        start = perf_counter()
        counts = RegroupCounts()
        list(plan(census, found, SCHEME, set(), counts))
        rows.append(Row(f"regroup, numbers by {linkage}", perf_counter() - start, "s", note))
        # Each made-up copy has the number of its original, which it resembles by more than is asked for.
        assert counts.moved == 0
    return [*rows, Row("regroup, most memory beyond what was there", peak_memory() - before, "MB", note)]


def _hit(id_: str, stored: Mapping[str, object]) -> dict[str, object]:
    return {"_index": INDEX, "_id": id_, "_seq_no": 1, "_primary_term": 1, "_source": {"_dedup": stored}}


def _indexed(name: str) -> list[Row]:
    """Group an index whose documents have numbers, but no note whether they lead."""
    told = f"{count():,} documents, of which four fifths get a note that they lead; {name}"
    seen: dict[str, float] = {}

    def note(what: str, _documents: int, _share: float) -> None:
        seen.setdefault(what, perf_counter())

    with engines() as places:
        engine = dict(places)[name]
        before, start, own = peak_memory(), perf_counter(), process_time()
        summary = regroup(engine, INDEX, report=note)
        seconds, spent = perf_counter() - start, process_time() - own
        assert summary.settled
        assert summary.counts.moved == 0
        assert summary.counts.written == summary.counts.planned
        start_again = perf_counter()
        assert regroup(engine, INDEX).counts.planned == 0
        again = perf_counter() - start_again
        engine.delete_index(INDEX)
    return [
        Row("regroup, whole", seconds, "s", f"read twice, written once; {told}"),
        Row("regroup, first reading", seen["grouping"] - start, "s", told),
        Row("regroup, grouping, the plan and the first batch", seen["writing"] - seen["grouping"], "s", told),
        Row("regroup, CPU of the process", spent, "s", told),
        Row("regroup, most memory beyond what was there", peak_memory() - before, "MB", told),
        Row("regroup, nothing to change", again, "s", told),
    ]
