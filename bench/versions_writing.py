"""What a document costs the process that writes into the embedded engine, stage by stage.

With enough workers the rate depends on its one thread in Python. The stages of that are run here one after
another, on blocks and answers of workers that are at hand. Counted is its own time on the processor, without
tantivy's threads beside it, and without the commit at the end, which waits for these. Another checkout, whose
Python is ``SHINGLEFOLD_BENCH_OTHER`` (``../before/.venv/bin/python``), takes turns with this one.
"""

import os
import statistics
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import corpora
from bench.table import Row
from bench.versions import OTHER
from bench.versions_embedded import CORPUS, inputs, told_by

#: Documents of each input, and turns of the checkouts.
_DOCUMENTS, _TURNS = 3_000, 3
_Stages = dict[str, float]


def measure() -> list[Row]:
    """Return microseconds a document; nothing where no corpus is."""
    if not corpora.available(CORPUS):
        return []
    pythons = {"this checkout": sys.executable}
    if os.environ.get(OTHER):
        pythons["the other"] = os.environ[OTHER]
    with TemporaryDirectory() as folder:
        return [row for name, path in inputs(Path(folder)).items() for row in _rows(name, path, pythons)]


def _rows(name: str, path: Path, pythons: Mapping[str, str]) -> Iterator[Row]:
    turns = [
        {version: _run(python, path) for version, python in sorted(pythons.items(), reverse=bool(turn % 2))}
        for turn in range(_TURNS)
    ]
    for version in pythons:
        stages = {
            stage: statistics.median(turn[version][stage] for turn in turns) for stage in turns[0][version]
        }
        note = ", ".join(f"{stage} {taken:.0f}" for stage, taken in stages.items())
        whole = statistics.median(sum(turn[version].values()) for turn in turns)
        yield Row(f"{name}, {version}", whole, "µs", f"{note}; medians of {_TURNS} turns")


def _run(python: str, path: Path) -> _Stages:
    stages: _Stages = told_by(python, "versions_stages.py", str(path), str(_DOCUMENTS))
    return stages
