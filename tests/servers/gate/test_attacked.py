"""What a gate meets on a server beside other gates: routing, blocks, deletions, pipelines, long waits."""

import threading
import time
import uuid
from dataclasses import replace

import pytest
from support.gate.moved import text_of as _text

from shinglefold.errors import ConfigError, EngineError, IndexReadOnly, Refused, UnsupportedQuery
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.intent_index import intents_name
from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.ingest.index_mapping import ensure_index, new_mappings
from shinglefold.maintenance import BackfillOptions, backfill

pytestmark = pytest.mark.newest

_SCOPES = {"host": {"type": "keyword"}, "year": {"type": "integer"}, "day": {"type": "date"}}
_SCOPES |= {
    "from": {"type": "ip"},
    "new": {"type": "boolean"},
    "short": {"type": "keyword", "ignore_above": 3},
    # What servers make of a text that nobody mapped.
    "site": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
    "pages": {"properties": {"host": {"type": "keyword"}}},
}


@pytest.fixture
def index(gated):
    with gated(_SCOPES) as name:
        yield name


@pytest.fixture
def opened(engine, index, pipeline):
    return lambda *rules, **more: Gate(engine, index, Policy(*rules, **more), pipeline=pipeline)


@pytest.fixture
def stored(engine, index, pipeline):
    """Return what stores documents past every gate: a text under many ids, with what is beside it."""

    def store(body, *beside):
        (outcome,) = pipeline.run_block([{"_id": "x", "body": body}])
        source = {name: value for name, value in outcome.document.items() if name != "_id"}
        made = [{"_index": index, "_source": source | more.pop("_source", {}), **more} for more in beside]
        assert not engine.bulk(made).failures
        engine.refresh(index)

    return store


def test_documents_stored_under_a_routing_are_seen(opened, stored):
    stored(_text("a"), *({"_id": f"s{number}", "routing": f"r{number}"} for number in range(6)))
    given = {"id": "new", "body": _text("a", 1)}
    with opened() as gate, pytest.raises(Refused, match="it resembles 's") as refused:
        gate.add(given)
    with opened() as gate:
        (passage,) = gate.passages(given, refused.value.like)
    assert passage["equal_tokens"] == 119


def test_a_document_is_let_in_under_its_routing(opened, engine, index):
    with opened("tag") as gate:
        first = gate.add({"id": "a", "_routing": "here", "body": _text("a")})
        second = gate.add({"id": "b", "_routing": "there", "body": _text("a", 1)})
        again = gate.add({"id": "a", "_routing": "here", "body": _text("a", 2)})
    assert (first.id, second.id, second.group, again.replaced) == ("a", "b", first.group, True)
    hits = engine.search(index, {"query": {"match_all": {}}})["hits"]["hits"]
    assert {(hit["_id"], hit["_routing"]) for hit in hits} == {("a", "here"), ("b", "there")}


def test_copies_of_other_scopes_hide_none(opened, stored):
    stored(_text("a"), *({"_id": f"s{at}", "_source": {"host": f"h{at}"}} for at in range(1300)))
    with opened("refuse", scope=("host",)) as gate:
        given = [{"id": f"n{at}", "body": _text("a", 1), "host": f"h{at}"} for at in range(0, 1301, 100)]
        told = [verdict.status for verdict in gate.add_all(given)]
    assert told == ["refused"] * 13 + ["accepted"]


@pytest.mark.parametrize(
    ("scope", "one", "other"),
    [("host", True, "true"), ("year", "5", 5), ("new", "true", True), ("from", "0:0:0:0:0:0:0:1", "::1")],
)
def test_values_of_a_scope_are_those_of_the_index(opened, scope, one, other):
    with opened("refuse", scope=(scope,)) as gate:
        gate.add({"id": "a", "body": _text("a"), scope: one})
        with pytest.raises(Refused, match="it resembles 'a'"):
            gate.add({"id": "b", "body": _text("a", 1), scope: other})
        gate.refresh()
        with pytest.raises(Refused, match="it resembles 'a'"):
            gate.add({"id": "c", "body": _text("a", 1), scope: other})


