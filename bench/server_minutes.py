"""A minute of fifty callers beside four writers, and a minute of an alias that moves every 100 ms."""

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import cycle
from typing import NamedTuple

from bench.corpora import title_searches
from bench.server_indices import STAGED, Site, actions, ask, staged
from bench.storage import URL
from bench.table import Row
from shinglefold.contracts.engine import JSON, Engine
from shinglefold.engines import open_async_engine, open_engine
from shinglefold.rerank import AsyncFoldedSearch, FoldedSearch, FoldOptions

CORPUS = "libreoffice-ru"
_SECONDS = 60.0
_CALLERS, _WRITERS, _MOVERS = 50, 4, 8
_WRITTEN = 50
_MEMBERS = 5
_ALIAS = "shinglefold-bench-moving"
_Search = Callable[[JSON], Awaitable[JSON]]


def measure() -> list[Row]:
    """Return the figures for one corpus; nothing where there is none, or no server is named."""
    with staged(CORPUS) as site:
        if site is None:
            return []
        bodies = title_searches(CORPUS)
        turns = [row for writers in (0, _WRITERS) for row in _turns(site, bodies, writers)]
        return [*turns, *asyncio.run(_moves(site, bodies))]


class _Minute(NamedTuple):
    """What each caller was answered, the slowest answer in seconds, and what was wrong."""

    answers: list[int]
    slowest: float
    empty: int
    errors: list[str]

    def rows(self, name: str) -> Iterator[Row]:
        note = f"{_SECONDS:.0f} s"
        yield Row(f"{name}", sum(self.answers) / _SECONDS, "pages / s", note)
        yield Row(f"{name}, slowest answer", self.slowest, "s", note)
        yield Row(f"{name}, luckiest ÷ unluckiest caller", max(self.answers) / min(self.answers), "", note)
        yield Row(f"{name}, empty pages", self.empty, "pages", note)
        told = f"{note}; {'; '.join(sorted(set(self.errors))[:3])}" if self.errors else note
        yield Row(f"{name}, errors", len(self.errors), "searches", told)


async def _called(search: _Search, bodies: list[JSON], callers: int) -> _Minute:
    answers, errors = [0] * callers, []
    slowest, empty, end = 0.0, 0, time.monotonic() + _SECONDS

    async def call(caller: int) -> None:
        nonlocal slowest, empty
        for body in cycle(bodies[caller:] + bodies[:caller]):
            if time.monotonic() > end:
                return
            start = time.monotonic()
            try:
                page = await search(body)
                empty += not page["hits"]["hits"]
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}")
            slowest = max(slowest, time.monotonic() - start)
            answers[caller] += 1

    await asyncio.gather(*(call(caller) for caller in range(callers)))
    return _Minute(answers, slowest, empty, errors)


def _turns(site: Site, bodies: list[JSON], writers: int) -> list[Row]:
    """Callers of one awaited client, and of one blocking client, and of the plain client for comparison."""
    options = FoldOptions(members=_MEMBERS)
    beside = f"{_CALLERS} callers beside {writers} writers" if writers else f"{_CALLERS} callers"

    async def callers() -> list[Row]:
        rows: list[Row] = []
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_CALLERS))
        blocking = FoldedSearch(site.engine, site.pipeline.scheme)
        async with open_async_engine(os.environ[URL]) as engine:
            awaited = AsyncFoldedSearch(engine, site.pipeline.scheme)
            ways: dict[str, _Search] = {
                "plain pages": lambda body: engine.search(STAGED, body),
                "folded pages with members": lambda body: awaited.search(STAGED, body, options),
                "folded pages with members, in threads": lambda body: asyncio.to_thread(
                    blocking.search, STAGED, body, options
                ),
            }
            for name, search in ways.items():
                rows += (await _called(search, bodies, _CALLERS)).rows(f"{beside}: {name}")
        return rows

    with _writing(site, writers):
        return asyncio.run(callers())


@contextmanager
def _writing(site: Site, writers: int) -> Iterator[None]:
    """Let writers put documents of the index again, each as fast as it can."""
    stop = threading.Event()
    documents = site.signed

    def write(first: int) -> None:
        with closing(open_engine(os.environ[URL])) as engine:
            at = first
            while not stop.is_set():
                part = [documents[(at + one) % len(documents)] for one in range(_WRITTEN)]
                assert not engine.bulk(actions(STAGED, part)).failures
                at += writers * _WRITTEN

    threads = [threading.Thread(target=write, args=(one * _WRITTEN,)) for one in range(writers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


async def _moves(site: Site, bodies: list[JSON]) -> list[Row]:
    """Callers of an alias that moves between two equal indices of three shards."""
    indices = [f"{_ALIAS}-{one}" for one in (1, 2)]
    rows: list[Row] = []
    try:
        for index in indices:
            _fill(site.engine, index, site)
        _move(indices[0], indices[1])
        async with open_async_engine(os.environ[URL]) as engine:
            folded = AsyncFoldedSearch(engine, site.pipeline.scheme)
            options = FoldOptions(members=_MEMBERS)
            ways: dict[str, _Search] = {
                "plain pages": lambda body: engine.search(_ALIAS, body),
                "folded pages with members": lambda body: folded.search(_ALIAS, body, options),
            }
            for name, search in ways.items():
                stop = asyncio.Event()
                moving = asyncio.create_task(asyncio.to_thread(_keep_moving, stop, indices))
                minute = await _called(search, bodies, _MOVERS)
                stop.set()
                moved = await moving
                rows += minute.rows(f"{_MOVERS} callers, alias moved {moved} times: {name}")
    finally:
        for index in indices:
            if site.engine.index_exists(index):
                site.engine.delete_index(index)
    return rows


def _keep_moving(stop: asyncio.Event, indices: list[str]) -> int:
    moved = 0
    while not stop.is_set():
        time.sleep(0.1)
        _move(indices[(moved + 1) % 2], indices[moved % 2])
        moved += 1
    return moved


def _move(to: str, other: str) -> None:
    actions = [{"remove": {"index": other, "alias": _ALIAS, "must_exist": False}}]
    ask("POST", "_aliases", {"actions": [{"add": {"index": to, "alias": _ALIAS}}, *actions]})


def _fill(engine: Engine, index: str, site: Site) -> None:
    if engine.index_exists(index):
        engine.delete_index(index)
    settings = {"number_of_shards": 3, "number_of_replicas": 0}
    engine.create_index(index, {"properties": site.with_fingerprints}, settings)
    for at in range(0, len(site.signed), 1000):
        assert not engine.bulk(actions(index, site.signed[at : at + 1000])).failures
    engine.refresh(index)
