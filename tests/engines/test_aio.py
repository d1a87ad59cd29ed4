"""Awaited searches, and writers that wait for each other."""

import asyncio
import threading
from pathlib import Path

import pytest

from shinglefold.contracts.engine import Engine
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


INDEX = "waiting"


@pytest.fixture
def embedded(engine: Engine) -> Engine:
    engine.create_index(INDEX, {"properties": {"n": {"type": "integer"}}}, {})
    return engine


def _put(number: int, verb: str = "index", text: str = "слово") -> dict:
    return {"_op_type": verb, "_index": INDEX, "_id": str(number), "_source": {"n": number, "text": text}}


def _delete(number: int) -> dict:
    return {"_op_type": "delete", "_index": INDEX, "_id": str(number)}


def _found(engine: Engine, text: str) -> list[str]:
    body = {"query": {"match": {"text": text}}, "size": 1_000, "sort": [{"n": "asc"}]}
    return [hit["_id"] for hit in engine.search(INDEX, body)["hits"]["hits"]]


def test_changes_of_one_document_in_one_request_happen_in_order(embedded):
    update = {"_op_type": "update", "_index": INDEX, "_id": "1", "doc": {"text": "мост"}}
    result = embedded.bulk([_put(1), update, _put(2), _delete(2), _put(3), _delete(3), _put(3, text="мост")])
    assert (result.indexed, result.failures) == (7, ())
    embedded.refresh(INDEX)
    assert _found(embedded, "мост") == ["1", "3"]
    assert _found(embedded, "слово") == []


def test_what_waits_is_there_to_be_refused_updated_and_read(embedded):
    result = embedded.bulk([_put(1), _put(1, "create"), _delete(2), _put(1, text="мост")])
    assert [failure.status for failure in result.failures] == [409, 404]
    assert result.written_over == 1
    assert embedded.get(INDEX, "1")["_source"] == {"n": 1, "text": "мост"}


@pytest.mark.parametrize("number", [255, 256, 257, 700])
def test_any_number_is_written_whole(embedded, number):
    embedded.bulk(_put(one) for one in range(number))
    embedded.refresh(INDEX)
    assert len(_found(embedded, "слово")) == number


def test_a_query_deletes_what_waits(embedded):
    embedded.bulk([_put(1), _put(2, text="мост")])
    assert embedded.delete_by_query(INDEX, {"match": {"text": "мост"}}).indexed == 1
    assert _found(embedded, "слово") == ["1"]


def test_new_fields_come_while_others_wait(embedded):
    wide = {f"field{number}": f"мост {number}" for number in range(60)}
    embedded.bulk([_put(1), {**_put(2), "_source": {"n": 2, **wide}}, _put(3)])
    embedded.refresh(INDEX)
    assert _found(embedded, "слово") == ["1", "3"]
    body = {"query": {"match": {"field59": "мост"}}}
    assert [hit["_id"] for hit in embedded.search(INDEX, body)["hits"]["hits"]] == ["2"]
