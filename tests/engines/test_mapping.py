"""Mappings and how they grow."""

import math
from pathlib import Path

import pytest
from support.one_document import count, index_one

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import EngineError, EngineUnavailable, IndexExists, UnsupportedQuery


def test_strings_that_are_dates_become_dates(engine):
    assert index_one(engine, {"when": "2024-05-31", "year": "2024", "words": "on 2024-05-31"}) == []
    types = {name: own["type"] for name, own in engine.mappings("pages")["properties"].items()}
    assert types == {"when": "date", "year": "text", "words": "text"}


def test_date_detection_can_be_switched_off(engine):
    assert index_one(engine, {"when": "2024-05-31"}, date_detection=False) == []
    assert engine.mappings("pages")["properties"]["when"]["type"] == "text"


def test_names_with_dots_are_paths(engine):
    assert index_one(engine, {"a.b": "one", "a": {"c": "two"}}) == []
    assert engine.mappings("pages")["properties"]["a"]["properties"].keys() == {"b", "c"}
    assert count(engine, {"match": {"a.b": "one"}}) == 1
    assert engine.get("pages", "1")["_source"] == {"a.b": "one", "a": {"c": "two"}}
    body = {"docvalue_fields": ["a.*"], "_source": ["a.b"]}
    (hit,) = engine.search("pages", body)["hits"]["hits"]
    assert hit["fields"] == {"a.b.keyword": ["one"], "a.c.keyword": ["two"]}
    assert hit["_source"] == {"a.b": "one"}


def test_lists_of_objects_are_searched_as_one(engine):
    assert index_one(engine, {"parts": [{"n": 1, "t": "one"}, {"n": 2, "t": "two"}, None, []]}) == []
    assert count(engine, {"term": {"parts.n": 2}}) == 1
    (hit,) = engine.search("pages", {"docvalue_fields": ["parts.n"], "_source": False})["hits"]["hits"]
    assert hit["fields"] == {"parts.n": [1, 2]}
    assert count(engine, {"bool": {"must": [{"term": {"parts.n": 1}}, {"match": {"parts.t": "two"}}]}}) == 1


def test_nulls_and_empty_lists_are_no_values(engine):
    assert index_one(engine, {"a": None, "b": [], "c": [None, 1]}) == []
    assert engine.mappings("pages")["properties"].keys() == {"c"}
    assert count(engine, {"exists": {"field": "a"}}) == 0
    assert engine.get("pages", "1")["_source"] == {"a": None, "b": [], "c": [None, 1]}


@pytest.mark.parametrize(
    ("dynamic", "refused", "mapped"), [(True, 0, True), ("false", 0, False), ("strict", 1, False)]
)
def test_dynamic_decides_what_happens_to_new_fields(engine, dynamic, refused, mapped):
    reasons = index_one(
        engine, {"known": 1, "new": 2}, dynamic=dynamic, properties={"known": {"type": "long"}}
    )
    assert len(reasons) == refused
    assert ("new" in engine.mappings("pages")["properties"]) is mapped
    if not refused:
        assert engine.get("pages", "1")["_source"] == {"known": 1, "new": 2}


def test_disabled_objects_are_kept_unread(engine):
    raw = {"properties": {"raw": {"type": "object", "enabled": False}}}
    assert index_one(engine, {"raw": {"a": {"b": [1, "x", {}]}}}, **raw) == []
    assert engine.mappings("pages") == {**raw}
    assert engine.get("pages", "1")["_source"]["raw"] == {"a": {"b": [1, "x", {}]}}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("long", "many"),
        ("long", True),
        ("long", 2**63),
        ("byte", 128),
        ("double", "x"),
        ("double", {"a": 1}),
        ("boolean", 1),
        ("date", "yesterday"),
        ("date", "2024-13-01"),
        ("binary", "ä"),
        ("keyword", {"a": 1}),
        ("keyword", "x" * 40_000),
        ("object", "x"),
    ],
)
def test_values_that_do_not_fit_are_refused_by_name(engine, kind, value):
    reasons = index_one(engine, {"field": value}, properties={"field": {"type": kind}})
    assert len(reasons) == 1
    assert "'field'" in reasons[0]
    assert engine.get("pages", "1") is None


