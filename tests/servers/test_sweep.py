"""doctor --fix removes the placeholders of crashed writers, and leaves those of running ones."""

import json
import time
import uuid

import pytest
from support.gate.crashes import make_pipeline
from support.servers.server import blocked

from shinglefold.engines.http.engine import HttpEngine
from shinglefold.grouping import Gate
from shinglefold.grouping.intent_index import intents_name
from shinglefold.ingest.index_mapping import ensure_index


@pytest.fixture
def index(engine):
    """An index with a document, two expired placeholders (one with a routing), and one of a running gate."""
    name = f"swept-{uuid.uuid4().hex[:8]}"
    pipeline = make_pipeline()
    ensure_index(engine, name, pipeline.recipe(), settings={"index": {"number_of_shards": 3}})
    with Gate(engine, name, pipeline=pipeline) as gate:
        gate.add({"id": "whole", "body": " ".join(f"w{number}" for number in range(80))})
    then, later = int(time.time() * 1000) - 5000, int(time.time() * 1000) + 60_000
    places = [("dead", then, {}), ("far", then, {"routing": "x"}), ("alive", later, {})]
    for id_, until, beside in places:
        source = {"_dedup": {"pending": until, "attempt": "a"}}
        engine.bulk([{"_index": name, "_id": id_, "_source": source, **beside}])
    engine.refresh(name)
    yield name
    for one in (name, intents_name(name)):
        engine.delete_index(one)


def test_what_dead_writers_left_is_shown_and_removed(run, engine, index):
    def told(*arguments):
        code, out, _ = run(*arguments)
        assert code == 0
        return out

    assert f"shinglefold doctor {index} --fix" in told("stats", index)
    found = json.loads(told("doctor", index, "--json"))
    assert (found["findings"]["placeholder"], "removed" in found) == (3, False)
    removed = json.loads(told("doctor", index, "--fix", "--json"))
    assert {place["_id"] for place in removed["removed"]} == {"dead", "far"}
    assert removed["findings"]["placeholder"] == 1
    assert "removed 0 placeholders" in told("doctor", index, "--fix")
    engine.refresh(index)
    left = {hit["_id"] for hit in engine.search(index, {"size": 9})["hits"]["hits"]}
    assert left == {"whole", "alive"}


def test_what_others_are_faster_with_is_not_said_to_be_removed(run, server, index, monkeypatch):
    written = HttpEngine.write

    def late(self, actions, **options):
        """Write when somebody else has."""
        for id_, beside in (("dead", ""), ("far", "?routing=x")):
            held = {"_dedup": {"pending": int(time.time() * 1000) - 4000, "attempt": "b"}}
            server.ask("PUT", f"/{index}/_doc/{id_}{beside}", held)
        return written(self, actions, **options)

    monkeypatch.setattr(HttpEngine, "write", late)
    code, out, err = run("doctor", index, "--fix")
    assert (code, "removed 0 placeholders" in out) == (3, True)
    assert "2 placeholders could not be removed: " in err
    assert "version conflict" in err


def test_a_block_is_told_with_what_lifts_it(run, server, index):
    with blocked(server, index, "write"):
        code, _, err = run("doctor", index, "--fix")
    assert (code, "set index.blocks.* of the index to null" in err) == (1, True)
