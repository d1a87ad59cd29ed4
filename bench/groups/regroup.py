"""Grouping a whole index anew: the time of each step, and the memory."""

import resource
from collections.abc import Iterator
from itertools import islice
from time import perf_counter

from bench.groups.places import engines
from bench.groups.stored import SCHEME, count, fill, prints
from bench.table import Row
from shinglefold.contracts import Engine
from shinglefold.groups.regroup import RegroupCounts, RegroupOptions, regroup
from shinglefold.groups.regroup.census import Taking
from shinglefold.groups.regroup.linkage import leaders
from shinglefold.groups.regroup.options import Linkage
from shinglefold.groups.regroup.plan import plan

INDEX = "bench-regrouped"
_LINKAGES: tuple[Linkage, ...] = ("leader", "connected")


def measure() -> list[Row]:
    """Return seconds of each step and the memory, after asserting what the groups are."""
    rows = list(_in_memory(count()))
    with engines() as places:
        return [*rows, *(row for name, engine in places for row in _indexed(name, engine))]


def _in_memory(number: int) -> Iterator[Row]:
    """Group fingerprints that are read from nowhere: what the steps besides reading and writing take."""
    before = _memory()
    taken = Taking(SCHEME, "dedup")
    start = perf_counter()
    made = prints(number)
    while page := list(islice(made, 1000)):
        taken.take([_hit(one.digest, one.to_field() | {"group": group}) for group, one in page])
    note = f"{number:,} documents, a fifth of them copies; without an engine"
    yield Row("regroup, made and taken", perf_counter() - start, "s", note)
    census = taken.census()
    for linkage in _LINKAGES:
        start = perf_counter()
        found = leaders(census, SCHEME, RegroupOptions(linkage))
        yield Row(f"regroup, pairs and groups by {linkage}", perf_counter() - start, "s", note)
        start = perf_counter()
        counts = RegroupCounts()
        list(plan(census, found, SCHEME, set(), counts))
        yield Row(f"regroup, numbers by {linkage}", perf_counter() - start, "s", note)
        # Each made-up copy has the number of its original, which it resembles by more than is asked for.
        assert counts.moved == 0
    yield Row("regroup, most memory beyond what was there", _memory() - before, "MB", note)


def _hit(id_: str, stored: dict[str, object]) -> dict[str, object]:
    return {"_index": INDEX, "_id": id_, "_seq_no": 1, "_primary_term": 1, "_source": {"dedup": stored}}


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _indexed(name: str, engine: Engine) -> Iterator[Row]:
    fill(engine, INDEX, count())
    seen: dict[str, float] = {}

    def note(what: str, _documents: int, _share: float) -> None:
        seen.setdefault(what, perf_counter())

    start = perf_counter()
    summary = regroup(engine, INDEX, report=note)
    assert summary.settled
    assert summary.counts.moved == 0
    told = f"{count():,} documents, each of which gets a note whether it leads; {name}"
    yield Row("regroup, whole", perf_counter() - start, "s", told)
    yield Row("regroup, reading", seen["grouping"] - start, "s", told)
    start = perf_counter()
    assert regroup(engine, INDEX).counts.planned == 0
    yield Row("regroup, nothing to change", perf_counter() - start, "s", told)
    engine.delete_index(INDEX)