@pytest.mark.parametrize(
    ("kind", "value", "query"),
    [
        ("long", "17", {"term": {"field": 17}}),
        ("long", 17.9, {"term": {"field": 17}}),
        ("long", -(2**63), {"range": {"field": {"lt": 0}}}),
        ("double", "1e3", {"term": {"field": 1000}}),
        ("boolean", "true", {"term": {"field": True}}),
        ("date", 1717113600000, {"term": {"field": "2024-05-31"}}),
        ("date", "2024-05-31T02:00:00+02:00", {"term": {"field": 1717113600000}}),
        ("keyword", 17, {"term": {"field": "17"}}),
        ("keyword", True, {"term": {"field": "true"}}),
        ("keyword", "", {"term": {"field": ""}}),
        ("keyword", "a b\tc", {"prefix": {"field": "a b\t"}}),
    ],
)
def test_values_are_read_as_the_servers_read_them(engine, kind, value, query):
    assert index_one(engine, {"field": value}, properties={"field": {"type": kind}}) == []
    assert count(engine, query) == 1


@pytest.mark.parametrize(
    "source",
    [
        {"a": math.nan},
        {"a": math.inf},
        {"a": {1, 2}},
        {"": 1},
        {"..": 1},
        {"a": b"bytes"},
        ["no object"],
        {"a": 1, "a.b": 2},
        {"a": 10**400},
    ],
)
def test_what_is_no_document_is_refused(engine, source):
    assert len(index_one(engine, source)) == 1
    assert engine.mappings("pages")["properties"] == {}


def test_a_deep_document_is_refused(engine):
    deep: dict = {}
    for _ in range(500):
        deep = {"a": deep}
    assert "nested deeper" in index_one(engine, deep)[0]


@pytest.mark.parametrize(
    "text", ["nul \0 here", "lone \ud800 surrogate", "\U0001f600 🇺🇦", "\ufeff", "x" * 70_000]
)
def test_any_text_is_kept_as_it_was(engine, text):
    source = {"body": text, "inner": {"body": text}}
    properties = {name: {"type": "text"} for name in ("body",)}
    assert index_one(engine, source, properties=properties) == []
    assert engine.get("pages", "1")["_source"] == source
    assert engine.search("pages", {})["hits"]["hits"][0]["_source"] == source
    assert count(engine, {"match": {"body": text}}) in (0, 1)


def test_keywords_too_long_for_their_limit_are_stored_only(engine):
    properties = {"tag": {"type": "keyword", "ignore_above": 3}}
    assert index_one(engine, {"tag": ["abc", "abcd"]}, properties=properties) == []
    assert count(engine, {"term": {"tag": "abc"}}) == 1
    assert count(engine, {"term": {"tag": "abcd"}}) == 0
    (hit,) = engine.search("pages", {"docvalue_fields": ["tag"]})["hits"]["hits"]
    assert (hit["fields"], hit["_source"]) == ({"tag": ["abc"]}, {"tag": ["abc", "abcd"]})


def test_mappings_may_name_any_number_of_fields(engine):
    properties = {f"n{number}": {"type": "long"} for number in range(200)}
    assert index_one(engine, {"n199": 7, "new": 8}, properties=properties) == []
    assert count(engine, {"term": {"n199": 7}}) == 1
    assert count(engine, {"term": {"new": 8}}) == 1


