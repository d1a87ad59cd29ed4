"""Gates of different policies before one index, and what they let in at the same moment."""

from dataclasses import replace

import pytest
from support.gate.moved import moved_words
from support.gate.moved import text_of as _text

from shinglefold.errors import ConfigError, Refused
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.numbering import Numbering
from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.grouping.rules import Rules
from shinglefold.ingest import index_documents

pytestmark = pytest.mark.newest

_FIELDS = {
    "host": {"type": "keyword"},
    "new": {"type": "boolean"},
    "from": {"type": "ip"},
    "day": {"type": "date"},
}


@pytest.fixture
def index(gated):
    with gated(_FIELDS, refresh_interval="-1") as name:
        yield name


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"scope": ("host",)}),
        ({}, {"verify": "keywords"}),
        ({}, {"measure": "containment"}),
        ({}, {"min_similarity": 0.7}),
        ({"scope": ("new",)}, {"scope": ("host",)}),
        ({"verify": "signature"}, {"verify": "keywords"}),
        ({"action": "tag"}, {"measure": "containment"}),
    ],
)
def test_what_a_gate_of_another_policy_has_let_in_a_moment_ago_is_seen(
    engine, index, pipeline, first, second
):
    one, other = (Gate(engine, index, Policy(**rules), pipeline=pipeline) for rules in (first, second))
    with one, other:
        one.add({"id": "a", "body": _text("a"), "host": "h", "new": True})
        with pytest.raises(Refused, match="it resembles 'a'"):
            other.add({"id": "b", "body": _text("a", 1), "host": "h", "new": True})


def test_another_value_of_a_scope_is_let_in_whatever_the_other_gate_asks(engine, index, pipeline):
    loose, strict = (Gate(engine, index, Policy(scope=scope), pipeline=pipeline) for scope in ((), ("host",)))
    with loose, strict:
        loose.add({"id": "a", "body": _text("a"), "host": "h"})
        assert strict.add({"id": "b", "body": _text("a", 1), "host": "other"}).status == "accepted"
        with pytest.raises(Refused):
            loose.add({"id": "c", "body": _text("a", 2), "host": "third"})


def test_a_text_that_holds_another_is_refused_whichever_comes_first(engine, index, pipeline):
    whole = _text("a", words=200)
    part = " ".join(whole.split()[:120])
    for first, second in ((whole, part), (part, whole)):
        with Gate(engine, index, Policy(measure="containment"), pipeline=pipeline) as gate:
            gate.add({"id": "one", "body": first})
            with pytest.raises(Refused, match="containment"):
                gate.add({"id": "other", "body": second})
            batch = [{"id": "one", "body": first}, {"id": "other", "body": second}]
            assert [verdict.status for verdict in gate.add_all(batch)] == ["accepted", "refused"]
            gate.refresh()
            with pytest.raises(Refused, match="containment"):
                gate.add({"id": "other", "body": second})
        engine.delete_by_query(index, {"match_all": {}})
        engine.refresh(index)


def test_a_batch_that_founds_a_group_takes_no_place_too_many(engine, index, pipeline):
    with Gate(engine, index, Policy("cap", most=51), pipeline=pipeline) as gate:
        told = gate.add_all([{"id": f"{at}", "body": _text("a", at % 9)} for at in range(52)])
    assert [one.status for one in told] == ["accepted"] * 51 + ["refused"]


@pytest.mark.parametrize(
    ("scope", "one", "other"),
    [("new", "true", True), ("from", "0:0:0:0:0:0:0:1", "::1"), ("host", True, "true")],
)
def test_numbers_at_insert_compare_values_of_a_scope_as_the_index_has_them(
    engine, index, pipeline, scope, one, other
):
    for at, value in enumerate((one, other)):
        recipe = replace(pipeline.recipe(), groups=True)
        numbering = Numbering(engine, index, recipe, rules=Rules(scope=(scope,)))
        documents = [{"id": f"{at}", "body": _text("a", at), scope: value}]
        index_documents(engine, index, documents, pipeline, workers=1, groups=numbering)
    hits = engine.search(index, {"query": {"match_all": {}}})["hits"]["hits"]
    assert len({hit["_source"]["_dedup"]["group"] for hit in hits}) == 1
    assert regroup(engine, index).counts.planned == 0
    with pytest.raises(ConfigError, match="'day' is of type date; name a keyword"):
        Numbering(engine, index, recipe, rules=Rules(scope=("day",)))
    with pytest.raises(ConfigError, match="'day' is of type date; name a keyword"):
        regroup(engine, index, RegroupOptions(scope=("day",)))


@pytest.mark.parametrize("linkage", ["leader", "connected"])
def test_texts_of_several_shards_and_routings_decide_when_groups_are_made_anew(
    engine, index, pipeline, linkage
):
    texts = moved_words()
    outcomes = pipeline.run_block([{"_id": f"{at}", "body": texts[at % 2]} for at in range(8)])
    sources = [{k: v for k, v in one.document.items() if k != "_id"} for one in outcomes]
    routed = [{} if at < 4 else {"routing": f"r{at}"} for at in range(8)]
    actions = [
        {"_index": index, "_id": f"{at % 4}", "_source": source, **routing}
        for at, (source, routing) in enumerate(zip(sources, routed, strict=True))
    ]
    assert not engine.bulk(actions).failures
    summary = regroup(engine, index, RegroupOptions(linkage))
    assert (summary.settled, summary.counts.groups, summary.counts.by_signature) == (True, 1, 0)
    apart = regroup(engine, index, RegroupOptions(linkage, verify="signature"))
    assert (apart.counts.groups, apart.counts.by_text) == (2, 0)
