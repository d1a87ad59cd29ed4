"""Large batches before an index on a real server."""

import asyncio

import pytest

from shinglefold.engines import open_async_engine
from shinglefold.errors import EngineUnavailable
from shinglefold.grouping import AsyncGate, Gate, Policy

pytestmark = pytest.mark.newest

_NUMBER = 240
#: Of which every tenth has the text of the one before, and every fiftieth a value that the index refuses.
_COPIED, _BAD = 10, 50


@pytest.fixture
def index(gated):
    with gated({"size": {"type": "long"}}) as name:
        yield name


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


def test_each_document_of_a_large_batch_is_told_what_became_of_it(engine, index, pipeline):
    with Gate(engine, index, Policy("refuse"), pipeline=pipeline) as gate:
        _check(engine, index, gate.add_all(_documents()))


def test_a_large_batch_is_decided_in_an_event_loop_as_well(server, engine, index, pipeline):
    async def run():
        async with (
            open_async_engine(server.url) as awaited,
            await AsyncGate.open(awaited, index, Policy("refuse"), pipeline=pipeline) as gate,
        ):
            return await gate.add_all(_documents())

    _check(engine, index, asyncio.run(run()))


@pytest.mark.parametrize("failing", [1, 2])
def test_a_write_whose_answer_was_lost_changes_no_verdict(engine, index, pipeline, monkeypatch, failing):
    write, sent = engine.write, []

    def losing(actions, **more):
        answer = write(actions, **more)
        sent.append(len(actions))
        if len(sent) == failing:
            raise EngineUnavailable("the connection broke")
        return answer

    with Gate(engine, index, Policy("refuse"), pipeline=pipeline) as gate:
        gate.add({"_id": "first", "body": "some words that nothing else here has said in this order"})
        monkeypatch.setattr(engine, "write", losing)
        _check(engine, index, gate.add_all(_documents()))
    assert len(sent) > failing
    assert engine.read(index, ["d0"])[0] is not None
