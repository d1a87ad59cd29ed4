"""Pages of 10 on a server: plain, collapsed by the server's own means, and folded over a window of 200."""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from bench.clock import awake, processor_time
from bench.corpora import title_searches
from bench.server_indices import STAGED, Site
from bench.table import Row, percentiles
from shinglefold.contracts.engine import JSON
from shinglefold.rerank import FoldedSearch, FoldOptions

_PAGE, _WINDOW, _MEMBERS = 10, 200, 5
#: A window to begin with that is mostly enough for a page; where it is not, more is read.
_SMALL = 50
_WARM = 100
_GROWING = f"folded page with members, windows of {_SMALL}"
_COMPILED = "folded page with members, compiled"
_Ways = dict[str, Callable[[JSON], JSON]]
_COLLAPSE = {"collapse": {"field": "group"}}
_MEMBER_HITS = {"name": "duplicates", "size": _MEMBERS + 1}
_COLLAPSE_MEMBERS = {"collapse": {"field": "group", "inner_hits": _MEMBER_HITS}}
#: Read a window, show one hit a group: the nearest that OpenSearch's own processors come to.
_PIPELINE = {
    "request_processors": [{"oversample": {"sample_factor": _WINDOW / _PAGE}}],
    "response_processors": [{"collapse": {"field": "group"}}, {"truncate_hits": {}}],
}


def latency(site: Site) -> list[Row]:
    """Return p50, p95 and p99 of each way to get a page, one search after the other by all ways in turn.

    Told of cores that are kept awake; the ratios of cores that may fall asleep between requests as well.
    """
    ways = _ways(site)
    bodies = title_searches(site.corpus)
    for body in bodies[:_WARM]:
        for search in ways.values():
            search(body)
    # What was read for the comparison is not looked through for garbage while searches are timed.
    gc.collect()
    gc.freeze()
    asleep = _ratios(_time(ways, bodies))
    with awake():
        seconds = _time(ways, bodies)
    costs = _costs(ways, bodies)
    note = f"{len(bodies)} searches by title, pages of {_PAGE} with sources, one connection, cores kept awake"
    rows = [row for name, taken in seconds.items() for row in percentiles(name, taken, (50, 95, 99), note)]
    return [
        *rows,
        *_ratios(seconds),
        *costs,
        *(replace(row, name=f"{row.name}, cores asleep in between") for row in asleep),
    ]


def _time(ways: _Ways, bodies: Sequence[JSON]) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for body in bodies:
        answers: dict[str, JSON] = {}
        for name, search in ways.items():
            start = time.perf_counter()
            answers[name] = search(body)
            seconds[name].append(time.perf_counter() - start)
        _check(answers)
    return seconds


def _costs(ways: _Ways, bodies: Sequence[JSON]) -> list[Row]:
    """Return the client's processor time for a page of each way, all ways in turn."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for body in bodies:
        for name, search in ways.items():
            taken[name].append(processor_time(lambda search=search: search(body)))  # type: ignore[misc]  # noqa: B023
    return [
        Row(
            f"{name}, CPU of the client",
            float(np.median(times)) * 1e3,
            "ms",
            "median; asked 3 of a folded page",
        )
        for name, times in taken.items()
    ]


def _ways(site: Site) -> _Ways:
    engine = site.engine
    folded = FoldedSearch(engine, site.pipeline.scheme)
    alone = FoldOptions(members=0, window=_WINDOW)
    members = FoldOptions(members=_MEMBERS, window=_WINDOW)
    small = FoldOptions(members=_MEMBERS, window=_SMALL)
    ways: _Ways = {
        "plain page": lambda body: engine.search(STAGED, body),
        "native collapse": lambda body: engine.search(STAGED, body | _COLLAPSE),
        "folded page": lambda body: folded.search(STAGED, body, alone),
        "native collapse with members": lambda body: engine.search(STAGED, body | _COLLAPSE_MEMBERS),
        "folded page with members": lambda body: folded.search(STAGED, body, members),
        _GROWING: lambda body: folded.search(STAGED, body, small),
    }
    quick = FoldedSearch(engine, site.pipeline.scheme)
    if quick.compile():
        ways[_COMPILED] = lambda body: quick.search(STAGED, body, members)
    if engine.info()["distribution"] == "opensearch":
        ways["native oversample + collapse"] = lambda body: engine.search(
            STAGED, body | {"search_pipeline": _PIPELINE}
        )
    return ways


def _check(answers: dict[str, JSON]) -> None:
    """Compare the answers to one search: totals, who stands first, and that nobody stands twice."""
    plain = answers["plain page"]["hits"]
    for name, answer in answers.items():
        hits = answer["hits"]["hits"]
        assert answer["hits"]["total"] == plain["total"], name
        assert 0 < len(hits) <= _PAGE, name
        assert hits[0]["_score"] == plain["hits"][0]["_score"], name
        if "native" in name:
            groups = [hit["_source"]["group"] for hit in hits]
            assert len(set(groups)) == len(groups), name
    alone, members = (answers[f"folded page{more}"] for more in ("", " with members"))
    assert [hit["_id"] for hit in alone["hits"]["hits"]] == [hit["_id"] for hit in members["hits"]["hits"]]


def _ratios(seconds: dict[str, list[float]]) -> list[Row]:
    median = {name: float(np.median(taken)) for name, taken in seconds.items()}
    pairs = [
        ("folded page", "native collapse", "no members on either side; target: 1.3"),
        (
            "folded page with members",
            "native collapse with members",
            f"up to {_MEMBERS} members with their sources on either side; target: 1.3",
        ),
        (_GROWING, "folded page with members", f"windows of {_SMALL} until the page is full"),
        (_COMPILED, "native collapse with members", "the same, folded by compiled code"),
        ("folded page", "native oversample + collapse", f"a window of {_WINDOW} on either side"),
        ("folded page", "plain page", ""),
    ]
    return [
        Row(f"{one}, p50 ÷ {other}, p50", median[one] / median[other], "times", note)
        for one, other, note in pairs
        if one in median and other in median
    ]
