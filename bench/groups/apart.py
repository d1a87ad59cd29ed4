"""A regrouping in a process of its own: what it took, or killed (-9) in the middle of it."""

import json
import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import wraps
from hashlib import blake2b
from multiprocessing.connection import Connection
from time import perf_counter, process_time, sleep
from typing import Any
from urllib.request import urlopen

from bench.clock import peak_memory
from bench.groups.places import words
from shinglefold.contracts.engine import Engine
from shinglefold.engines import open_engine
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.grouping.regroup import RegroupOptions, RegroupSummary, regroup
from shinglefold.maintenance.scan import Scan

#: What is asked of an engine that can be told as a request.
_ASKED = ("search", "msearch", "bulk", "refresh", "open_pit", "get")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an index is: the folder of the embedded engine, or the address of a server."""

    where: str
    index: str

    @property
    def server(self) -> bool:
        """Whether it is on a server."""
        return self.where.startswith("http")

    def open(self) -> Engine:
        """Open the engine."""
        return open_engine(self.where) if self.server else EmbeddedEngine(self.where, words)


@dataclass(frozen=True, slots=True)
class Took:
    """What a regrouping took: seconds by the clock and of processors, MB at most, requests by kind.

    ``steps``: seconds until each step was first told. ``theirs``: seconds of the server's processor.
    """

    seconds: float
    cpu: float
    theirs: float
    memory: float
    requests: dict[str, int]
    steps: dict[str, float]
    summary: RegroupSummary


@dataclass(frozen=True, slots=True)
class Moment:
    """When a run is to be killed: seconds after one of some steps told that so much of it is done."""

    steps: tuple[str, ...]
    share: float
    later: float


def regrouped(place: Place, options: RegroupOptions) -> Took:
    """Group an index anew in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(place, options, None, theirs))
    process.start()
    theirs.close()
    took: Took = ours.recv()
    process.join()
    assert process.exitcode == 0
    return took


def killed(place: Place, options: RegroupOptions, moment: Moment) -> None:
    """Begin to group an index anew in a process that is killed (-9) at a moment of its work."""
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_work, args=(place, options, moment, None))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, process.exitcode


def outcome(place: Place) -> str:
    """Return a digest of the numbers and roles of all documents of an index."""
    with closing(place.open()) as engine:
        engine.refresh(place.index)
        told = sorted(_numbers(engine, place.index))
    return blake2b(json.dumps(told).encode(), digest_size=16).hexdigest()


def _numbers(engine: Engine, index: str) -> Iterator[tuple[str, int, bool]]:
    scan = Scan(engine, index, fields=["dedup.group", "dedup.leader"])
    place = scan.start()
    for page in scan.pages(place):
        for hit in page.hits:
            parts = hit["_source"]["dedup"]
            yield hit["_id"], parts["group"], parts["leader"]
        place = page.place
    scan.close(place)


def _work(place: Place, options: RegroupOptions, moment: Moment | None, told: Connection | None) -> None:
    steps: dict[str, float] = {}
    start = perf_counter()
    over = threading.Event()

    def report(what: str, _documents: int, share: float) -> None:
        steps.setdefault(what, perf_counter() - start)
        if over.is_set():
            # The work may be faster than the clock: no step is told after the moment.
            os.kill(os.getpid(), signal.SIGKILL)
        if moment is not None and what in moment.steps and share >= moment.share:
            over.set()
            threading.Thread(target=_end, args=(moment.later,), daemon=True).start()

    with closing(place.open()) as engine:
        requests = _counted(engine)
        theirs, own, start = _processor(place), process_time(), perf_counter()
        summary = regroup(engine, place.index, options, report=report)
        seconds, own = perf_counter() - start, process_time() - own
        theirs = _processor(place) - theirs
    if told is not None:
        told.send(Took(seconds, own, theirs, peak_memory(), dict(requests), steps, summary))


def _end(later: float) -> None:
    sleep(later)
    os.kill(os.getpid(), signal.SIGKILL)


def _counted(engine: Engine) -> Counter[str]:
    """Count from now on what is asked of an engine."""
    requests: Counter[str] = Counter()

    def counting(name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(ask)
        def counted(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the engine takes and gives
            requests[name] += 1
            return ask(*given, **named)

        return counted

    for name in _ASKED:
        setattr(engine, name, counting(name, getattr(engine, name)))
    return requests


def _processor(place: Place) -> float:
    """Return the seconds of processor time that a server has used, 0 for none."""
    if not place.server:
        return 0.0
    with urlopen(f"{place.where}/_nodes/stats/process") as answer:
        nodes = json.load(answer)["nodes"].values()
    return float(sum(node["process"]["cpu"]["total_in_millis"] for node in nodes)) / 1000
