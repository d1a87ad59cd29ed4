"""Gates on a server before documents that came past them, in forms that no update of a part can change."""

import time

import pytest
from support.maintenance import put
from support.servers.admin import ask, ingest_processors
from support.servers.server import add_alias

from shinglefold.errors import EngineError
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.gate.protocol.pending_document import numbers_of
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.model.values import Fingerprint

pytestmark = pytest.mark.newest

BODY = " ".join(f"word{number}" for number in range(80))
SEEN = {"seen": {"type": "keyword"}}


@pytest.mark.parametrize("form", ["list", "dots"])
def test_who_leads_from_now_on_keeps_its_fingerprint_and_all_else(
    server, engine, pipeline, gated, request, form
):
    (made,) = pipeline.run_block([{"_id": "old", "body": BODY}])
    parts = {**made.document["_dedup"], "group": 7, "leader": False}
    dotted = {f"_dedup.{name}": value for name, value in parts.items()}
    source = {"body": BODY, **({"_dedup": [parts]} if form == "list" else dotted)}
    settings = {}
    if "set" in ingest_processors(server.url):
        processor = {"set": {"field": "seen", "value": "by the pipeline"}}
        settings = {"default_pipeline": request.getfixturevalue("ingest_pipeline")(processor)}
    with gated(SEEN, **settings) as index:
        by_hand = {"_op_type": "update", "_index": index, "_id": "old", "doc": {"seen": "by hand"}}
        put(engine, index, {"old": source})
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
def test_a_fingerprint_that_is_not_of_its_text_decides_nothing(engine, pipeline, gated, form, action, verify):
    (made,) = pipeline.run_block([{"_id": "old", "body": BODY}])
    parts = {**made.document["_dedup"], "group": 7, "leader": True}
    stored = {
        "list": {"_dedup": [parts]},
        "dots": {f"_dedup.{name}": value for name, value in parts.items()},
        "object": {"_dedup": parts},
    }[form]
    others = " ".join(f"other{number}" for number in range(80))
    with gated({"title": {"type": "text"}}) as index:
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


def test_a_gate_before_an_alias_gives_the_numbers_of_the_index_behind_it(engine, server, pipeline, gated):
    with gated() as index:
        alias = f"{index}-alias"
        add_alias(server, alias, index)
        with Gate(engine, alias, Policy("tag"), pipeline=pipeline) as gate:
            told = gate.add({"id": "empty", "body": ""})
        stored = engine.get(index, "empty")["_source"]["_dedup"]
    assert (told.group,) == numbers_of(Fingerprint.from_field(stored), (), index, "empty")


@pytest.mark.parametrize("stays", [True, False], ids=["the old index stays behind it", "it is moved"])
def test_a_gate_before_an_alias_that_comes_to_mean_another_index_refuses_to_go_on(
    engine, server, pipeline, gated, stays
):
    with gated() as old, gated() as new:
        alias = f"{old}-alias"
        add_alias(server, alias, old)
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
