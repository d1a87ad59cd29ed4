"""The awaited embedded engine leaves the event loop free, and bounds what it does at the same time."""

import asyncio
import threading
from pathlib import Path

import pytest

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.engines.embedded.async_engine import AsyncEmbeddedEngine
from shinglefold.errors import EngineError, IndexMissing


@pytest.fixture
def filled(tmp_path: Path, words) -> Path:
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {}, {})
        engine.bulk({"_index": "pages", "_id": str(n), "_source": {"n": n}} for n in range(20))
    return tmp_path


def test_the_event_loop_goes_on_while_a_search_takes_its_time(filled: Path, words, monkeypatch):
    meeting = threading.Event()
    real = EmbeddedEngine.search

    def slow(*arguments):
        assert meeting.wait(20)
        return real(*arguments)

    monkeypatch.setattr(EmbeddedEngine, "search", slow)

    async def run() -> int:
        async with AsyncEmbeddedEngine(filled, words) as engine:
            searching = asyncio.create_task(engine.search("pages", {}))
            await asyncio.sleep(0.01)
            assert not searching.done()
            # Only the loop can end the search: it would hang here if that waited for it.
            meeting.set()
            return (await searching)["hits"]["total"]["value"]

    assert asyncio.run(run()) == 20


@pytest.mark.parametrize("threads", [1, 3])
def test_no_more_searches_run_at_the_same_time_than_there_are_threads(
    filled: Path, words, monkeypatch, threads
):
    lock = threading.Lock()
    inside: list[int] = [0, 0]
    real = EmbeddedEngine.search

    def counted(*arguments):
        with lock:
            inside[0] += 1
            inside[1] = max(inside)
        try:
            threading.Event().wait(0.01)
            return real(*arguments)
        finally:
            with lock:
                inside[0] -= 1

    monkeypatch.setattr(EmbeddedEngine, "search", counted)

    async def run() -> list:
        async with AsyncEmbeddedEngine(filled, words, threads=threads) as engine:
            return await engine.msearch(
                [*[("pages", {"query": {"term": {"n": n}}}) for n in range(20)], ("no", {})]
            )

    *found, missing = asyncio.run(run())
    assert [answer["hits"]["hits"][0]["_id"] for answer in found] == [str(n) for n in range(20)]
    assert isinstance(missing, IndexMissing)
    assert inside[1] == threads


def test_a_closed_engine_says_so(filled: Path, words):
    async def run() -> None:
        engine = AsyncEmbeddedEngine(filled, words)
        await engine.close()
        await engine.close()
        with pytest.raises(EngineError, match="closed"):
            await engine.search("pages", {})

    asyncio.run(run())


def test_it_writes_through_the_engine_behind_it(tmp_path: Path, words):
    async def run() -> int:
        async with AsyncEmbeddedEngine(tmp_path, words) as engine:
            await asyncio.to_thread(engine.blocking.create_index, "pages", {}, {})
            engine.blocking.bulk([{"_index": "pages", "_source": {"n": 1}}])
            engine.blocking.refresh("pages")
            return (await engine.search("pages", {}))["hits"]["total"]["value"]

    assert asyncio.run(run()) == 1
