"""A whole index grouped anew, and again by runs that are killed (-9) three times: same result, time, memory.

Once documents that have a fingerprint alone, by signature; once texts, a tenth as many, that decide where
signatures leave pairs in doubt. Group sizes fall as they do in collections: a third of the documents are
copies, most groups have two, a few have hundreds.
"""

import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from bench.groups.apart import Moment, Place, Took, killed, outcome, regrouped
from bench.groups.families import fill_with_prints, fill_with_texts
from bench.groups.stored import count
from bench.storage import URL
from bench.table import Row
from shinglefold.contracts.engine import Engine
from shinglefold.grouping.regroup import RegroupOptions
from shinglefold.grouping.regroup.options import Linkage
from shinglefold.model.scheme import Verify

#: Environment: ``signature`` or ``text`` measures one of the two alone.
ONLY = "SHINGLEFOLD_BENCH_VERIFY"
_CALM, _KILLED = "bench-calm", "bench-killed"
_LINKAGES: tuple[Linkage, ...] = ("leader", "connected")
_FILLED: Mapping[Verify, Callable[[Engine, str, int], None]] = MappingProxyType(
    {"signature": fill_with_prints, "text": fill_with_texts}
)
#: Texts are dear to make and to store.
_FEWER = 10


def measure() -> list[Row]:
    """Return what regroupings took, after asserting that killed ones end as those that were not."""
    only = os.environ.get(ONLY)
    ways = [verify for verify in _FILLED if only in {None, verify}]
    with TemporaryDirectory() as folder:
        wheres = [str(Path(folder) / "index"), *filter(None, [os.environ.get(URL)])]
        return [row for where in wheres for verify in ways for row in _measured(where, verify, Path(folder))]


def _measured(where: str, verify: Verify, folder: Path) -> Iterator[Row]:
    number = count() if verify == "signature" else count() // _FEWER
    calm, others = Place(where, _CALM), Place(where, _KILLED)
    _fill(calm, others, verify, number)
    note = f"{number:,} documents that came without numbers, by {verify}; {_told(calm)}"
    for linkage in _LINKAGES:
        options = RegroupOptions(linkage, verify=verify, checkpoint=folder / "calm.json")
        took = regrouped(calm, options)
        yield from _rows(f"regroup, {linkage}", took, note)
        if not took.summary.counts.written:
            # Chains join nothing that leaders did not: there is no writing to be killed in.
            continue
        again = regrouped(calm, options)
        assert again.summary.counts.planned == 0
        options = RegroupOptions(linkage, verify=verify, checkpoint=folder / "killed.json")
        yield from _rows(f"regroup, {linkage}, nothing to change", again, note)
        for moment in _moments(number):
            killed(others, options, moment)
        last = regrouped(others, options)
        assert last.summary.settled
        assert last.summary.resumed
        assert outcome(others) == outcome(calm)
        yield from _rows(f"regroup, {linkage}, after three kills", last, note)
    for place in (calm, others):
        with closing(place.open()) as engine:
            engine.delete_index(place.index)


def _fill(calm: Place, others: Place, verify: Verify, number: int) -> None:
    for place in (calm, others):
        if place is others and not place.server:
            shutil.copytree(Path(calm.where) / calm.index, Path(others.where) / others.index)
            continue
        with closing(place.open()) as engine:
            if place.server and engine.index_exists(place.index):
                engine.delete_index(place.index)
            _FILLED[verify](engine, place.index, number)


def _moments(seed: int) -> Iterator[Moment]:
    """Yield three random moments: while it reads or decides, while it writes, and as that goes on."""
    chance = random.Random(seed)
    for steps in ((chance.choice(["reading", "grouping"]),), ("writing",), ("writing", "reading")):
        share = 0.0 if "grouping" in steps else chance.uniform(0.05, 0.6)
        yield Moment(steps, share, chance.uniform(0, 0.5))


def _told(place: Place) -> str:
    with closing(place.open()) as engine:
        info = engine.info()
    return f"{info['distribution']} {info['version']}"


def _rows(name: str, took: Took, note: str) -> Iterator[Row]:
    counts, steps = took.summary.counts, took.steps
    asked = ", ".join(f"{kind} {times:,}" for kind, times in sorted(took.requests.items()))
    groups = f"{counts.groups:,} groups, {counts.shared:,} with copies; {counts.written:,} written"
    doubt = f"; {counts.asked:,} pairs by their texts, {counts.unread:,} unread" if counts.asked else ""
    yield Row(name, took.seconds, "s", f"{note}; {groups}{doubt}")
    yield Row(f"{name}, CPU of the process", took.cpu, "s", note)
    if took.theirs:
        yield Row(f"{name}, CPU of the server", took.theirs, "s", note)
    yield Row(f"{name}, most memory", took.memory, "MB", f"{note}; whole process (VmHWM)")
    yield Row(f"{name}, requests", sum(took.requests.values()), "", f"{note}; {asked}")
    if "grouping" in steps and "reading" in steps:
        yield Row(f"{name}, first reading", steps["grouping"] - steps["reading"], "s", note)
    # A run that goes on with a plan writes before it reads.
    if "writing" in steps and "grouping" in steps and steps["writing"] > steps["grouping"]:
        until = steps["writing"] - steps["grouping"]
        yield Row(f"{name}, grouping, the plan and the first batch", until, "s", note)
