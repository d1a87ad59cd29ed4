"""The stage on a real server, beside the server's own means: indexing, disk, pages of results.

``SHINGLEFOLD_TEST_URL`` names the server; let its JVM compile fully, as servers do:
``SHINGLEFOLD_TEST_JVM="-Xms1g -Xmx1g" make engine-up`` (without it the server is quick to start instead).
Where others use the machine too, only figures of one run compare.
"""

import gc
import json
import os
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bench import corpora
from bench.server_callers import callers
from bench.server_indices import PLAIN, RAW, Site
from bench.server_pages import latency
from bench.table import URL, Row
from shinglefold.engines import open_engine

_ROUNDS = 3
_ROUNDS_NOTE = f"best of {_ROUNDS} rounds after one to warm up; client, workers and server share two cores"
_OVERLAPPING = "texts, plain bulk, two requests at a time"
#: What no client can be faster than: the fingerprints were there before.
_SIGNED = "texts with fingerprints of before, plain bulk, two requests at a time"
_STAGED, _COMPILED = "texts, with the stage", "texts, with the stage, compiled code loaded"
_ONE_PROCESS = "texts, with the stage, compiled code loaded, no workers"
#: Seconds after which a node looks again at how much processor time it has taken; before, it repeats itself.
_STALE = 1.1


class Taken(NamedTuple):
    """What a run took for a document: by the clock, and of processors by the client and by the server."""

    clock: float
    client: float
    server: float


def throughput(site: Site) -> list[Row]:
    """Return documents a second with the stage and without, round by round; markup and texts apart."""
    ways = _ways(site)
    assert site.stripped
    assert site.signed
    # The corpora in memory are not the stage's: they need not be looked through for garbage.
    gc.collect()
    gc.freeze()
    # The first round warms the server and the lexicon.
    rounds = [{name: _take(work, len(site.raw)) for name, work in ways.items()} for _ in range(_ROUNDS + 1)]
    taken = {name: [one[name] for one in rounds[1:]] for name in ways}
    return [*_rates(taken), *_shares(taken), *_costs(taken)]


def _ways(site: Site) -> dict[str, Callable[[], None]]:
    ways: dict[str, Callable[[], None]] = {
        "pages, plain bulk": lambda: site.bulk(RAW, site.raw),
        "pages, with the stage": lambda: site.stage(site.raw, site.of_pages),
        "texts, plain bulk": lambda: site.bulk(PLAIN, site.stripped),
        _OVERLAPPING: lambda: site.bulk_overlapping(PLAIN, site.stripped),
        _SIGNED: lambda: site.bulk_overlapping(RAW, site.signed, site.with_fingerprints),
        _STAGED: lambda: site.stage(site.stripped),
    }
    if (compiled := site.compiled) is not None:
        ways[_COMPILED] = lambda: site.stage(site.stripped, compiled)
        ways[_ONE_PROCESS] = lambda: site.stage(site.stripped, compiled, workers=1)
    return ways


def _take(work: Callable[[], None], documents: int) -> Taken:
    server, before, start = _server_seconds(), os.times(), time.perf_counter()
    work()
    clock = time.perf_counter() - start
    after = os.times()
    # The first four are of processors: its own, and those of the workers that have ended.
    client = sum(after[:4]) - sum(before[:4])
    return Taken(*(seconds / documents for seconds in (clock, client, _server_seconds() - server)))


def _server_seconds() -> float:
    """Return the processor time of all nodes so far."""
    time.sleep(_STALE)
    with urllib.request.urlopen(f"{os.environ[URL]}/_nodes/stats/process", timeout=60) as answer:
        nodes = json.load(answer)["nodes"].values()
    return sum(node["process"]["cpu"]["total_in_millis"] for node in nodes) / 1e3


def _rates(taken: Mapping[str, list[Taken]]) -> Iterator[Row]:
    for name, rounds in taken.items():
        yield Row(name, 1 / min(one.clock for one in rounds), "documents / s", _ROUNDS_NOTE)


def _shares(taken: Mapping[str, list[Taken]]) -> Iterator[Row]:
    for kind, what in (("pages", "markup out and fingerprint"), ("texts", "fingerprint alone")):
        yield _ratio(taken, f"{kind}, with the stage", f"{kind}, plain bulk", f"{what}; target: at least .8")
    for name in (_SIGNED, _STAGED, _COMPILED, _ONE_PROCESS):
        if name in taken:
            yield _ratio(taken, name, _OVERLAPPING, "target of the stage: at least .85")


def _ratio(taken: Mapping[str, list[Taken]], one: str, other: str, note: str) -> Row:
    rounds = [theirs.clock / ours.clock for ours, theirs in zip(taken[one], taken[other], strict=True)]
    told = ", ".join(f"{share:.2f}" for share in rounds)
    best = min(each.clock for each in taken[other]) / min(each.clock for each in taken[one])
    name = f"{one} ÷ {other.removeprefix('texts, ').removeprefix('pages, ')}"
    return Row(name, float(np.median(rounds)), "share", f"{note}; rounds {told}; best ÷ best {best:.2f}")


def _costs(taken: Mapping[str, list[Taken]]) -> Iterator[Row]:
    for name, rounds in taken.items():
        for side in ("client", "server"):
            least = min(getattr(one, side) for one in rounds) * 1e6
            yield Row(f"{name}, CPU of the {side}", least, "µs / document", "least of the rounds")


CORPORA = ("libreoffice-ru", "libreoffice-zh-cn")


def measure() -> list[Row]:
    """Return the figures for each corpus; nothing where there is none, or no server is named."""
    if not os.environ.get(URL):
        return []
    return [row for corpus in filter(corpora.available, CORPORA) for row in _measure(corpus)]


def _measure(corpus: str) -> Iterator[Row]:
    with closing(open_engine(os.environ[URL])) as engine:
        info = engine.info()
        site = Site(engine, corpus)
        try:
            rows = [*throughput(site), *site.growth(), *latency(site), *callers(site)]
        finally:
            site.delete()
    server = f"{info['distribution']} {info['version']}"
    for row in rows:
        yield replace(row, name=f"{corpus}: {row.name}", note=f"{row.note}; {server}" if row.note else server)
