"""Values and dates are indexed and found as on OpenSearch 3.8, where every case here was tried."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.engines.embedded.schema.field_types import format_date, looks_like_date, parse_date
from shinglefold.errors import UnsupportedQuery


def _index(engine: EmbeddedEngine, mappings: dict[str, Any], *values: object) -> list[int]:
    """Index a document for each value of the field ``f``; return the numbers of those refused."""
    if not engine.index_exists("pages"):
        engine.create_index("pages", mappings, {})
    actions = [
        {"_index": "pages", "_id": str(number), "_source": {"f": value}}
        for number, value in enumerate(values)
    ]
    refused = {failure.action["_id"] for failure in engine.bulk(actions).failures}
    engine.refresh("pages")
    return sorted(map(int, refused))


def _field(kind: str, **options: object) -> dict[str, Any]:
    return {"properties": {"f": {"type": kind, **options}}}


def _found(engine: EmbeddedEngine, query: dict[str, Any]) -> list[int]:
    hits = engine.search("pages", {"query": query, "size": 100})["hits"]["hits"]
    return sorted(int(hit["_id"]) for hit in hits)


def _doc_values(engine: EmbeddedEngine) -> list[Any]:
    hits = engine.search("pages", {"docvalue_fields": ["f"], "sort": ["f"]})["hits"]["hits"]
    return [hit["fields"]["f"] for hit in hits]


@pytest.mark.parametrize("value", [2024, "2024"])
@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("strict_date_optional_time||epoch_millis", "2024-01-01T00:00:00.000Z"),
        ("strict_date_optional_time", "2024-01-01T00:00:00.000Z"),
        ("epoch_millis", "2024"),
    ],
)
def test_four_digits_are_a_year_unless_the_format_is_milliseconds(engine, value, form, shown):
    assert _index(engine, _field("date", format=form), value) == []
    assert _doc_values(engine) == [[shown]]
    assert _found(engine, {"term": {"f": value}}) == [0]
    assert _found(engine, {"range": {"f": {"gt": value}}}) == []


@pytest.mark.parametrize(
    ("form", "refused"),
    [
        ("strict_date_optional_time||epoch_millis", [3]),
        ("strict_date_optional_time", [0, 1, 3]),
        ("epoch_millis", [2, 3]),
    ],
)
def test_a_date_of_another_format_is_refused(engine, form, refused):
    values = 1_717_113_600_000, "999", "2024-05-31", "today"
    assert _index(engine, _field("date", format=form), *values) == refused


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (1717113600000.7, 1_717_113_600_000),
        ("1717113600000.5", 1_717_113_600_000),
        (-1.5, -2),
        ("-1", -1),
        ("999", 999),
        (1e12, 10**12),
        ("2024-05-31T12:30:45+02", 1_717_151_445_000),
        ("2024-05-31T", 1_717_113_600_000),
    ],
)
def test_dates_have_all_forms_of_the_servers(engine, value, milliseconds):
    assert _index(engine, _field("date"), value) == []
    (hit,) = engine.search("pages", {"sort": ["f"]})["hits"]["hits"]
    assert hit["sort"] == [milliseconds]


@pytest.mark.parametrize("value", ["٢٠٢٤-٠٥-٣١", "2024-05-31T12:00+19:00", "2024-05-31T12:00+02:75"])
def test_a_text_that_is_no_date_stays_text(engine, value):
    assert _index(engine, {}, value) == []
    assert engine.mappings("pages")["properties"]["f"]["type"] == "text"


@pytest.mark.parametrize("kind", ["byte", "short", "integer", "long", "half_float", "float", "double"])
def test_an_empty_text_is_no_number_and_other_digits_are_refused(engine, kind):
    assert _index(engine, _field(kind), "", "5", "١", "1_0", "0x1", " 7", "+5e0") == [2, 3, 4]
    assert _found(engine, {"exists": {"field": "f"}}) == [1, 5, 6]
    for query in ({"term": {"f": ""}}, {"terms": {"f": [""]}}, {"range": {"f": {"gte": ""}}}):
        with pytest.raises(UnsupportedQuery, match="on 'f'"):
            _found(engine, query)


@pytest.mark.parametrize(("kind", "refused"), [("half_float", [1, 2, 3]), ("float", [2, 3]), ("double", [])])
def test_a_number_that_its_type_cannot_hold_is_refused(engine, kind, refused):
    assert _index(engine, _field(kind), 65504, 65520, 3.5e38, "1e308") == refused


@pytest.mark.parametrize(
    ("kind", "stored", "shown", "matching"),
    [
        ("half_float", [0.0999755859375, 16384.0], [0.099975586, 16384.0, "Infinity"], []),
        ("float", [0.10000000149011612, 16384.5], [0.1, 16384.5, "Infinity"], [0]),
        ("double", [0.1, 16384.500000001], [0.1, 16384.500000001, "Infinity"], [0]),
    ],
)
def test_numbers_are_rounded_to_what_their_type_can_hold(engine, kind, stored, shown, matching):
    """What is expected is what OpenSearch 3 and Elasticsearch 9 answer: see test_number_values.py."""
    assert _index(engine, _field(kind), 0.1, 16384.500000001, None) == []
    body = {"docvalue_fields": ["f"], "sort": ["f"]}
    hits = engine.search("pages", body)["hits"]["hits"]
    assert [hit["sort"][0] for hit in hits] == shown
    assert [hit["fields"]["f"][0] for hit in hits if "fields" in hit] == stored
    assert _found(engine, {"range": {"f": {"gte": 0.1, "lt": 1}}}) == matching
    assert _found(engine, {"term": {"f": 0.1}}) == [0]


@pytest.mark.parametrize("kind", ["byte", "short", "integer", "long"])
def test_a_query_for_a_fraction_finds_no_whole_number(engine, kind):
    assert _index(engine, _field(kind), 1, 1.5, "1.9") == []
    for value in (1.5, "1.5"):
        for query in ({"term": {"f": value}}, {"terms": {"f": [value]}}, {"match": {"f": value}}):
            assert _found(engine, query) == []
    for value in (1, 1.0, "1.0"):
        assert _found(engine, {"term": {"f": value}}) == [0, 1, 2]


@pytest.mark.parametrize("kind", ["keyword", "long", "double", "boolean", "date", "text"])
@pytest.mark.parametrize("value", [None, [1], {"a": 1}])
def test_terms_takes_single_values_only(engine, kind, value):
    assert _index(engine, _field(kind), *(["null"] if kind in ("keyword", "text") else [])) == []
    with pytest.raises(UnsupportedQuery, match="terms on 'f'"):
        _found(engine, {"terms": {"f": [value]}})


def test_a_boolean_is_the_same_text_in_a_document_and_a_query(engine):
    assert _index(engine, _field("text"), True, "True", "false") == []
    assert _found(engine, {"term": {"f": True}}) == [0, 1]


def test_ignore_above_counts_utf_16_code_units(engine):
    values = "aaaaa", "aaaaaa", "😀😀", "😀😀😀", "😀😀😀😀😀", "ééééé"
    assert _index(engine, _field("keyword", ignore_above=5), *values) == []
    assert _found(engine, {"exists": {"field": "f"}}) == [0, 2, 5]
    assert _found(engine, {"terms": {"f": list(values)}}) == [0, 2, 5]
    hits = engine.search("pages", {"docvalue_fields": ["f"]})["hits"]["hits"]
    assert [hit["_id"] for hit in hits if "fields" in hit] == ["0", "2", "5"]


@pytest.mark.parametrize(
    ("kind", "options", "exists"),
    [
        ("keyword", {}, True),
        ("keyword", {"index": False}, True),
        ("keyword", {"doc_values": False}, True),
        ("keyword", {"index": False, "doc_values": False}, False),
        ("text", {"index": False}, False),
        ("date", {"index": False, "doc_values": False}, False),
        ("binary", {}, False),
        ("binary", {"doc_values": True}, True),
    ],
)
def test_what_is_only_stored_does_not_exist_for_searches(engine, kind, options, exists):
    assert _index(engine, {"properties": {"o": _field(kind, **options)}}) == []
    engine.bulk([{"_index": "pages", "_id": "0", "_source": {"o": {"f": "2024"}}}])
    engine.refresh("pages")
    for path in ("o.f", "o", "o*", "*.f"):
        assert _found(engine, {"exists": {"field": path}}) == [0] * exists


@pytest.mark.parametrize("values", [[1, {"z": 1}], [{"z": 1}, 1], [{"y": 1}, {"y": {"z": 2}}]])
def test_a_new_field_is_a_value_or_an_object(engine, values):
    engine.create_index("pages", {}, {})
    sent = [
        {"_index": "pages", "_id": str(n), "_source": one} for n, one in enumerate([{"q": values}, {"q": 1}])
    ]
    assert [one.action["_id"] for one in engine.bulk(sent).failures] == ["0"]


def test_a_new_field_has_values_of_one_type(engine):
    assert _index(engine, {}, [1, 2.5], ["x", 1], [True, 1]) == [0, 1, 2]
    assert _index(engine, {}, [1, 2], [1, 2.5]) == []


_NUMBERS = (-2, -1, 0, 1, 2, 3)


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ({"gt": 0}, {1, 2, 3}),
        ({"gte": 0}, {0, 1, 2, 3}),
        ({"lt": 0}, {-2, -1}),
        ({"lte": 0}, {-2, -1, 0}),
        ({"gt": 0.5}, {1, 2, 3}),
        ({"gte": 0.5, "lt": 2.5}, {1, 2}),
        ({"gt": -1, "lt": 1}, {0}),
        ({"gt": 1, "lt": 2}, set()),
    ],
)
def test_a_range_of_whole_numbers_has_what_lies_in_it(engine, bounds, found):
    engine.create_index("numbers", {"properties": {"n": {"type": "long"}}}, {})
    actions = [{"_index": "numbers", "_id": f"{n}", "_source": {"n": n}} for n in _NUMBERS]
    assert not engine.bulk(actions).failures
    engine.refresh("numbers")
    hits = engine.search("numbers", {"query": {"range": {"n": bounds}}})["hits"]["hits"]
    assert {hit["_source"]["n"] for hit in hits} == found


_DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "first", "length"),
    [
        ("1970", 0, 365 * _DAY),
        ("1972-02", 760 * _DAY + _DAY, 29 * _DAY),
        ("1970-12", 334 * _DAY, 31 * _DAY),
        ("1970-01-02", _DAY, _DAY),
        ("1970-01-01T01", 3_600_000, 3_600_000),
        ("1970-01-01T01:02", 3_720_000, 60_000),
        ("1970-01-01T00:00:01Z", 1000, 1000),
        ("1970-01-01T00:00:00.5Z", 500, 1),
        ("1970-01-01T02:00:00+02:00", 0, 1000),
        ("1969-12-31T22:30:00-0130", 0, 1000),
        ("86400000", _DAY, 1),
        (86_400_000, _DAY, 1),
        (-1, -1, 1),
        ("9999", 253_370_764_800_000, 365 * _DAY),
        ("9999-12-31", 253_402_214_400_000, _DAY),
        ("9999-12-31T23:59:59Z", 253_402_300_799_000, 1000),
        ("9999-12-31T23:59:59.999-05:00", 253_402_318_799_999, 1),
    ],
)
def test_a_date_covers_its_span(text, first, length):
    assert parse_date(text) == (first, first + length - 1)


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        -(2**63) - 1,
        "9" * 19,
        "",
        "today",
        "2024-13",
        "2024-02-30",
        "24-01-01",
        "2024-1-1",
        "2024-01-01 1:00",
        True,
        None,
    ],
)
def test_what_is_no_date_is_refused(value):
    with pytest.raises(ValueError, match="is not a date"):
        parse_date(value)


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))
def test_a_printed_date_reads_back(moment):
    milliseconds = round(moment.replace(tzinfo=UTC, microsecond=0).timestamp()) * 1000 + 7
    assert parse_date(format_date(milliseconds)).first == milliseconds


def test_only_dates_are_taken_for_dates():
    assert looks_like_date("2024-05-31")
    assert looks_like_date("2024-05-31T10:00:00.000Z")
    assert not any(map(looks_like_date, ("2024", "20240531", "1717113600000", "12-05-31", "May 2024")))
