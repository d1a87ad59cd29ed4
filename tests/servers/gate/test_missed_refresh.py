"""A refresh that does not reach all copies of an index: nobody goes on as if it had."""

import asyncio
import itertools
import time

import pytest
from support.servers.faulty import MISSED, relay

from shinglefold.engines import Connection, open_async_engine, open_engine
from shinglefold.errors import EngineError, EngineUnavailable, Refused
from shinglefold.grouping import AsyncGate, Gate
from shinglefold.ingest import index_documents
from shinglefold.maintenance import BackfillOptions, backfill
from shinglefold.runtime.backoff import Backoff

pytestmark = pytest.mark.newest

#: Requests by which one refresh is asked for until it has failed.
_TRIES = 3
_PATIENCE = 120
_SAID = r"1 of 2 copies of shards were not refreshed \(node_disconnected_exception: \[node-1\] disconnected\)"


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """What gates do about once a second they do at once."""
    monkeypatch.setattr("shinglefold.grouping.gate.server_store._INTERVAL", 0.05)


@pytest.fixture
def index(gated):
    """An index that searches see nothing new of by themselves."""
    with gated({}, refresh_interval="-1") as name:
        yield name


@pytest.fixture
def proxy(server):
    with relay(server.url, of="/_refresh") as made:
        yield made


@pytest.fixture
def through(proxy, engine):
    product = engine.info()["distribution"]
    with open_engine(Connection((proxy.url,), product=product)) as opened:
        opened.backoff = Backoff(_TRIES - 1, first=0.01)
        yield opened


def _text(kind):
    return " ".join(f"{kind}x{at}" for at in range(80))


def _until_failed_again(proxy):
    """Yield numbers until a refresh was due, has failed, and was done about once more."""
    end = time.monotonic() + _PATIENCE
    for number in itertools.count():
        if proxy.spoilt > _TRIES:
            return
        assert time.monotonic() < end, "no refresh was due"
        yield number


def test_what_a_copy_does_not_show_yet_is_known_by_its_intent(engine, through, proxy, index, pipeline):
    with Gate(through, index, pipeline=pipeline) as gate, Gate(engine, index, pipeline=pipeline) as other:
        proxy.weather(1, 1.0, [MISSED])
        gate.add({"id": "a", "body": _text("a")})
        for number in _until_failed_again(proxy):
            time.sleep(0.06)
            gate.add({"id": f"{number}", "body": _text(number)})
        with pytest.raises(Refused, match="it resembles 'a'"):
            other.add({"id": "b", "body": _text("a")})
        proxy.weather(1, 0)
    with Gate(engine, index, pipeline=pipeline) as third, pytest.raises(Refused, match="it resembles 'a'"):
        third.add({"id": "c", "body": _text("a")})


def test_an_awaited_gate_keeps_its_intents_likewise(engine, through, proxy, index, pipeline):
    async def run():
        async with (
            open_async_engine(through.connection) as awaited,
            await AsyncGate.open(awaited, index) as gate,
        ):
            proxy.weather(1, 1.0, [MISSED])
            await gate.add({"id": "a", "body": _text("a")})
            for number in _until_failed_again(proxy):
                await asyncio.sleep(0.06)
                await gate.add({"id": f"{number}", "body": _text(number)})
            with Gate(engine, index, pipeline=pipeline) as other:
                refused = await asyncio.to_thread(_refused, other)
            proxy.weather(1, 0)
            return refused

    assert asyncio.run(run()) == "a"


def _refused(gate):
    with pytest.raises(Refused) as caught:
        gate.add({"id": "b", "body": _text("a")})
    return caught.value.like


def test_a_refresh_is_asked_for_again_and_then_said_to_have_failed(through, proxy, index):
    proxy.faults = [MISSED, MISSED]
    through.refresh(index)
    assert (proxy.spoilt, proxy.faults) == (2, [])
    proxy.weather(1, 1.0, [MISSED])
    with pytest.raises(EngineUnavailable, match=_SAID):
        through.refresh(index)


def test_a_run_that_made_nothing_visible_says_so(through, proxy, index, pipeline):
    proxy.weather(1, 1.0, [MISSED])
    given = [{"id": f"{number}", "body": _text(number)} for number in range(3)]
    summary = index_documents(through, index, given, pipeline, workers=1)
    assert (summary.indexed, summary.failed) == (3, 0)
    assert "were not refreshed" in summary.stopped
    options = BackfillOptions(workers=1, backoff=Backoff(retries=1, first=0.1))
    assert "were not refreshed" in backfill(through, index, pipeline, options).stopped


def test_a_gate_works_on_after_its_index_was_closed_and_opened_again(server, engine, index, pipeline):
    with Gate(engine, index, pipeline=pipeline) as gate:
        gate.add({"id": "a", "body": _text("a")})
        time.sleep(0.1)
        server.ask("POST", f"/{index}/_close")
        with pytest.raises(EngineError, match="closed"):
            gate.add({"id": "b", "body": _text("b")})
        time.sleep(0.1)
        server.ask("POST", f"/{index}/_open?wait_for_active_shards=1")
        assert gate.add({"id": "c", "body": _text("c")}).status == "accepted"
