"""Gates on a server before documents that came past them, in forms that no update of a part can change."""

import time
import uuid
from collections.abc import Iterator

import pytest
from support.gate.crashes import make_pipeline
from support.gate.indices import gated_index
from support.servers.admin import ask

from shinglefold.errors import EngineError
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.gate.protocol.member import numbers_of
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.model.values import Fingerprint

pytestmark = pytest.mark.newest

BODY = " ".join(f"word{number}" for number in range(80))
SEEN = {"seen": {"type": "keyword"}}


@pytest.fixture(scope="module")
def pipeline():
    return make_pipeline()


@pytest.fixture
def piped(server) -> Iterator[dict[str, str]]:
    """The settings of an index whose documents the server takes through a pipeline, where it has any."""
    nodes = ask(server.url, "GET", "/_nodes/ingest")["nodes"].values()
    if not any(one["type"] == "set" for node in nodes for one in node["ingest"]["processors"]):
        yield {}
        return
    name = f"shinglefold-test-{uuid.uuid4().hex[:8]}"
    processors = [{"set": {"field": "seen", "value": "by the pipeline"}}]
    ask(server.url, "PUT", f"/_ingest/pipeline/{name}", {"processors": processors})
    yield {"default_pipeline": name}
    ask(server.url, "DELETE", f"/_ingest/pipeline/{name}")


@pytest.mark.parametrize("form", ["list", "dots"])
def test_who_leads_from_now_on_keeps_its_fingerprint_and_all_else(engine, pipeline, piped, form):
    (made,) = pipeline.run_block([{"_id": "old", "body": BODY}])
    parts = {**made.document["_dedup"], "group": 7, "leader": False}
    dotted = {f"_dedup.{name}": value for name, value in parts.items()}
    source = {"body": BODY, **({"_dedup": [parts]} if form == "list" else dotted)}
    with gated_index(engine, pipeline, "forms", SEEN, **piped) as index:
        by_hand = {"_op_type": "update", "_index": index, "_id": "old", "doc": {"seen": "by hand"}}
        store = {"_index": index, "_id": "old", "_source": source}
        assert not engine.bulk([store]).failures
        assert not engine.bulk([by_hand]).failures
        engine.refresh(index)
        with Gate(engine, index, Policy("tag"), pipeline=pipeline) as gate:
            told = [gate.add({"id": id_, "body": f"{BODY} {id_}"}) for id_ in ("first", "second")]
        assert [(one.group, one.leads) for one in told] == [(7, False)] * 2
        kept = engine.get(index, "old")["_source"]
    assert stored_parts(kept, "_dedup") == {**parts, "leader": True}
    assert (kept["body"], kept["seen"]) == (BODY, "by hand")


@pytest.mark.parametrize("verify", ["text", "signature"])
@pytest.mark.parametrize("action", ["refuse", "tag"])
@pytest.mark.parametrize("form", ["list", "dots", "object"])
def test_a_fingerprint_that_is_not_of_its_text_decides_nothing(engine, pipeline, form, action, verify):
    (made,) = pipeline.run_block([{"_id": "old", "body": BODY}])
    parts = {**made.document["_dedup"], "group": 7, "leader": True}
    stored = {
        "list": {"_dedup": [parts]},
        "dots": {f"_dedup.{name}": value for name, value in parts.items()},
        "object": {"_dedup": parts},
    }[form]
    others = " ".join(f"other{number}" for number in range(80))
    with gated_index(engine, pipeline, "stale", {"title": {"type": "text"}}) as index:
        store = {"_index": index, "_id": "old", "routing": "r", "_source": {"body": others, **stored}}
        assert not engine.bulk([store]).failures
        engine.refresh(index)
        with Gate(engine, index, Policy(action, verify=verify), pipeline=pipeline) as gate:
            told = [gate.add_all([{"id": id_, "body": f"{BODY} {id_}"}])[0] for id_ in ("first", "second")]
        first, second = told
        assert (first.status, first.group == 7, first.to_json()["stale"]) == ("accepted", False, 1)
        assert second.status == ("refused" if action == "refuse" else "accepted")
        assert (second.like.id if second.like else second.group) in {"first", first.group}
        kept = engine.search(index, {"query": {"ids": {"values": ["old"]}}})["hits"]["hits"][0]["_source"]
    assert kept == {"body": others, **stored}


def test_a_gate_before_an_alias_gives_the_numbers_of_the_index_behind_it(engine, server, pipeline):
    with gated_index(engine, pipeline, "named", {}) as index:
        alias = f"{index}-alias"
        ask(server.url, "POST", "/_aliases", {"actions": [{"add": {"index": index, "alias": alias}}]})
        with Gate(engine, alias, Policy("tag"), pipeline=pipeline) as gate:
            told = gate.add({"id": "empty", "body": ""})
        stored = engine.get(index, "empty")["_source"]["_dedup"]
    assert (told.group,) == numbers_of(Fingerprint.from_field(stored), (), index, "empty")


@pytest.mark.parametrize("stays", [True, False], ids=["the old index stays behind it", "it is moved"])
def test_a_gate_before_an_alias_that_comes_to_mean_another_index_refuses_to_go_on(
    engine, server, pipeline, stays
):
    with gated_index(engine, pipeline, "old", {}) as old, gated_index(engine, pipeline, "new", {}) as new:
        alias = f"{old}-alias"
        ask(server.url, "POST", "/_aliases", {"actions": [{"add": {"index": old, "alias": alias}}]})
        with Gate(engine, alias, Policy("refuse"), pipeline=pipeline) as gate:
            assert gate.add({"id": "a", "body": BODY}).status == "accepted"
            moved = [{"add": {"index": new, "alias": alias}}]
            if not stays:
                moved.append({"remove": {"index": old, "alias": alias}})
            ask(server.url, "POST", "/_aliases", {"actions": moved})
            time.sleep(1.1)
            with pytest.raises(
                EngineError, match=f"'{alias}' meant the index '{old}' .* now means {new}, as"
            ):
                gate.add(
                    {"id": "b", "body": "Something else that nobody has told before, and at some length"}
                )
        assert engine.get(old, "b") is None
        with Gate(engine, new, Policy("refuse"), pipeline=pipeline) as gate:
            assert gate.add({"id": "b", "body": BODY}).status == "accepted"
