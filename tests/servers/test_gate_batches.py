"""Large batches before an index on a real server."""

import asyncio
import uuid

import pytest
from support.gate.crashes import make_pipeline

from shinglefold.engines import open_engine
from shinglefold.errors import EngineUnavailable
from shinglefold.grouping import AsyncGate, Gate, Policy
from shinglefold.grouping.intent_index import intents_name
from shinglefold.ingest.index_mapping import ensure_index

pytestmark = pytest.mark.newest

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


def test_each_document_of_a_large_batch_is_told_what_became_of_it(index, pipeline):
    engine, name = index
    with Gate(engine, name, Policy("refuse"), pipeline=pipeline) as gate:
        _check(engine, name, gate.add_all(_documents()))


def test_a_large_batch_is_decided_in_an_event_loop_as_well(server, index, pipeline):
    engine, name = index

    async def run():
        if engine.info()["distribution"] == "opensearch":
            from shinglefold.engines.opensearch import AsyncOpenSearchEngine as Awaited
        else:
            from shinglefold.engines.elasticsearch import AsyncElasticsearchEngine as Awaited
        async with (
            Awaited(engine.connection) as awaited,
            await AsyncGate.open(awaited, name, Policy("refuse"), pipeline=pipeline) as gate,
        ):
            return await gate.add_all(_documents())

    _check(engine, name, asyncio.run(run()))


@pytest.mark.parametrize("failing", [1, 2])
def test_a_write_whose_answer_was_lost_changes_no_verdict(index, pipeline, monkeypatch, failing):
    engine, name = index
    write, sent = engine.write, []

    def losing(actions, **more):
        answer = write(actions, **more)
        sent.append(len(actions))
        if len(sent) == failing:
            raise EngineUnavailable("the connection broke")
        return answer

    with Gate(engine, name, Policy("refuse"), pipeline=pipeline) as gate:
        gate.add({"_id": "first", "body": "some words that nothing else here has said in this order"})
        monkeypatch.setattr(engine, "write", losing)
        _check(engine, name, gate.add_all(_documents()))
    assert len(sent) > failing
    assert engine.read(name, ["d0"])[0] is not None
