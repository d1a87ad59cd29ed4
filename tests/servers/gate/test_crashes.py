"""Gates in front of an index on a real server: writers are killed, and nothing slips in twice."""

import asyncio
import uuid

import pytest
from support.gate.crashes import Trial, seeds
from support.gate.moved import moved_words
from support.gate.whole import run_whole, texts
from support.hits import find_similar
from support.maintenance import put
from support.servers.local import LocalServer
from support.servers.server import add_alias

from shinglefold.engines import open_async_engine, open_engine
from shinglefold.errors import EngineError
from shinglefold.grouping import AsyncGate, Gate, Policy
from shinglefold.grouping.intent_index import intents_name
from shinglefold.ingest import Pipeline
from shinglefold.model.stored_fingerprint import PENDING

#: Texts of a trial: 160.
SIZES = {"classes": 20, "copies": 8, "kills": 4}


def _delete(server, name):
    with open_engine(server.url) as engine:
        for one in (name, intents_name(name)):
            if engine.index_exists(one):
                engine.delete_index(one)


def _restarts(server, seed):
    """Return what kills the server and starts it again, and how often: once in every seventh seed."""
    if not isinstance(server, LocalServer):
        return {}

    def strike():
        server.kill()
        server.start()

    return {"strike": strike, "strikes": int(seed % 7 == 0)}


@pytest.mark.newest
@pytest.mark.parametrize("policy", [Policy("refuse"), Policy("cap", most=2)], ids=["refuse", "cap"])
def test_as_many_of_each_class_are_let_in_as_there_are_places_whoever_is_killed(server, pipeline, policy):
    for seed in seeds(1, in_ci=1):
        name, restarts = f"gate-{uuid.uuid4().hex[:8]}-{seed}", _restarts(server, seed)
        trial = Trial(lambda: open_engine(server.url), name, pipeline, policy, seed, **SIZES, **restarts)
        assert trial.run() == {str(number): policy.most for number in range(trial.classes)}, f"seed {seed}"
        _delete(server, name)


@pytest.mark.timeout(0)
@pytest.mark.skipif(not texts(), reason="make gate-run does it")
def test_the_whole_run(server, pipeline):
    begin, strike = f"gate-{uuid.uuid4().hex[:8]}", _restarts(server, 0).get("strike")
    run_whole(server.kind.name, lambda: open_engine(server.url), pipeline, f"{begin}-{{}}".format, strike)
    for action in ("refuse", "cap"):
        _delete(server, f"{begin}-{action}")


def test_patterns_do_not_find_the_index_of_intents(engine, index, pipeline):
    with Gate(engine, index, pipeline=pipeline) as gate:
        gate.add({"id": "a", "body": " ".join(f"word{number}" for number in range(60))})
    assert intents_name(index) not in [info.name for info in engine.indices("*")]
    with Gate(engine, index, pipeline=pipeline) as gate:
        assert gate.sweep() == 0


@pytest.mark.parametrize("kind", ["blocking", "awaited", "awaited, with a blocking engine"])
def test_placeholders_of_crashed_writers_are_swept(server, engine, index, pipeline, kind):
    """One whose lease has not ended stays."""

    async def swept() -> list[int]:
        given = {"blocking": engine} if "with" in kind else {}
        async with (
            open_async_engine(server.url) as awaited,
            await AsyncGate.open(awaited, index, pipeline=pipeline, **given) as gate,
        ):
            put(engine, index, left)
            return [await gate.sweep(), await gate.sweep()]

    leases = {"a": 1, "b": 2, "c": 2**42}
    left = {id_: {pipeline.recipe().field: {PENDING: until}} for id_, until in leases.items()}
    if kind == "blocking":
        with Gate(engine, index, pipeline=pipeline) as gate:
            put(engine, index, left)
            counts = [gate.sweep(), gate.sweep()]
    else:
        counts = asyncio.run(swept())
    assert counts == [2, 0]
    assert [engine.get(index, id_) is None for id_ in leases] == [True, True, False]


