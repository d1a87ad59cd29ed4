"""Folded pages of this checkout beside those of another one, on one server, taking turns in one run.

``SHINGLEFOLD_TEST_URL`` names the server and ``SHINGLEFOLD_BENCH_OTHER`` the Python of the other checkout
(``../before/.venv/bin/python``). Each has a process; both search the index that the other one filled, and
their answers must agree.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench import corpora
from bench.clock import awake
from bench.search import title_searches
from bench.storage import URL
from bench.table import Row

OTHER = "SHINGLEFOLD_BENCH_OTHER"
CORPUS = "libreoffice-ru"
_INDEX = "shinglefold-bench-versions"
_WAYS = ("folded page", "folded page with members", "fold 200 hits")
_AT_ONCE, _ROUNDS, _WARM = 25, 3, 100
#: By way and checkout, the milliseconds of each search: as the clock goes, and of the client's processor.
_Times = dict[str, dict[str, list[list[float]]]]


@dataclass(slots=True)
class _Checkout:
    """A process that answers a line of searches with the times of each and what it showed."""

    process: "subprocess.Popen[str]"

    @classmethod
    def started(cls, python: str) -> "_Checkout":
        command = [python, str(Path(__file__).with_name("versions_pages.py")), os.environ[URL], _INDEX]
        # Not in this folder: the other checkout's modules must be found, and never these.
        process = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(python).parent
        )
        return cls(process)

    def ask(self, message: object) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


def measure() -> list[Row]:
    """Return p50 of each way and the ratio of both; nothing where no server, corpus or other checkout is."""
    if not (os.environ.get(URL) and os.environ.get(OTHER) and corpora.available(CORPUS)):
        return []
    bodies = title_searches(CORPUS)
    with _both() as checkouts:
        for checkout in checkouts.values():
            checkout.ask({"search": bodies[:_WARM]})
        with awake():
            return [row for number in range(_ROUNDS) for row in _round(checkouts, bodies, number)]


@contextmanager
def _both() -> Iterator[dict[str, _Checkout]]:
    """Start a process of either checkout, and let the other one fill the index; delete it in the end."""
    here, other = _Checkout.started(sys.executable), _Checkout.started(os.environ[OTHER])
    try:
        other.ask({"index": [{"_id": page["id"], **page} for page in corpora.pages(CORPUS)]})
        yield {"here": here, "other": other}
    finally:
        other.ask({"delete": True})
        for checkout in (here, other):
            checkout.process.terminate()
            checkout.process.wait()


def _round(checkouts: dict[str, _Checkout], bodies: Sequence[object], number: int) -> list[Row]:
    times: _Times = {way: {name: [] for name in checkouts} for way in _WAYS}
    for at in range(0, len(bodies), _AT_ONCE):
        turn = list(checkouts.items())
        shown = []
        for name, checkout in turn if at // _AT_ONCE % 2 else reversed(turn):
            answer = checkout.ask({"search": bodies[at : at + _AT_ONCE]})
            shown.append(answer["shown"])
            for way in _WAYS:
                times[way][name] += answer[way]
        assert shown[0] == shown[1], at
    return [row for way in _WAYS for row in _rows(way, times[way], number)]


def _rows(way: str, taken: dict[str, list[list[float]]], number: int) -> list[Row]:
    here, other = (np.median(np.array(taken[name]), axis=0) for name in ("here", "other"))
    note = f"round {number + 1}; {len(taken['here'])} searches each, the same pages"
    return [
        Row(f"{way}, p50, this checkout", float(here[0]), "ms", note),
        Row(f"{way}, p50, the other", float(other[0]), "ms", note),
        Row(f"{way}, this ÷ the other", float(here[0] / other[0]), "times", note),
        Row(f"{way}, CPU of the client, this checkout", float(here[1]), "ms", note),
        Row(f"{way}, CPU of the client, this ÷ the other", float(here[1] / other[1]), "times", note),
    ]
