"""Fields of every type as preferences and scopes: the plugin answers or refuses as ``FoldedSearch``."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest
from support.golden.plugin_vectors import DATES
from support.hits import SCHEME, fingerprint_of
from support.maintenance import put
from support.plugin_trials import by_plugin, comparable
from support.random_pages import spec_of
from support.trials import properties as trial_properties

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.errors import ConfigError
from shinglefold.rerank import FoldedSearch, FoldOptions

SHARDS = (1, 2)
#: How a field is mapped, and some of its values.
TYPES: dict[str, tuple[JSON, tuple[Any, ...]]] = {
    "keyword": ({"type": "keyword", "ignore_above": 60}, DATES),
    "normalized": ({"type": "keyword", "normalizer": "lowercase"}, ("A", "b", "2026-01-01T10:00Z")),
    "without_doc_values": ({"type": "keyword", "doc_values": False}, ("a", "b")),
    "constant": ({"type": "constant_keyword", "value": "a"}, ("a",)),
    "wildcard": ({"type": "wildcard"}, ("a", "b", "2026-01-01 10:00")),
    "text": ({"type": "text"}, ("a b", "a")),
    "text_in_memory": ({"type": "text", "fielddata": True}, ("b a", "a")),
    "match_only_text": ({"type": "match_only_text"}, ("a b", "a")),
    "search_as_you_type": ({"type": "search_as_you_type"}, ("a b", "a")),
    "completion": ({"type": "completion"}, ("a b", "a")),
    "token_count": ({"type": "token_count", "analyzer": "standard"}, ("a b", "a")),
    "date": ({"type": "date"}, ("2026-01-01", 1767225600000, "2026-01-02T01:02:03.004Z", "0001-01-01")),
    "date_nanos": ({"type": "date_nanos"}, ("2026-01-01T00:00:00.000000001Z", "2026-01-03")),
    "nanos_in_millis": ({"type": "date_nanos", "format": "epoch_millis"}, (1767225600000, "1767225600000.5")),
    "by_day": ({"type": "date", "format": "dd/MM/yyyy"}, ("05/01/2026", "04/02/2026")),
    "basic": ({"type": "date", "format": "basic_date"}, ("20260105", "20260204")),
    "seconds": ({"type": "date", "format": "epoch_second"}, (1767225600, 1767225700)),
    "week": ({"type": "date", "format": "strict_weekyear_week_day"}, ("2026-W01-1", "2026-W05-2")),
    "with_space": ({"type": "date", "format": "yyyy-MM-dd HH:mm"}, ("2026-01-01 10:00", "2026-02-01 10:00")),
    "ordinal": ({"type": "date", "format": "strict_ordinal_date"}, ("2026-001", "2026-032")),
    "month": ({"type": "date", "format": "yyyy-MM"}, ("2026-01", "2025-03")),
    "long": ({"type": "long"}, (5, -3, 2**53 + 1, 2**62)),
    "integer": ({"type": "integer"}, (5, -3)),
    "short": ({"type": "short"}, (5, -3)),
    "byte": ({"type": "byte"}, (5, -3)),
    "unsigned_long": ({"type": "unsigned_long"}, (5, 2**63 + 1, 2**64 - 1)),
    "double": ({"type": "double"}, (0.5, 1e300, -1e-7, 5.0, 1e16)),
    "float": ({"type": "float"}, (0.1, 1e30, 5.0)),
    "half_float": ({"type": "half_float"}, (0.1, 5.0)),
    "scaled_float": ({"type": "scaled_float", "scaling_factor": 100}, (0.1, 5.0, 12.34)),
    "boolean": ({"type": "boolean"}, (True, False)),
    "ip": ({"type": "ip"}, ("10.0.0.1", "::1", "::ffff:1.2.3.4")),
    "binary": ({"type": "binary", "doc_values": True}, ("AAAA", "BBBB")),
    "binary_without": ({"type": "binary"}, ("AAAA", "BBBB")),
    "geo_point": ({"type": "geo_point"}, ([1, 2], "3,4")),
    "geo_shape": ({"type": "geo_shape"}, ("POINT (1 2)",)),
    "integer_range": ({"type": "integer_range"}, ({"gte": 1, "lte": 3}, {"gte": 2, "lte": 3})),
    "date_range": ({"type": "date_range"}, ({"gte": "2026-01-01"}, {"gte": "2026-01-02"})),
    "version": ({"type": "version"}, ("1.2.3", "1.10.0")),
    "rank_feature": ({"type": "rank_feature"}, (1, 2)),
    "flat": ({"type": "flat_object"}, ({"a": "x"}, {"a": "2026-01-01"})),
    "object": ({"properties": {"a": {"type": "keyword"}}}, ({"a": "x"}, {"a": "y"})),
    "unmapped": ({"type": "object", "dynamic": False}, ({"a": "x"}, {"a": "y"})),
    "nested": ({"type": "nested", "properties": {"a": {"type": "keyword"}}}, ({"a": "x"}, {"a": "y"})),
    "alias": ({"type": "alias", "path": "long"}, ()),
    "number_without": ({"type": "long", "doc_values": False}, (1, 2)),
    "both": ({"type": "text", "fields": {"raw": {"type": "keyword"}, "own": {"type": "text"}}}, ("a b", "a")),
    "words": ({"type": "keyword", "fields": {"text": {"type": "text"}}}, ("a b", "a")),
    "alias_of_text": ({"type": "alias", "path": "both"}, ()),
    "percolator": ({"type": "percolator"}, ()),
    "rank_features": ({"type": "rank_features"}, ({"a": 1},)),
    "disabled": ({"type": "object", "enabled": False}, ({"a": "x"}, {"a": "y"})),
    "empty": ({"type": "object"}, ()),
}  # fmt: skip
_BELOW = ("flat", "object", "unmapped", "nested", "disabled", "empty")
#: Names of no type above.
_NAMES = (
    *_BELOW, "both.raw", "both.own", "words.text", "keywor*", "nested.*", "flat.*", "_id", "_index",
    "_seq_no", "_routing", "_version", "_ignored", "_score", "_doc", "_shard_doc", "_source", "_nothing",
    "_dedup", "_dedup.*", "_dedup.digest", "_dedup.supershingles", "_dedup.nothing", "nothing",
    "keyword.nothing", "object.nothing", "keyword.", ".",
)  # fmt: skip
_OF_TYPE = (
    "text", "match_only_text", "search_as_you_type", "completion", "percolator", "rank_feature",
    "rank_features",
)  # fmt: skip
_NESTED, _RAW, _ANY = "a field of nested documents", "both.raw", "a keyword, a number or a date"
#: Fields whose values hits do not return, and why.
_REFUSED = {
    **{name: f"mapped as {name}" for name in _OF_TYPE},
    **dict.fromkeys(("both", "both.own", "words.text", "alias_of_text"), "mapped as text"),
    **dict.fromkeys(
        ("without_doc_values", "number_without", "binary_without", "_dedup.supershingles"),
        "mapped without doc values",
    ),
    **dict.fromkeys(("object", "unmapped", "disabled", "empty", "_dedup"), "an object"),
    **dict.fromkeys(("unmapped.a", "disabled.a"), "not mapped"),
    **dict.fromkeys(("nested", "nested.a"), _NESTED),
    **dict.fromkeys(("keywor*", "nested.*", "flat.*", "_dedup.*"), "a pattern"),
    **dict.fromkeys(("_score", "_doc", "_shard_doc"), "no stored field"),
    "flat": "mapped as flat_object",
}
_UNKNOWN = (
    "_source", "_nothing", "_dedup.nothing", "nothing", "keyword.nothing", "object.nothing", "keyword.", ".",
)  # fmt: skip
#: Those without dates.
_DATELESS = (
    "text", "text_in_memory", "match_only_text", "search_as_you_type", "completion", "token_count", "boolean",
    "ip", "binary", "binary_without", "geo_point", "geo_shape", "integer_range", "date_range", "version",
    "rank_feature", "rank_features", "percolator", "both", "both.own", "words.text", "alias_of_text", "flat",
    "object", "unmapped", "disabled", "empty", "nested", "_dedup",
)  # fmt: skip
_PREFERRED = ["a", "y", "2026-01-01", "5", "-3", "5.0", "0.1", "True", "::1", "BBBB", "1.10.0"]


def _documents() -> Iterator[JSON]:
    """Yield near-duplicates, two of each list, whose fields have all values, several or none."""
    stored = fingerprint_of(spec_of(8)).to_field()
    for number in range(2 * len(DATES)):
        made: JSON = {"number": number, "list": number // 2, "body": "a", "_dedup": stored}
        for name, (_, values) in TYPES.items():
            place = (number * 7 + number // 3) % (len(values) + 1)
            if place < len(values):
                made[name] = values[place]
        if number % 9 == 0:
            made["keyword"] = [DATES[number % len(DATES)], DATES[(number + 3) % len(DATES)]]
        yield made


@pytest.fixture(scope="module")
def typed(engine: Engine) -> Iterator[dict[int, str]]:
    """Return an index with a field of each type, of one shard and of two."""
    made = trial_properties()
    made["properties"] |= {name: mapping for name, (mapping, _) in TYPES.items()}
    names = {shards: f"shinglefold-test-types-{shards}" for shards in SHARDS}
    for shards, name in names.items():
        engine.create_index(name, made, {"number_of_shards": shards, "number_of_replicas": 0})
        put(engine, name, {str(one["number"]): one for one in _documents()})
    yield names
    for name in names.values():
        engine.delete_index(name)


def by_both(url: str, engine: Engine, index: str, body: JSON) -> Any:
    """Return the page of the plugin, or the message of its refusal: as by folded search."""
    expected: JSON | str
    try:
        expected = comparable(FoldedSearch(engine, SCHEME).search(index, body))
    except ConfigError as error:
        expected = f"400: {error}"
    found: JSON | str
    try:
        found = comparable(by_plugin(url, index, body))
    except HTTPError as error:
        told = json.loads(error.msg.partition(": ")[2])
        found = f"{told['status']}: {told['error']['reason']}"
        if "; name one that is mapped" in found:
            # Folded search names the nearest of those that are mapped.
            found, expected = found.partition(";")[0], str(expected)[: found.index(";")]
    assert found == expected, body
    return found


def _options(field: str) -> Iterator[JSON]:
    for policy in ("newest", "oldest", "shortest_url"):
        yield {"representative": {policy: field}, "scope": "list"}
    yield {"representative": {"prefer": {"field": field, "values": _PREFERRED}}, "scope": "list"}
    yield {"scope": field}
    yield {"scope": f"{field}:1d"}


def _body(options: JSON) -> JSON:
    return {
        "size": 200,
        "sort": ["number"],
        "_source": ["number"],
        "ext": {"dedup": {"members": 0, **options}},
    }


@pytest.mark.parametrize("field", [*(name if name not in _BELOW else f"{name}.a" for name in TYPES), *_NAMES])
def test_fields_of_each_type_are_read_or_refused_as_by_folded_search(server, engine, typed, field):
    refused = field in _REFUSED or field in _UNKNOWN
    for index in [typed[1]] if refused else typed.values():
        for one in _options(field):
            found = by_both(server.url, engine, index, _body(one))
            if field in _UNKNOWN:
                assert found == f"400: unknown field (in ext.dedup, index {index!r}) {field!r}"
            elif field in _DATELESS and any(date in str(one) for date in ("newest", "oldest", ":1d")):
                assert "which has no dates; name a date" in found
            elif field in _REFUSED:
                raw = field in ("both", "alias_of_text")
                assert found == (
                    f"400: index {index!r}: {field!r} is {_REFUSED[field]}, so hits do not return its "
                    f"values; name {repr(_RAW) if raw else _ANY} for the scope or policy"
                )
            else:
                assert found["hits"]["hits"]


_KEYWORD, _TEXT = {"type": "keyword"}, {"type": "text"}
#: How two indices map ``one``, a field to name, and why the second index is refused: "" if none is.
TWO: dict[str, tuple[JSON | None, JSON | None, str, str]] = {
    "one lacks it": (_KEYWORD, None, "one", ""),
    "one has an object": (_KEYWORD, {"properties": {"a": _KEYWORD}}, "one", ""),
    "one has it unmapped": (
        {"properties": {"a": _KEYWORD}},
        {"type": "object", "dynamic": False},
        "one.a",
        "",
    ),
    "one has it unread": ({"properties": {"a": _KEYWORD}}, {"type": "object", "enabled": False}, "one.a", ""),
    "one may have it later": ({"type": "object", "enabled": False}, {"type": "object"}, "one.a", ""),
    "one has a number": (_KEYWORD, {"type": "long"}, "one", ""),
    "one has a text": (_KEYWORD, _TEXT, "one", "mapped as text"),
    "one has no doc values": (
        _KEYWORD,
        {**_KEYWORD, "doc_values": False},
        "one",
        "mapped without doc values",
    ),
    "one has nested documents": (_KEYWORD, {"type": "nested"}, "one", _NESTED),
}


@pytest.mark.parametrize("case", TWO)
def test_of_several_indices_one_may_lack_a_field_and_none_may_hide_its_values(server, engine, case):
    *definitions, field, why = TWO[case]
    names = [f"shinglefold-test-two-{number}" for number in range(2)]
    made = trial_properties()
    try:
        for name, one in zip(names, definitions, strict=True):
            own = {**made["properties"], **({} if one is None else {"one": one})}
            engine.create_index(name, {**made, "properties": own}, {"number_of_replicas": 0})
            documents = list(_documents())[:4]
            put(engine, name, {f"{name}-{one['number']}": _plain(one) for one in documents})
        for option in ({"scope": field}, {"representative": f"prefer:{field}=a"}):
            found = by_both(server.url, engine, "shinglefold-test-two-*", _body(option))
            if why:
                assert f"index {names[1]!r}: {field!r} is {why}, so hits do not return its values" in found
            else:
                assert found["dedup"]["window"] == 8
    finally:
        for name in names:
            engine.delete_index(name)


def _plain(document: JSON) -> JSON:
    return {name: document[name] for name in ("number", "list", "body", "_dedup")}


def test_an_empty_index_answers_where_documents_may_bring_the_field(server, engine):
    """Another name is refused before the first document has it, too, as engines refuse to sort by it."""
    made, name = trial_properties(), "shinglefold-test-two-empty"
    made["properties"] |= {"more": {"type": "object"}}
    engine.create_index(name, made, {"number_of_replicas": 0})
    try:
        body = _body({"scope": "more.host", "representative": "newest:more.day"})
        assert by_both(server.url, engine, name, body)["hits"]["hits"] == []
        assert "unknown field" in by_both(server.url, engine, name, _body({"scope": "host"}))
        documents = [{**_plain(one), "host": "a", "more": {"host": "a"}} for one in list(_documents())[:3]]
        put(engine, name, {str(one["number"]): one for one in documents})
        # Texts get a keyword by the dynamic mapping, and the refusal names it.
        assert "name 'host.keyword' for" in by_both(server.url, engine, name, _body({"scope": "host"}))
        for field in ("host.keyword", "more.host.keyword"):
            found = by_both(server.url, engine, name, _body({"scope": field}))
            assert len(found["hits"]["hits"]) == 1
    finally:
        engine.delete_index(name)


def test_a_date_that_folding_can_not_read_alike_is_refused(server, engine, typed):
    made = trial_properties()
    made["properties"] |= {"number": {"type": "integer"}, "by_day": {"type": "keyword"}}
    name = "shinglefold-test-types-other"
    engine.create_index(name, made, {"number_of_shards": 1, "number_of_replicas": 0})
    newest = {"sort": ["number"], "ext": {"dedup": {"representative": "newest:by_day"}}}
    shown = {**newest, "explain": True, "docvalue_fields": ["by_day"]}
    policies = ["prefer:by_day=05/01/2026", "newest:by_day"]
    twice = {"sort": ["number"], "ext": {"dedup": {"representative": policies}}}
    cases = (
        (f"{typed[1]},{name}", newest, "no date in"),
        (typed[1], shown, r"a format of \[by_day\]"),
        (typed[1], twice, "by_day.* is a date with a format: a search reads it either"),
    )
    try:
        for index, body, told in cases:
            with pytest.raises(HTTPError, match=f"400.*{told}"):
                by_plugin(server.url, index, body)
            with pytest.raises(ConfigError, match=told):
                FoldedSearch(engine, SCHEME).search(index, body, FoldOptions(mode="server"))
    finally:
        engine.delete_index(name)
