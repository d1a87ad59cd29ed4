"""Many callers of one awaited client: plain pages, pages collapsed by the server, and folded ones, in turn.

Each way has the same connections. Callers begin their next search when they have an answer.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bench.corpora import title_searches
from bench.server_indices import STAGED, Site, staged
from bench.table import URL, Row
from shinglefold.contracts.engine import JSON
from shinglefold.engines import open_async_engine
from shinglefold.rerank import AsyncFoldedSearch, FoldOptions

CORPUS = "libreoffice-ru"
_CALLERS = (1, 10, 50, 200)
_ROUNDS = 3
_SEARCHES = 200
_CHECKED = 100
_MEMBERS = 5
_PLAIN, _NATIVE, _FOLDED = "plain page", "native collapse with members", "folded page with members"
_INNER = {"name": "duplicates", "size": _MEMBERS + 1}
#: What a page shows of its hits: ids alone, or whole sources.
_PAGES: dict[str, JSON] = {"small": {"_source": False}, "full": {}}
_Search = Callable[[JSON], Awaitable[JSON]]


def measure() -> list[Row]:
    """Return the figures for one corpus; nothing where there is none, or no server is named."""
    with staged(CORPUS) as site:
        return callers(site) if site else []


def callers(site: Site) -> list[Row]:
    """Return pages a second of each way, for several numbers of callers."""
    bodies = title_searches(site.corpus)
    return asyncio.run(_measure(site, bodies))


class Run(NamedTuple):
    """One round of one way: by the clock, of the processor, and of the slowest answer, in seconds."""

    rate: float
    processor: float
    slowest: float


async def _measure(site: Site, bodies: Sequence[JSON]) -> list[Row]:
    rows: list[Row] = []
    async with open_async_engine(os.environ[URL]) as engine:
        ways = _ways(engine, site)
        for page, shown in _PAGES.items():
            shaped = [body | shown for body in bodies]
            await _check(ways, shaped)
            for number in _CALLERS:
                runs: dict[str, list[Run]] = {name: [] for name in ways}
                for _ in range(_ROUNDS):
                    for name, search in ways.items():
                        runs[name].append(await run(search, shaped, number, max(_SEARCHES, 2 * number)))
                rows += _rows(f"{page} pages, {number} callers", runs)
    return rows


def _ways(engine: Any, site: Site) -> dict[str, _Search]:  # noqa: ANN401 - an engine whose methods are awaited
    folded, options = AsyncFoldedSearch(engine, site.pipeline.scheme), FoldOptions(members=_MEMBERS)
    collapse = {"collapse": {"field": "group", "inner_hits": _INNER}}
    return {
        _PLAIN: lambda body: engine.search(STAGED, body),
        _NATIVE: lambda body: engine.search(STAGED, body | collapse),
        _FOLDED: lambda body: folded.search(STAGED, body, options),
    }


async def _check(ways: dict[str, _Search], bodies: Sequence[JSON]) -> None:
    """Compare the answers of the ways before any is timed, which also warms the server."""
    for body in bodies[:_CHECKED]:
        answers = {name: (await search(body))["hits"] for name, search in ways.items()}
        plain = answers[_PLAIN]
        for name, hits in answers.items():
            assert hits["total"] == plain["total"], name
            assert hits["hits"][0]["_score"] == plain["hits"][0]["_score"], name
        shown = [hit["_id"] for hit in answers[_FOLDED]["hits"]]
        members = [
            inner["_id"]
            for hit in answers[_FOLDED]["hits"]
            for inner in hit["inner_hits"]["duplicates"]["hits"]["hits"]
        ]
        assert set(shown) <= set(members)
        assert len(set(members)) == len(members)


async def run(
    search: Callable[[JSON], Awaitable[object]], bodies: Sequence[JSON], number: int, total: int
) -> Run:
    """Search ``total`` times by so many callers, who never wait."""
    left = iter(range(total))
    slowest = 0.0

    async def call() -> None:
        nonlocal slowest
        for at in left:
            start = time.perf_counter()
            await search(bodies[at % len(bodies)])
            slowest = max(slowest, time.perf_counter() - start)

    begun, start = time.process_time(), time.perf_counter()
    await asyncio.gather(*(call() for _ in range(number)))
    seconds = time.perf_counter() - start
    return Run(total / seconds, (time.process_time() - begun) / total, slowest)


def _rows(name: str, runs: dict[str, list[Run]]) -> Iterator[Row]:
    rates = {way: [run.rate for run in each] for way, each in runs.items()}
    for way, each in runs.items():
        told = ", ".join(f"{rate:.0f}" for rate in rates[way])
        note = f"rounds {told}; slowest answer {max(run.slowest for run in each):.2f} s"
        yield Row(f"{name}: {way}", float(np.median(rates[way])), "pages / s", note)
        cpu = float(np.median([run.processor for run in each])) * 1e3
        yield Row(f"{name}: {way}, CPU of the client", cpu, "ms", "median of the rounds")
    for other in (_PLAIN, _NATIVE):
        share = [ours / theirs for ours, theirs in zip(rates[_FOLDED], rates[other], strict=True)]
        told = ", ".join(f"{one:.2f}" for one in share)
        yield Row(f"{name}: {_FOLDED} ÷ {other}", float(np.median(share)), "of the rate", f"rounds {told}")
