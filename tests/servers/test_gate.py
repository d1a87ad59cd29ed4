"""Gates in front of an index on a real server: writers are killed, and nothing slips in twice."""

import uuid
from dataclasses import replace

import pytest
from support.gate.crashes import Trial, make_pipeline, seeds
from support.gate.whole import run_whole, texts
from support.servers.local import LocalServer

from shinglefold.engines import open_engine
from shinglefold.groups import Gate, Policy
from shinglefold.groups.gate.intents import intents_name
from shinglefold.ingest import Pipeline, ensure_index

#: Texts of a trial: 160.
SIZES = {"classes": 20, "copies": 8, "kills": 4}


@pytest.fixture
def index(server):
    name = f"gate-{uuid.uuid4().hex[:8]}"
    yield name
    _delete(server, name)


def _delete(server, name):
    engine = open_engine(server.url)
    for one in (name, intents_name(name)):
        if engine.index_exists(one):
            engine.delete_index(one)
    engine.close()


@pytest.fixture(scope="module")
def pipeline():
    return make_pipeline()


def _restarts(server, seed):
    """Return what kills the server and starts it again, and how often: once in every seventh seed."""
    if not isinstance(server, LocalServer):
        return {}

    def strike():
        server.kill()
        server.start()

    return {"strike": strike, "strikes": int(seed % 7 == 0)}


def _seeds(server):
    """Return the seeds to try: 20 where CI has most time for it, one on the others."""
    most = 20 if server.kind is not None and server.kind.name == "opensearch-3" else 1
    return seeds(1, in_ci=most)


def test_one_of_each_class_is_let_in_whoever_is_killed(server, index, pipeline):
    for seed in _seeds(server):
        name, restarts = f"{index}-{seed}", _restarts(server, seed)
        trial = Trial(
            lambda: open_engine(server.url), name, pipeline, Policy("refuse"), seed, **SIZES, **restarts
        )
        assert trial.run() == {str(number): 1 for number in range(trial.classes)}, f"seed {seed}"
        _delete(server, name)


def test_exactly_so_many_of_each_class_are_let_in_as_there_are_places(server, index, pipeline):
    for seed in list(_seeds(server))[:2]:
        name, restarts = f"{index}-{seed}", _restarts(server, seed)
        policy = Policy("cap", most=2)
        trial = Trial(lambda: open_engine(server.url), name, pipeline, policy, seed, **SIZES, **restarts)
        assert trial.run() == {str(number): 2 for number in range(trial.classes)}, f"seed {seed}"
        _delete(server, name)


@pytest.mark.skipif(not texts(), reason="make gate-run does it")
def test_the_whole_run(server, index, pipeline):
    strike = _restarts(server, 0).get("strike")
    names = []

    def named(policy):
        names.append(f"{index}-{policy}")
        return names[-1]

    run_whole(server.kind.name, lambda: open_engine(server.url), pipeline, named, strike)
    for name in names:
        _delete(server, name)


def test_patterns_do_not_find_the_index_of_intents(server, index, pipeline):
    engine = open_engine(server.url)
    ensure_index(engine, index, pipeline.recipe())
    with Gate(engine, index, pipeline=pipeline) as gate:
        gate.add({"id": "a", "body": " ".join(f"word{number}" for number in range(60))})
    assert intents_name(index) not in [info.name for info in engine.indices("*")]
    with Gate(engine, index, pipeline=pipeline) as gate:
        assert gate.sweep() == 0
    engine.close()


def test_the_processor_fails_copies_on_their_way_through_a_pipeline(server, index):
    uniqueness = {"uniqueness": {"index": index, "engine": server.url, "policy": "tag"}}
    plain = make_pipeline()
    pipeline = Pipeline.from_json(
        {"processors": [{"supershingle": {"fields": ["body"]}}, uniqueness]}, plain.scheme
    )
    engine = open_engine(server.url)
    ensure_index(engine, index, replace(pipeline.recipe(), groups=True))
    body = " ".join(f"word{number}" for number in range(60))
    documents = [{"_id": id_, "body": body} for id_ in "ab"]
    first, second = pipeline.run_block(documents)
    assert first.document["dedup"]["group"] == second.document["dedup"]["group"]
    refusing = {"uniqueness": {"index": index, "engine": server.url}}
    strict = Pipeline.from_json(
        {"processors": [{"supershingle": {"fields": ["body"]}}, refusing]}, plain.scheme
    )
    (outcome,) = strict.run_block([{"_id": "c", "body": body}])
    assert "it resembles" in outcome.failure.reason
    assert engine.get(index, "c") is None
    engine.close()