@pytest.mark.parametrize(
    ("scope", "one", "other"),
    [
        ("site.keyword", {"site": "a"}, {"site": "b"}),
        ("site.keyword", {"site": ["c", "a"]}, {"site": "a"}),
        ("pages.host", {"pages": [{"host": "a"}, {"host": "c"}]}, {"pages": {"host": "a"}}),
        ("pages.host", {"pages.host": "a"}, {"pages": [{"host": "b"}]}),
    ],
)
@pytest.mark.parametrize("policy", ["refuse", "tag"])
def test_a_scope_is_read_wherever_documents_have_it(opened, engine, index, scope, one, other, policy):
    def copy_of(id_, part):
        return {"id": id_, "body": _text("a", int(id_)), **part}

    with opened(policy, scope=(scope,)) as gate, opened(policy, scope=(scope,)) as beside:
        told = gate.add_all([copy_of("0", one), copy_of("1", other), copy_of("2", one)])
        told += beside.add_all([copy_of("3", other)])
        gate.refresh()
        told += beside.add_all([copy_of("4", one)])
    if policy == "refuse":
        assert [verdict.like and verdict.like.id for verdict in told] == [None, None, "0", "1", "0"]
    else:
        groups = [verdict.group for verdict in told]
        assert [groups.index(group) for group in groups] == [0, 1, 0, 1, 0]
        assert regroup(engine, index, RegroupOptions(scope=(scope,))).counts.planned == 0


def test_a_scope_that_cannot_be_compared_is_refused(opened):
    with pytest.raises(ConfigError, match="'day' is of type date; name a keyword"):
        opened("refuse", scope=("day",))
    with (
        opened("refuse", scope=("short",)) as gate,
        pytest.raises(Refused, match="values of 3 at most"),
    ):
        gate.add({"id": "a", "body": _text("a"), "short": "longer"})


@pytest.mark.parametrize("hidden", ["_dedup", "host", "*.digest", "secret"])
def test_an_index_whose_source_leaves_out_anything_is_refused(engine, pipeline, new_index, hidden):
    # A stored document that is to lead is updated, at which it would no longer be found by what is left out.
    recipe = replace(pipeline.recipe(), groups=True)
    name = new_index(new_mappings(recipe) | {"_source": {"excludes": [hidden]}}, {})
    for policy in (Policy("refuse"), Policy("tag"), Policy("cap", most=2)):
        with pytest.raises(ConfigError, match=r"omits fields \(excludes: .*\), and an update would"):
            Gate(engine, name, policy, pipeline=pipeline)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"mapping.source.mode": "synthetic"}, "its _source is rebuilt from the fields"),
        ({"mode": "logsdb"}, "'logsdb', in which every document needs a time"),
        (
            {"mode": "logsdb", "mapping.source.mode": "stored"},
            "'logsdb', in which every document needs a time",
        ),
    ],
)
def test_an_index_of_a_mode_that_keeps_no_places_or_no_sources_is_refused(
    engine, pipeline, new_index, settings, said
):
    if engine.info()["distribution"] != "elasticsearch":
        pytest.skip("has no such modes")
    mapped = new_mappings(pipeline.recipe(), {"@timestamp": {"type": "date"}})
    name = new_index(mapped, {"index": settings})
    with pytest.raises(ConfigError, match=said):
        Gate(engine, name, Policy("refuse"), pipeline=pipeline)


def test_an_index_whose_documents_stay_as_they_are_is_refused_before_places_are_kept(
    engine, pipeline, new_index
):
    try:
        name = new_index(new_mappings(pipeline.recipe()), {"index": {"append_only.enabled": True}})
    except UnsupportedQuery:
        pytest.skip("has no such indices")
    with pytest.raises(ConfigError, match=r"can't be updated \(index.append_only"):
        Gate(engine, name, Policy("refuse"), pipeline=pipeline)
    assert engine.search(name, {"size": 0})["hits"]["total"]["value"] == 0
    with pytest.raises(ConfigError, match=r"index\.append_only"):
        backfill(engine, name, pipeline, BackfillOptions(workers=1))


