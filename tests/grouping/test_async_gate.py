"""The awaited gate decides as the blocking one does; concurrent tasks are decided together."""

import asyncio

import pytest

from shinglefold.engines.embedded.async_engine import AsyncEmbeddedEngine
from shinglefold.errors import ConfigError, Refused
from shinglefold.grouping import AsyncGate, Gate, Policy
from shinglefold.ingest.index_mapping import ensure_index


@pytest.fixture
def ready(tmp_path, engine, pipeline):
    """Return a folder with an index that was set up and closed."""
    engine.close()
    return lambda: AsyncEmbeddedEngine(tmp_path, pipeline.tools.canonicalizer)


def test_one_of_concurrent_tasks_with_copies_is_accepted(ready, pipeline, text):
    async def run():
        async with ready() as engine, await AsyncGate.open(engine, "texts", pipeline=pipeline) as gate:
            given = [{"id": f"{kind}{copy}", "body": text(kind, copy)} for kind in "ab" for copy in range(4)]
            found = await asyncio.gather(*(gate.add(one) for one in given), return_exceptions=True)
            return [type(one).__name__ for one in found]

    found = asyncio.run(run())
    assert sorted(found[:4]) == sorted(found[4:]) == ["Refused"] * 3 + ["Verdict"]


def test_no_task_waits_forever_when_the_gate_closes(ready, pipeline, text):
    async def add(gate, task):
        for number in range(20):
            await gate.add({"id": f"{task}-{number}", "body": text(f"{task} {number}")})

    async def close(gate):
        await asyncio.sleep(0.05)
        await gate.close()

    async def run():
        async with ready() as engine:
            gate = await AsyncGate.open(engine, "texts", pipeline=pipeline)
            calls = [*(add(gate, task) for task in range(10)), *(close(gate) for _ in range(5))]
            tasks = [asyncio.create_task(call) for call in calls]
            done, waiting = await asyncio.wait(tasks, timeout=20)
            for task in waiting:
                task.cancel()
            return len(waiting), {str(task.exception() or "") for task in done}

    waiting, errors = asyncio.run(run())
    assert not waiting
    assert all(not error or "closed: open another" in error for error in errors)


def test_a_refusal_names_what_it_resembles(ready, pipeline, text):
    async def run():
        async with ready() as engine, await AsyncGate.open(engine, "texts", pipeline=pipeline) as gate:
            await gate.add({"id": "a", "body": text("a")})
            with pytest.raises(Refused, match="it resembles 'a'"):
                await gate.add({"id": "b", "body": text("a", 1)})
            return await gate.add_all([{"id": "c", "body": text("c")}, {"id": "d", "body": text("c")}])

    assert [one.status for one in asyncio.run(run())] == ["accepted", "refused"]


def test_the_common_passages_are_returned_on_request(ready, pipeline, text):
    async def run():
        async with ready() as engine, await AsyncGate.open(engine, "texts", pipeline=pipeline) as gate:
            await gate.add({"id": "first", "body": text("a")})
            found = await gate.passages({"body": "before " + text("a")}, "first")
            return found, await gate.passages({"body": text("a")}, "missing")

    (passage,), none = asyncio.run(run())
    assert passage["equal_tokens"] == 120
    assert passage["shown"]["text"] == text("a")
    assert none == []


def test_it_has_the_methods_of_the_blocking_gate(ready, pipeline):
    methods = [{name for name in vars(kind) if not name.startswith("_")} for kind in (Gate, AsyncGate)]
    assert methods[1] - {"open"} == methods[0]

    async def run():
        async with ready() as engine, await AsyncGate.open(engine, "texts", pipeline=pipeline) as gate:
            return await gate.sweep()

    assert asyncio.run(run()) == 0


def test_a_blocking_engine_is_rejected(engine, pipeline):
    ensure_index(engine, "others", pipeline.recipe())
    with pytest.raises(ConfigError, match="is not an awaited engine"):
        asyncio.run(AsyncGate.open(engine, "others", Policy()))