@pytest.mark.parametrize(
    ("mappings", "said"),
    [
        ({"propertys": {}}, "'properties'"),
        ({"properties": {"a": {"type": "keywrd"}}}, "'keyword'"),
        ({"properties": {"a": {"type": "text", "analyzer": "russian"}}}, "canonicalizer"),
        ({"properties": {"a": {"type": "keyword", "ignore_abov": 1}}}, "'ignore_above'"),
        ({"properties": {"a": {"type": "nested"}}}, "Supported: "),
        ({"properties": {"a": {"type": "date", "format": "yyyy"}}}, "epoch_millis"),
        ({"properties": {"a": {"type": "keyword", "index": "no"}}}, "true or false"),
        ({"dynamic": "runtime"}, "strict"),
    ],
)
def test_mappings_it_has_not_are_refused_with_the_nearest_it_has(engine, mappings, said):
    with pytest.raises(UnsupportedQuery, match=said):
        engine.create_index("pages", mappings, {})
    assert not engine.index_exists("pages")


@pytest.mark.parametrize(
    "name", ["", "Upper", "a b", "a/b", "../x", ".hidden", "_x", "-x", "a,b", "a*", "a\nb"]
)
def test_names_the_servers_refuse_are_refused(engine, name):
    with pytest.raises(EngineError, match=r"not a valid index name|names several indices"):
        engine.create_index(name, {}, {})


@pytest.mark.parametrize(
    ("given", "named"),
    [("new*", "news, newsletters"), ("pages,news,gone", "news, pages"), ("x*", "news, newsl")],
)
def test_a_pattern_where_one_index_is_meant_names_those_it_means(engine, given, named):
    for name in ("news", "newsletters", "pages"):
        engine.create_index(name, {}, {})
    with pytest.raises(UnsupportedQuery, match=f"several indices, .* one at a time: name one of {named}"):
        engine.search(given, {"query": {"match_all": {}}})


def test_a_pattern_where_no_index_is_says_that_one_is_meant(engine):
    with pytest.raises(UnsupportedQuery, match=r"one at a time: name one$"):
        engine.search("news*", {"query": {"match_all": {}}})


def test_settings_are_checked(engine):
    with pytest.raises(UnsupportedQuery, match="number_of_shards"):
        engine.create_index("pages", {}, {"number_of_shard": 1})
    engine.create_index("pages", {}, {"index": {"number_of_replicas": 0}})
    with pytest.raises(IndexExists):
        engine.create_index("pages", {}, {})


def test_lists_without_an_end_are_refused(engine):
    engine.create_index("pages", {}, {})
    deep: object = "word"
    for _ in range(3_000):
        deep = [deep]
    (failure,) = engine.bulk([{"_index": "pages", "_id": "1", "_source": {"list": deep}}]).failures
    assert (failure.status, "nested too deeply" in failure.reason) == (400, True)


def test_no_document_has_an_id_that_is_no_unicode(engine):
    engine.create_index("pages", {}, {})
    engine.bulk([{"_index": "pages", "_id": "1", "_source": {"n": 1}}])
    assert engine.get("pages", "\ud800") is None
    engine.refresh("pages")
    assert engine.get("pages", "\ud800") is None
    assert engine.get_all("pages", ["\udcff", "1"]) == [None, {"n": 1}]


@pytest.mark.parametrize(
    ("kind", "value"),
    [("date", 10**19), ("date", "9" * 23), ("long", "1_000"), ("double", "1_0"), ("long", 2**63)],
)
def test_numbers_that_servers_refuse_are_refused(engine, kind, value):
    (reason,) = index_one(engine, {"n": value}, properties={"n": {"type": kind}})
    assert f"failed to parse field 'n' of type '{kind}'" in reason


def test_bounds_in_texts_are_not_rounded(engine):
    index_one(engine, {"n": 2**53}, properties={"n": {"type": "long"}})
    assert count(engine, {"range": {"n": {"gte": str(2**53 + 1)}}}) == 0
    assert count(engine, {"range": {"n": {"gte": str(2**53), "lt": "1e16"}}}) == 1


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ({"type": "keyword", "fields": None}, "expected an object"),
        ({"type": "keyword", "fields": {"sub": None}}, "expected a name and an object with a type"),
        ({"type": "keyword", "fields": {"": {"type": "text"}}}, "expected a name"),
        ({"enabled": "false"}, "expected true or false"),
    ],
)
def test_malformed_definitions_are_refused(engine, definition, said):
    with pytest.raises(UnsupportedQuery, match=said):
        engine.create_index("pages", {"properties": {"field": definition}}, {})