def test_a_field_that_a_strict_mapping_lacks_is_told_with_the_remedy(engine, pipeline, new_index):
    name = new_index(new_mappings(pipeline.recipe(), {"body": {"type": "text"}}) | {"dynamic": "strict"})
    with Gate(engine, name, Policy("refuse"), pipeline=pipeline) as gate:
        (verdict,) = gate.add_all([{"_id": "a", "body": _text("a"), "host": "a.org"}])
    assert verdict.status == "failed"
    assert "strict and has no field [" in verdict.reason
    assert engine.search(name, {"size": 0})["hits"]["total"]["value"] == 0


def test_documents_without_a_number_count_and_join(opened, stored, engine, index):
    stored(_text("a"), {"_id": "one"}, {"_id": "two"})
    with opened("cap", most=2) as gate, pytest.raises(Refused, match="whose group has 2 documents already"):
        gate.add({"id": "new", "body": _text("a", 1)})
    with opened("cap", most=3) as gate:
        joined = gate.add({"id": "new", "body": _text("a", 1)})
        with pytest.raises(Refused, match="3 documents already"):
            gate.add({"id": "more", "body": _text("a", 2)})
    leaders = [engine.get(index, id_)["_source"]["_dedup"].get("leader") for id_ in ("one", "two", "new")]
    assert sorted(map(bool, leaders)) == [False, False, True]
    assert not joined.leads


def test_a_leader_is_found_among_a_thousand_that_share_more(opened, stored):
    with opened("tag") as gate:
        group = gate.add({"id": "lead", "body": _text("a")}).group
        dedup = {"group": group, "leader": False}
        (outcome,) = gate.pipeline.run_block([{"_id": "x", "body": _text("a", 9)}])
        given = {"_dedup": outcome.document["_dedup"] | dedup}
        stored(_text("a", 9), *({"_id": f"s{at}", "_source": given} for at in range(1100)))
        verdict = gate.add({"id": "new", "body": _text("a", 9)})
    assert (verdict.group, verdict.leads) == (group, False)


def test_an_id_that_no_server_takes_fails_alone(opened):
    with opened() as gate:
        given = [{"id": id_, "body": _text(id_[:3])} for id_ in ("one", "я" * 300, "two")]
        told = gate.add_all(given)
    assert [verdict.status for verdict in told] == ["accepted", "failed", "accepted"]
    assert "600 bytes" in told[1].reason


def test_a_block_is_told_at_once_with_its_remedy(opened, engine, index):
    for block in ("read_only_allow_delete", "write"):
        with opened() as gate:
            _set(engine, index, block, True)
            with pytest.raises(IndexReadOnly, match="null"):
                gate.add({"id": block, "body": _text(block)})
            _set(engine, index, block, None)
            assert gate.add({"id": block, "body": _text(block)}).status == "accepted"


def _set(engine, index, block, value):
    engine._client.indices.put_settings(index=index, body={"index": {"blocks": {block: value}}})


def test_an_index_that_is_deleted_and_made_again_is_noticed(opened, engine, index, pipeline):
    gate = opened()
    gate.add({"id": "a", "body": _text("a")})
    engine.delete_index(index)
    ensure_index(engine, index, pipeline.recipe())
    time.sleep(1.1)
    with pytest.raises(EngineError, match="was deleted while a gate was open"):
        gate.add({"id": "b", "body": _text("b")})
    with opened() as another:
        assert another.add({"id": "b", "body": _text("b")}).status == "accepted"


