"""Many callers of one engine get their answers in turn, however few connections there are."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.clients import a_client

from shinglefold.engines import load_connection, open_async_engine, open_engine
from shinglefold.examples import articles
from shinglefold.ingest import index_documents
from shinglefold.rerank import AsyncFoldedSearch, FoldedSearch

pytestmark = pytest.mark.newest

CALLERS, SEARCHES = 20, 240
BODY = {"query": {"match": {"body": "вода water 水"}}, "size": 5}


@pytest.fixture(scope="module")
def index(engine, pipeline) -> Iterator[str]:
    name = "shinglefold-test-callers"
    index_documents(engine, name, articles(), pipeline, workers=1)
    yield name
    engine.delete_index(name)


@dataclass
class Callers:
    """Counts the answers that each caller got, until there are enough for all of them."""

    answered: Counter[int] = field(default_factory=Counter)

    @property
    def done(self) -> bool:
        return self.answered.total() >= SEARCHES

    def check(self) -> None:
        """No caller got more than twice as many answers as another."""
        counts = [self.answered[caller] for caller in range(CALLERS)]
        assert max(counts) <= 2 * min(counts), sorted(counts)


def four_connections(product: str, url: str, *, awaited: bool) -> Any:
    """Return a client of a program's own, with four connections if its pool makes callers wait."""
    most = {"pool_maxsize": 4} if product == "opensearch" else {"connections_per_node": 4}
    return a_client(product, url, awaited=awaited, **most)


@pytest.mark.parametrize("given", ["connection", "client"])
def test_awaited_callers_take_turns(server, engine, index, scheme, given, monkeypatch):
    monkeypatch.setenv("SHINGLEFOLD_ENGINE_MAX_CONNECTIONS", "4")
    callers = Callers()

    async def call(search: AsyncFoldedSearch, caller: int) -> None:
        while not callers.done:
            await search.search(index, BODY)
            callers.answered[caller] += 1

    async def work() -> None:
        own = (
            four_connections(engine.info()["distribution"], server.url, awaited=True)
            if given == "client"
            else None
        )
        async with open_async_engine(own or load_connection(server.url)) as opened:
            assert opened.connection.max_connections == 4
            search = AsyncFoldedSearch(opened, scheme, tiebreaker=None)
            await asyncio.gather(*(call(search, caller) for caller in range(CALLERS)))
        if own is not None:
            await own.close()

    asyncio.run(work())
    callers.check()


@pytest.mark.parametrize("given", ["connection", "client"])
def test_callers_in_threads_take_turns(server, engine, index, scheme, given, monkeypatch):
    monkeypatch.setenv("SHINGLEFOLD_ENGINE_MAX_CONNECTIONS", "4")
    callers = Callers()

    def call(caller: int) -> None:
        while not callers.done:
            search.search(index, BODY)
            callers.answered[caller] += 1

    product = engine.info()["distribution"]
    if (product, given) == ("opensearch", "client"):
        pytest.skip("opensearch-py's blocking client opens a connection for every caller")
    own = four_connections(product, server.url, awaited=False) if given == "client" else None
    with closing(open_engine(own or load_connection(server.url))) as opened:
        search = FoldedSearch(opened, scheme, tiebreaker=None)
        with ThreadPoolExecutor(CALLERS) as threads:
            list(threads.map(call, range(CALLERS)))
    if own is not None:
        own.close()
    callers.check()