@pytest.mark.parametrize("name", ["_id", "_source", "_index"])
def test_metadata_can_not_be_mapped(engine, name):
    with pytest.raises(UnsupportedQuery, match="is metadata"):
        engine.create_index("pages", {"properties": {name: {"type": "keyword"}}}, {})


BEFORE = {"_meta": {"a": 1}, "properties": {"title": {"type": "text"}, "n": {"type": "integer"}}}
NEW = {"properties": {"tag": {"type": "keyword"}, "deep": {"properties": {"n": {"type": "integer"}}}}}


@pytest.fixture
def index(engine: EmbeddedEngine) -> str:
    engine.create_index("i", BEFORE, {})
    engine.bulk([{"_index": "i", "_id": "1", "_source": {"title": "old", "n": 1}}])
    return "i"


def found(engine: EmbeddedEngine, index: str, query: dict) -> list[str]:
    return [hit["_id"] for hit in engine.search(index, {"query": query})["hits"]["hits"]]


def test_new_fields_are_searched_from_then_on(engine, index):
    engine.put_mappings(index, NEW)
    engine.bulk([{"_index": index, "_id": "2", "_source": {"tag": "x", "deep": {"n": 7}}}])
    engine.refresh(index)
    assert found(engine, index, {"term": {"tag": "x"}}) == ["2"]
    assert found(engine, index, {"term": {"deep.n": 7}}) == ["2"]
    assert found(engine, index, {"match": {"title": "old"}}) == ["1"]
    assert engine.mappings(index)["_meta"] == {"a": 1}


def test_meta_is_replaced_where_it_is_given_and_stays_on_disk(engine, index, tmp_path: Path, words):
    engine.put_mappings(index, {"_meta": {"b": 2}})
    engine.close()
    with EmbeddedEngine(tmp_path, words) as again:
        assert again.mappings(index)["_meta"] == {"b": 2}
        assert again.all_mappings(index) == {index: again.mappings(index)}


def test_another_process_that_writes_has_to_end_first(engine, index, tmp_path: Path, words):
    with EmbeddedEngine(tmp_path, words) as other, pytest.raises(EngineUnavailable):
        other.put_mappings(index, NEW)


@pytest.mark.parametrize("verb", ["index", "update", "delete"])
def test_guards_by_version_are_refused_not_ignored(engine, index, verb):
    body = {"doc": {"n": 2}} if verb == "update" else {"_source": {"n": 2}}
    guarded = {"_op_type": verb, "_index": index, "_id": "1", "if_seq_no": 0, "if_primary_term": 1, **body}
    (failure,) = engine.bulk([guarded]).failures
    assert failure.status == 400
    assert "the embedded engine has no 'if_" in failure.reason
    assert engine.get(index, "1")["_source"] == {"title": "old", "n": 1}


@pytest.mark.parametrize("name", ["_routing", "_id", "_index", "_source"])
@pytest.mark.parametrize(
    "body",
    [{"_source": {}}, {"_op_type": "update", "doc": {}}, {"_op_type": "update", "doc": {}, "upsert": {}}],
)
def test_metadata_is_no_field_of_a_document_as_on_servers(engine, index, name, body):
    *_, last = body
    given = {"_index": index, "_id": "1", **body, last: {**body[last], "n": 2, name: "x"}}
    (failure,) = engine.bulk([given]).failures
    assert failure.status == 400
    assert f"{name!r} is metadata and can't be a field of a document" in failure.reason
    assert engine.mappings(index)["properties"] == BEFORE["properties"]
    assert engine.get(index, "1")["_source"] == {"title": "old", "n": 1}