def test_a_deleted_index_is_told_by_the_first_call_that_fails(opened, engine, index):
    gate = opened()
    gate.add({"id": "a", "body": _text("a")})
    engine.delete_index(index)
    with pytest.raises(EngineError, match="was deleted while a gate was open"):
        gate.add({"id": "b", "body": _text("b")})


@pytest.mark.parametrize("made_again", [False, True], ids=["gone", "made by the server"])
def test_notes_that_are_deleted_are_told_and_those_that_a_server_made_are_refused(
    opened, engine, index, made_again
):
    with (  # noqa: PT012 - what is raised has to pass the end of the gate, too
        pytest.raises(EngineError, match=r"publish their intents, was deleted .* open another gate"),
        opened() as gate,
    ):
        gate.add({"id": "a", "body": _text("a")})
        engine.delete_index(intents_name(index))
        if made_again:
            # As it happens to what a gate writes before it looks: servers make what is missing.
            engine._client.index(index=intents_name(index), id="x", body={"claims": {"x": 1}})
        time.sleep(1.1)
        gate.add({"id": "b", "body": _text("b")})
    if made_again:
        with pytest.raises(ConfigError, match="was created by the server"):
            opened()
        engine.delete_index(intents_name(index))
    with opened() as another:
        assert another.add({"id": "b", "body": _text("b")}).status == "accepted"


def test_a_data_stream_is_refused_with_the_reason(engine, pipeline):
    from shinglefold.grouping.gate.opening import concrete_index

    name = f"streamed-{uuid.uuid4().hex[:8]}"
    try:
        engine._client.indices.put_index_template(
            name=name, body={"index_patterns": [name], "data_stream": {}, "template": {}}
        )
        engine._client.indices.create_data_stream(name=name)
    except Exception:
        pytest.skip("a server without data streams")
    try:
        with pytest.raises(ConfigError, match="is a data stream"):
            concrete_index(engine, name)
    finally:
        engine._client.indices.delete_data_stream(name=name)
        engine._client.indices.delete_index_template(name=name)


def test_who_waits_for_the_dead_keeps_no_other_waiting(opened, engine, index):
    """A place is kept by a writer that is gone, and one caller wants it, who goes on once it is free."""
    with opened() as gate:
        late = int(time.time() * 1000) + 600_000
        engine.bulk(
            [{"_index": index, "_id": "kept", "_source": {"_dedup": {"pending": late, "attempt": "x"}}}]
        )
        told = {}

        def add(id_):
            told[id_] = gate.add({"id": id_, "body": _text(id_)}).status

        threads = [threading.Thread(target=add, args=(id_,)) for id_ in ("kept", "one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads[1:]:
            thread.join()
        add("three")
        assert told == dict.fromkeys(("one", "two", "three"), "accepted")
        engine.bulk([{"_op_type": "delete", "_index": index, "_id": "kept"}])
        threads[0].join()
    assert told["kept"] == "accepted"


def test_a_closed_gate_says_so_and_refreshing_disturbs_nobody(opened):
    gate = opened()
    failed = []

    def refresh():
        try:
            for _ in range(30):
                gate.refresh()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=refresh) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(30):
        gate.add({"id": f"{number}", "body": _text(number)})
    for thread in threads:
        thread.join()
    gate.close()
    gate.close()
    assert not failed
    with pytest.raises(EngineError, match="closed: open another"):
        gate.add({"id": "a", "body": _text("a")})


def test_a_head_without_intents_that_the_dead_left_is_cleared_away(engine, index, pipeline):
    left = Gate(engine, index, pipeline=pipeline, lease=0.2)
    left.add({"id": "a", "body": _text("a")})
    left.refresh()
    time.sleep(0.6)
    with Gate(engine, index, pipeline=pipeline, lease=0.2) as gate:
        for number in range(4):
            gate.add({"id": f"{number}", "body": _text(number)})
            time.sleep(0.6)
        heads = engine.get(intents_name(index), "writers")["_source"]["names"]
    assert len(heads) == 1
