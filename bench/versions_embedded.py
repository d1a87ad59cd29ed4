"""Indexing into the embedded engine by this checkout and by another one, taking turns in one run.

``SHINGLEFOLD_BENCH_OTHER`` is the Python of the other checkout (``../before/.venv/bin/python``). Each run is
a process that starts cold and takes two workers; it tells the clock and the processor time of indexing alone,
and how many documents some searches find.
"""

import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bench import corpora
from bench.table import Row
from bench.versions import OTHER

CORPUS = "libreoffice-ru"
_ROUNDS = 3
_WORKERS = 2
_DRAWN = 30_000


class _Run(NamedTuple):
    """What one run took, in seconds, and what its searches found: one number a search."""

    clock: float
    processor: float
    found: tuple[int, ...]


def measure() -> list[Row]:
    """Return seconds of both checkouts and their ratios; nothing where no corpus or other checkout is."""
    if not (os.environ.get(OTHER) and corpora.available(CORPUS)):
        return []
    pythons = {"here": sys.executable, "other": os.environ[OTHER]}
    with TemporaryDirectory() as folder:
        return [
            row
            for name, path in inputs(Path(folder)).items()
            for row in _rows(name, [_turn(pythons, path, number) for number in range(_ROUNDS)])
        ]


def inputs(folder: Path) -> Mapping[str, Path]:
    """Write the inputs into a folder where they are not at hand, and return them by name."""
    pages = corpora.folder() / f"{CORPUS}.jsonl.gz"
    drawn = folder / "drawn.jsonl"
    with drawn.open("w", encoding="utf-8") as lines:
        lines.writelines(f"{json.dumps(one, ensure_ascii=False)}\n" for one in _drawn())
    found = {f"{CORPUS}, HTML": pages, f"{_DRAWN:,} texts of 500 words drawn from its texts": drawn}
    if corpora.available("gnome-uk"):
        found["gnome-uk"] = corpora.folder() / "gnome-uk.jsonl.gz"
    return found


def _drawn() -> Iterator[dict[str, str]]:
    words = [word for text in corpora.texts(CORPUS) for word in text.split()]
    chance = random.Random(84)
    for number in range(_DRAWN):
        body = " ".join(chance.choices(words, k=500))
        yield {"id": str(number), "title": " ".join(chance.choices(words, k=6)), "body": body}


def _turn(pythons: Mapping[str, str], path: Path, number: int) -> dict[str, _Run]:
    turn = list(pythons.items())
    return {name: _run(python, path) for name, python in (turn if number % 2 else reversed(turn))}


def _run(python: str, path: Path) -> _Run:
    told = told_by(python, "versions_index.py", str(path), str(_WORKERS))
    return _Run(told["clock"], told["processor"], tuple(told["found"]))


def told_by(python: str, script: str, *arguments: str) -> Any:  # noqa: ANN401 - JSON
    """Return what a script beside this one prints, run by the Python of a checkout."""
    # Not in this folder: the other checkout's modules must be found, and never these.
    done = subprocess.run(
        [python, str(Path(__file__).with_name(script)), *arguments],
        text=True,
        capture_output=True,
        check=False,
        cwd=Path(python).parent,
    )
    if done.returncode:
        raise RuntimeError(f"{python} could not run {script} {' '.join(arguments)}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def _rows(name: str, turns: list[dict[str, _Run]]) -> Iterator[Row]:
    for version in ("here", "other"):
        assert len({turn[version].found for turn in turns}) == 1, f"{version} finds now this, now that"
    here, other = (turns[0][version].found for version in ("here", "other"))
    note = f"{name}; median of {len(turns)} rounds; searches find {sum(here):,} here, {sum(other):,} there"
    for what in ("clock", "processor"):
        taken = {version: [getattr(turn[version], what) for turn in turns] for version in ("here", "other")}
        label = "by the clock" if what == "clock" else "of processor time"
        yield Row(f"{label}, this checkout", statistics.median(taken["here"]), "s", note)
        yield Row(f"{label}, the other", statistics.median(taken["other"]), "s", note)
        ratios = [there / own for there, own in zip(taken["other"], taken["here"], strict=True)]
        yield Row(f"{label}, the other ÷ this", statistics.median(ratios), "times", note)
