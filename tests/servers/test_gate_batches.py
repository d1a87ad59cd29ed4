"""Large batches before an index on a real server, which are written by two requests at once."""

import asyncio
import threading
import uuid

import pytest
from support.gate.crashes import make_pipeline

from shinglefold.engines import open_engine
from shinglefold.errors import EngineUnavailable
from shinglefold.groups import AsyncGate, Gate, Policy
from shinglefold.groups.gate.intents import intents_name
from shinglefold.ingest import ensure_index

_NUMBER = 240
#: Of which every tenth has the text of the one before, and every fiftieth a value that the index refuses.
_COPIED, _BAD = 10, 50


@pytest.fixture(scope="module")
def pipeline():
    return make_pipeline()


@pytest.fixture
def index(server, pipeline):
    name, engine = f"gate-{uuid.uuid4().hex[:8]}", open_engine(server.url)
    ensure_index(engine, name, pipeline.recipe(), properties={"size": {"type": "long"}})
    yield engine, name
    for one in (name, intents_name(name)):
        engine.delete_index(one)
    engine.close()


def _documents():
    made = []
    for at in range(_NUMBER):
        text = at - 1 if at % _COPIED == _COPIED - 1 else at
        body = " ".join(f"word{text}of{place}" for place in range(60))
        size = "no number" if at % _BAD == _BAD // 2 else at
        made.append({"_id": f"d{at}", "body": body, "size": size})
    return made


def _check(engine, name, verdicts):
    for at, verdict in enumerate(verdicts):
        assert verdict.id == f"d{at}"
        stored = engine.get(name, f"d{at}")
        if at % _COPIED == _COPIED - 1:
            assert (verdict.status, verdict.like.id, stored) == ("refused", f"d{at - 1}", None)
        elif at % _BAD == _BAD // 2:
            assert verdict.status == "failed"
            assert "size" in verdict.reason
        else:
            assert (verdict.status, verdict.replaced) == ("accepted", False)
            assert stored["_source"]["size"] == at


def _split(engine, monkeypatch, spoil=lambda number, answer: answer):
    """Note how many actions each request has that is on its way beside another."""
    sent, lock, write = [], threading.Lock(), engine.write

    def noted(actions, **more):
        with lock:
            sent.append(len(actions))
            number = len(sent)
        return spoil(number, write(actions, **more))

    monkeypatch.setattr(engine, "write", noted)
    return sent


def test_each_document_of_a_large_batch_is_told_what_became_of_it(index, pipeline, monkeypatch):
    engine, name = index
    with Gate(engine, name, Policy("refuse"), pipeline=pipeline) as gate:
        gate.add({"_id": "first", "body": "some words that nothing else here has said in this order"})
        sent = _split(engine, monkeypatch)
        _check(engine, name, gate.add_all(_documents()))
    # Places, and then documents and places that are given back.
    assert max(sent) < _NUMBER
    assert sum(sent) > 2 * _NUMBER


def test_a_large_batch_is_decided_in_an_event_loop_as_well(server, index, pipeline):
    engine, name = index

    async def run():
        if engine.info()["distribution"] == "opensearch":
            from shinglefold.engines.opensearch.aio import AsyncOpenSearchEngine as Awaited
        else:
            from shinglefold.engines.elasticsearch.aio import AsyncElasticsearchEngine as Awaited
        async with (
            Awaited(engine.connection) as awaited,
            await AsyncGate.open(awaited, name, Policy("refuse"), pipeline=pipeline) as gate,
        ):
            return await gate.add_all(_documents())

    _check(engine, name, asyncio.run(run()))


@pytest.mark.parametrize("failing", [1, 2, 3, 4])
def test_one_of_two_requests_that_fails_changes_no_verdict(index, pipeline, monkeypatch, failing):
    engine, name = index

    def spoil(number, answer):
        if number == failing:
            raise EngineUnavailable("the connection broke")
        return answer

    with Gate(engine, name, Policy("refuse"), pipeline=pipeline) as gate:
        gate.add({"_id": "first", "body": "some words that nothing else here has said in this order"})
        _split(engine, monkeypatch, spoil)
        _check(engine, name, gate.add_all(_documents()))
    assert engine.read(name, ["d0"])[0] is not None
