"""Fields of every type as preferences and scopes: the plugin answers as ``FoldedSearch``, or as it fails."""

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
}  # fmt: skip
_BELOW = ("flat", "object", "unmapped", "nested")
#: Those without dates.
_DATELESS = (
    "text", "text_in_memory", "match_only_text", "search_as_you_type", "completion", "token_count", "boolean",
    "ip", "binary", "binary_without", "geo_point", "geo_shape", "integer_range", "date_range", "version",
    "rank_feature",
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


@pytest.mark.parametrize("name", TYPES)
def test_fields_of_each_type_are_read_as_by_folded_search(server, engine, typed, name):
    field = f"{name}.a" if name in _BELOW else name
    options: list[JSON] = [
        {"representative": {policy: field}, "scope": "list"}
        for policy in ("newest", "oldest", "shortest_url")
    ]
    options.append({"representative": {"prefer": {"field": field, "values": _PREFERRED}}, "scope": "list"})
    if name != "nested":
        options += [{"scope": field}, {"scope": f"{field}:1d"}]
    for index in typed.values():
        for one in options:
            body = {
                "size": 200,
                "sort": ["number"],
                "_source": ["number"],
                "ext": {"dedup": {"members": 0, **one}},
            }
            if name in _DATELESS and any(date in str(one) for date in ("newest", "oldest", ":1d")):
                with pytest.raises(HTTPError, match=r"400.*has no dates"):
                    by_plugin(server.url, index, body)
                with pytest.raises(ConfigError, match="has no dates"):
                    FoldedSearch(engine, SCHEME).search(index, body)
                continue
            found = comparable(by_plugin(server.url, index, body))
            assert found == comparable(FoldedSearch(engine, SCHEME).search(index, body)), one
            assert found["hits"]["hits"]


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
