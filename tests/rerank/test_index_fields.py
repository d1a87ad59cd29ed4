"""Fields that a request names: whether an index has them, and whether hits return their values."""

import re

import pytest

from shinglefold.errors import ConfigError
from shinglefold.rerank import FoldOptions
from shinglefold.rerank.index_fields import (
    check_dates,
    check_fields,
    check_values,
    keyword_fields,
    knows,
    named_fields,
)

MAPPINGS = {
    "runtime": {"day": {"type": "keyword"}},
    "properties": {
        "title": {"type": "text", "fields": {"keyword": {"type": "keyword"}}},
        "host": {"type": "keyword"},
        "meta": {"properties": {"author": {"type": "keyword"}}},
        "labels": {"type": "flattened"},
        "raw": {"type": "object", "enabled": False},
        "loose": {"dynamic": "false", "properties": {"a": {"type": "keyword"}}},
    },
}


@pytest.mark.parametrize(
    "name",
    [
        "host",
        "title",
        "title.keyword",
        "meta",
        "meta.author",
        "meta.*",
        "labels.x",
        "raw.any.x",
        "loose.b",
        "day",
        "_id",
    ],
)
def test_what_a_document_may_have_is_known(name):
    assert knows(MAPPINGS, name)


@pytest.mark.parametrize("name", ["hots", "title.keywrd", "meta.autor", "host.keyword"])
def test_what_none_can_have_is_not(name):
    assert not knows(MAPPINGS, name)


def test_where_new_fields_are_stored_unmapped_any_name_is_taken():
    assert knows({"dynamic": "false", "properties": {}}, "anything")
    assert not knows({"dynamic": "strict", "properties": {}}, "anything")


def test_the_nearest_name_is_told_and_one_index_of_several_will_do():
    with pytest.raises(ConfigError, match=r"'meta.autor'; did you mean 'meta.author'"):
        check_fields([MAPPINGS], "pages", ["meta.autor"], "ext.dedup")
    check_fields(
        [MAPPINGS, {"properties": {"price": {"type": "long"}}}], "all", ["price", "host"], "ext.dedup"
    )


def test_all_options_that_name_fields_are_looked_at():
    options = FoldOptions.parse(
        {
            "scope": ["host", "date:7d"],
            "representative": ["newest:published", "shortest_url"],
            "members": {"size": 2, "_source": ["title"]},
            "explain": {"passages": True, "fields": ["body"]},
        }
    )
    assert named_fields(options) == ["host", "date", "published", "url", "title", "body"]


def test_fields_whose_values_hits_do_not_return_are_refused():
    parts = {"type": "nested", "properties": {"name": {"type": "keyword"}}}
    old = {"properties": {"page": {"properties": {"parts": parts}}, "parts": {"properties": {}}}}
    both = {"new": MAPPINGS, "old": old}
    check_values(
        both, ["host", "title.keyword", "day", "_id", "_index", "labels.any", "parts.name", "meta.author"]
    )
    a_keyword = "a keyword, a number or a date"
    for name, (own, reason, remedy) in {
        "page.parts.name": ("old", "a field of nested documents", a_keyword),
        "title": ("new", "mapped as text", "'title.keyword'"),
        "ho*": ("new", "a pattern", a_keyword),
        "_score": ("new", "no stored field", a_keyword),
    }.items():
        told = f"index '{own}': '{name}' is {reason}, so hits do not return its values; name {remedy} for the"
        with pytest.raises(ConfigError, match=re.escape(told)):
            check_values(both, ["host", name])
    for name, reason in {"meta": "an object", "raw.any": "not mapped", "loose.b": "not mapped"}.items():
        with pytest.raises(ConfigError, match=f"'{re.escape(name)}' is {reason}, so hits do not return"):
            check_values({"new": MAPPINGS}, [name])


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ({"type": "keyword"}, ""),
        ({"type": "keyword", "doc_values": False}, "mapped without doc values"),
        ({"type": "binary"}, "mapped without doc values"),
        ({"type": "binary", "doc_values": True}, ""),
        ({"type": "text", "fielddata": True}, ""),
        ({"type": "annotated_text"}, "mapped as annotated_text"),
        ({"type": "flattened"}, ""),
        ({"type": "alias", "path": "title"}, "mapped as text"),
        ({"type": "alias", "path": "host"}, ""),
    ],
)
def test_what_has_doc_values_is_read(definition, why):
    mappings = {"pages": {"properties": {**MAPPINGS["properties"], "one": definition}}}
    if not why:
        check_values(mappings, ["one"])
        return
    with pytest.raises(ConfigError, match=f"'one' is {why}, so hits do not return its values"):
        check_values(mappings, ["one"])


@pytest.mark.parametrize(
    ("mappings", "comes"),
    [
        ({"properties": {"more": {"type": "object"}}}, True),
        ({"dynamic": "false", "properties": {"more": {"type": "object"}}}, False),
        ({"dynamic": "strict", "properties": {"more": {"type": "object"}}}, False),
        ({"dynamic": "strict", "properties": {"more": {"dynamic": "true"}}}, True),
        ({"properties": {"more": {"dynamic": "false"}}}, False),
        ({"properties": {"more": {"dynamic": "runtime"}}}, True),
        ({"dynamic": "runtime"}, True),
        ({"dynamic": False}, False),
        ({"properties": {"more": {"enabled": False}}}, False),
        ({"enabled": False}, False),
    ],
)
def test_a_field_that_documents_may_bring_is_no_fault_of_the_request(mappings, comes):
    if comes:
        check_values({"pages": mappings}, ["more.host"])
        return
    with pytest.raises(ConfigError, match=r"'more\.host' is not mapped"):
        check_values({"pages": mappings}, ["more.host"])
    check_values({"pages": mappings, "other": {"properties": {"more": {"properties": {}}}}}, ["more.host"])


def test_only_fields_of_types_with_dates_are_read_as_dates():
    kinds = {"a": "date", "b": "long", "c": "keyword", "d": "boolean", "e": "text", "f": "ip"}
    mappings = {"properties": {name: {"type": kind} for name, kind in kinds.items()}}
    check_dates({"one": mappings, "other": {"properties": {}}}, ["a", "b", "c", "unmapped"])
    for name in "def":
        with pytest.raises(ConfigError, match=f"'{name}' is of type {kinds[name]}, which has no dates"):
            check_dates({"one": {"properties": {}}, "other": mappings}, ["a", name])


def test_a_runtime_field_is_read_as_dates_by_its_own_type():
    mappings = {"properties": {"day": {"type": "text"}}, "runtime": {"day": {"type": "date"}}}
    check_dates({"pages": mappings}, ["day"])
    with pytest.raises(ConfigError, match="'day' is of type boolean"):
        check_dates({"pages": mappings | {"runtime": {"day": {"type": "boolean"}}}}, ["day"])
    keyword = {"properties": {"day": {"type": "date"}}, "runtime": {"day": {"type": "keyword"}}}
    assert keyword_fields([mappings, keyword], ["day", "other"]) == {"day"}
    assert keyword_fields([mappings], ["day"]) == frozenset()
