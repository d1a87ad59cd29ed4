"""``shinglefold groups`` as it is typed, on signed Parquet of 10⁴ to 10⁷ documents: time, memory, growth."""

import os
import tempfile
from dataclasses import dataclass
from math import log10
from pathlib import Path

import numpy as np

from bench.clock import COMMAND, Ran, ran
from bench.speed.planted import Planted, write_signed
from bench.table import Row
from shinglefold.model.values import Int64s
from shinglefold.registry import make_scheme

#: Asked of the largest size: seconds of the clock, MB, and how much faster than the documents time may grow.
SECONDS, KEYWORD_SECONDS, MEGABYTES, SLOPE = 120, 60, 4096, 1.05
#: The share of planted documents that must be found in the group of the first of their text.
_FOUND = 0.998


def sizes() -> list[int]:
    """Return the numbers of documents; ``SHINGLEFOLD_BENCH_LARGEST=1e6`` ends earlier."""
    largest = float(os.environ.get("SHINGLEFOLD_BENCH_LARGEST", "1e7"))
    return [10**power for power in range(4, round(log10(largest)) + 1)]


@dataclass(frozen=True, slots=True)
class _Size:
    """What one number of documents took: by signature, and by keywords alone."""

    documents: int
    whole: Ran
    keywords: Ran


def measure() -> list[Row]:
    """Return seconds and memory for each number of documents, and the slope of both on logarithmic axes."""
    found = [_measure(count) for count in sizes()]
    rows = [row for size in found for row in _rows(size)]
    points = [(size.documents, size.whole.cpu) for size in found]
    rows.append(Row("slope of whole, CPU", _slope(points), "log-log", f"asked ≤ {SLOPE}; start included"))
    rows.append(Row("slope of whole, CPU, the last step", _slope(points[-2:]), "log-log", "a tenth to all"))
    return rows


def _measure(count: int) -> _Size:
    scheme = make_scheme()
    planted = Planted.of(scheme, count)
    with tempfile.TemporaryDirectory(prefix="shinglefold-bench-") as name:
        folder = Path(name)
        source, printed = folder / "signed.parquet", folder / "groups"
        write_signed(planted, source)
        # The same limit at any size: few documents have none by default.
        base = [COMMAND, "groups", str(source), "--linkage", "connected", "--most-shared", "1000"]
        whole = ran(base, printed)
        _assert_found(planted, printed)
        keywords = ran([*base, "--verify", "keywords"], printed)
        _assert_joined(planted, printed)
    return _Size(count, whole, keywords)


def _rows(size: _Size) -> list[Row]:
    note = f"{size.documents:,} planted documents"
    told = {
        "groups, from signed Parquet": (size.whole, SECONDS),
        "groups by keywords alone, from signed Parquet": (size.keywords, KEYWORD_SECONDS),
    }
    rows = []
    for what, (run, asked) in told.items():
        wanted = f"; asked {asked} for 10⁷" if size.documents == 10**7 else ""
        rows.append(Row(f"{what}: clock", run.seconds, "s", note + wanted))
        rows.append(Row(f"{what}: CPU, all processes", run.cpu, "s", note))
        rows.append(Row(f"{what}: most memory of its own", run.anonymous, "MB", f"{note}; asked {MEGABYTES}"))
        rows.append(Row(f"{what}: most mapped pages of files", run.mapped, "MB", note))
        rows.append(Row(f"{what}: most of both at once", run.together, "MB", note))
    return rows


def _labels(planted: Planted, printed: Path) -> Int64s:
    labels = np.arange(len(planted))
    with printed.open() as lines:
        for line in lines:
            members = [int(name[1:]) for name in line.split()]
            labels[members] = members[0]
    return labels


def _assert_found(planted: Planted, printed: Path) -> None:
    """The documents of a text are in one group, and no group has documents of two texts."""
    labels, groups = _labels(planted, printed), planted.groups
    first = np.full(len(planted.sizes), len(planted))
    np.minimum.at(first, groups, np.arange(len(planted)))
    shared = planted.sizes[groups] > 1
    share = (labels[shared] == labels[first[groups[shared]]]).mean()
    assert share >= _FOUND, share
    # As many groups as pairs of a group and a text: none has two.
    assert len(np.unique(labels * np.int64(len(planted)) + groups)) == len(np.unique(labels))


def _assert_joined(planted: Planted, printed: Path) -> None:
    """Where keywords decide, all that share boilerplate are in one group."""
    labels = _labels(planted, printed)
    for number in np.unique(planted.boilerplate[planted.boilerplate >= 0]).tolist():
        assert len(np.unique(labels[planted.boilerplate == number])) == 1


def _slope(points: list[tuple[int, float]]) -> float:
    logs = np.log10(np.array(points))
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