def test_the_processor_fails_copies_on_their_way_through_a_pipeline(server, engine, index, pipeline):
    def unique(**policy):
        uniqueness = {"uniqueness": {"index": index, "engine": server.url, **policy}}
        processors = [{"supershingle": {"fields": ["body"]}}, uniqueness]
        return Pipeline.from_json({"processors": processors}, pipeline.scheme)

    body = " ".join(f"word{number}" for number in range(60))
    first, second = unique(policy="tag").run_block([{"_id": id_, "body": body} for id_ in "ab"])
    assert first.document["_dedup"]["group"] == second.document["_dedup"]["group"]
    (outcome,) = unique().run_block([{"_id": "c", "body": body}])
    assert "it resembles" in outcome.failure.reason
    assert engine.get(index, "c") is None


def test_tasks_of_an_event_loop_decide_beside_a_blocking_gate(server, engine, index, pipeline):
    bodies = [" ".join(f"w{kind}x{number}" for number in range(80)) for kind in range(6)]

    policy = Policy("cap", most=2)
    given = [{"id": f"{at}-{copy}", "body": body} for at, body in enumerate(bodies) for copy in "abc"]

    async def run():
        async with (
            open_async_engine(server.url) as awaited,
            await AsyncGate.open(awaited, index, policy, pipeline=pipeline) as gate,
        ):
            told = await asyncio.gather(*(gate.add_all([one]) for one in given))
        with pytest.raises(EngineError, match="closed: open another"):
            await gate.add_all(given[:1])
        return [verdict.status for (verdict,) in told]

    with Gate(engine, index, policy, pipeline=pipeline) as beside:
        assert beside.add({"id": "0-first", "body": bodies[0]}).status == "accepted"
        statuses = asyncio.run(run())
        assert statuses.count("accepted") == 11
        assert beside.add_all([{"id": "5-last", "body": bodies[5]}])[0].status == "refused"


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_texts_decide_what_fingerprints_leave_in_doubt(server, engine, index, pipeline, awaited):
    one, other = moved_words()
    given = [{"id": "one", "body": one}, {"id": "other", "body": other}]
    told = asyncio.run(_one_by_one(server, index, given)) if awaited else _blocking(engine, index, given)
    assert [verdict.status for verdict in told] == ["accepted", "refused"]
    assert told[1].like.similarity >= 0.8
    assert told[1].like.likeness < pipeline.scheme.decision.min_resemblance
    engine.refresh(index)
    (outcome,) = pipeline.run_block([given[1]])
    engine.bulk([{"_index": index, "_id": "other", "_source": outcome.document}])
    engine.refresh(index)
    found = {how: find_similar(engine, index, "one", verify=how).matches for how in ("text", "signature")}
    assert [match.id for match in found["text"]] == ["other"]
    assert found["text"][0].similarity == pytest.approx(told[1].like.similarity)
    assert not found["signature"]


def _blocking(engine, index, given):
    with Gate(engine, index) as gate:
        return [verdict for one in given for verdict in gate.add_all([one])]


async def _one_by_one(server, index, given):
    async with open_async_engine(server.url) as awaited, await AsyncGate.open(awaited, index) as gate:
        return [verdict for one in given for verdict in await gate.add_all([one])]


def test_an_awaited_gate_before_an_alias_notices_that_it_means_another_index(server, gated, pipeline):
    def alias_of(index: str) -> None:
        add_alias(server, f"{old}-alias", index)

    async def run() -> None:
        policy = Policy("refuse")
        async with (
            open_async_engine(server.url) as awaited,
            await AsyncGate.open(awaited, f"{old}-alias", policy, pipeline=pipeline) as gate,
        ):
            assert (await gate.add({"id": "a", "body": "What somebody has told"})).status == "accepted"
            alias_of(new)
            await asyncio.sleep(1.1)
            with pytest.raises(EngineError, match=f"now means {new}, as"):
                await gate.add({"id": "b", "body": "Something else that nobody has told"})

    with gated() as old, gated() as new:
        alias_of(old)
        asyncio.run(run())
