"""Gates in front of an index on a real server: writers are killed, and nothing slips in twice."""

import uuid
from dataclasses import replace

import pytest
from support.gate.crashes import Trial, make_pipeline, seeds

from shinglefold.engines import open_engine
from shinglefold.groups import Gate, Policy
from shinglefold.groups.gate.intents import intents_name
from shinglefold.ingest import Pipeline, ensure_index


@pytest.fixture
def index(server):
    name = f"gate-{uuid.uuid4().hex[:8]}"
    yield name
    engine = open_engine(server.url)
    for one in (name, intents_name(name)):
        if engine.index_exists(one):
            engine.delete_index(one)
    engine.close()


@pytest.mark.parametrize("seed", seeds(1))
def test_one_of_each_class_is_let_in_whoever_is_killed(server, index, seed):
    trial = Trial(lambda: open_engine(server.url), index, make_pipeline(), Policy("refuse"), seed)
    assert trial.run() == {str(number): 1 for number in range(trial.classes)}


def test_exactly_so_many_of_each_class_are_let_in_as_there_are_places(server, index):
    policy = Policy("cap", most=2)
    trial = Trial(
        lambda: open_engine(server.url),
        index,
        make_pipeline(),
        policy,
        0,
        classes=4,
        copies=5,
        writers=4,
        kills=3,
    )
    assert trial.run() == {str(number): 2 for number in range(4)}


def test_patterns_do_not_find_the_index_of_intents(server, index):
    pipeline = make_pipeline()
    Trial(
        lambda: open_engine(server.url), index, pipeline, Policy("refuse"), 0, classes=1, copies=1, kills=0
    ).run()
    engine = open_engine(server.url)
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
