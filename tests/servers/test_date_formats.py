"""Dates of any format as scopes and preferences of folded searches, on a real server."""

import pytest
from support.hits import SCHEME, fingerprint_of, groups
from support.maintenance import put
from support.random_pages import spec_of

from shinglefold.api.documents import query_document
from shinglefold.errors import ConfigError
from shinglefold.ingest import Pipeline, default_definition, mappings
from shinglefold.rerank import FoldedSearch, FoldOptions, Scope
from shinglefold.rerank.hits import moment
from shinglefold.rerank.similar import SimilarOptions, SimilarSearch

#: Mappings, and what documents have for the first, the fourth and the tenth of January.
DAYS = {
    "plain": ({}, ("2026-01-01", "2026-01-04", "2026-01-10")),
    "german": ({"format": "dd.MM.yyyy"}, ("01.01.2026", "04.01.2026", "10.01.2026")),
    "seconds": ({"format": "epoch_second"}, (1767225600, 1767484800, 1768003200)),
    "mixed": (
        {"format": "yyyy-MM-dd HH:mm:ss||yyyy-MM-dd||epoch_millis"},
        ("2026-01-01", "2026-01-04 10:00:00", 1768003200000),
    ),
    "nanos": (
        {"type": "date_nanos", "format": "epoch_millis"},
        ("1767225600000.5", "1767484800000.5", "1768003200000.5"),
    ),
    "basic": ({"format": "basic_date"}, ("20260101", "20260104", "20260110")),
}


@pytest.fixture(scope="module")
def dated(engine, shared_index):
    made = mappings(SCHEME)
    made["properties"] |= {"number": {"type": "integer"}}
    for name, (mapping, _) in DAYS.items():
        made["properties"][name] = {"type": "date", **mapping}
    if engine.info()["distribution"] == "elasticsearch":
        # It hides the field of its name.
        made["properties"]["seconds"] = {"type": "keyword"}
        made["runtime"] = {"seconds": {"type": "date", "format": "epoch_second"}}
    index = shared_index(made, {"number_of_shards": 1, "number_of_replicas": 0})
    stored = fingerprint_of(spec_of(8)).to_field()
    of_day = [{name: days[at] for name, (_, days) in DAYS.items()} for at in range(3)]
    put(engine, index, {f"{at}": {"number": at, "_dedup": stored, **of_day[at]} for at in range(3)})
    return index


@pytest.mark.parametrize("name", DAYS)
def test_dates_of_any_format_fold_by_their_time(engine, dated, name):
    search = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())
    body = {"sort": ["number"], "size": 5}
    for cursor in (False, True):
        near = FoldOptions.parse({"scope": f"{name}:4d", "cursor": cursor})
        assert groups(search.search(dated, body, near)) == [["0", "1"], ["2"]]
        newest = FoldOptions.parse({"representative": f"newest:{name}", "cursor": cursor})
        assert groups(search.search(dated, body, newest)) == [["2", "0", "1"]]
    shown = search.search(dated, {**body, "docvalue_fields": [name]}, near)
    assert shown["hits"]["hits"][0]["fields"] == {name: [engine_value(engine, dated, name)]}
    options = SimilarOptions(scope=(Scope.parse(f"{name}:4d"),))
    assert [one.id for one in SimilarSearch(engine).find(dated, "0", options).matches] == ["1"]


def test_a_date_is_preferred_as_it_is_written(engine, dated):
    search, body = FoldedSearch(engine, SCHEME), {"sort": ["number"], "size": 5}
    prefer = {"prefer": {"field": "german", "values": ["04.01.2026"]}}
    page = search.search(dated, body, FoldOptions.parse({"representative": [prefer, "newest:basic"]}))
    assert groups(page) == [["1", "0", "2"]]
    with pytest.raises(ConfigError, match="'german' is a date with a format"):
        search.search(dated, body, FoldOptions.parse({"representative": [prefer, "newest:german"]}))


@pytest.mark.parametrize("kind", ["keyword", "long"])
def test_dates_of_a_format_are_not_compared_with_values_of_another_type(engine, dated, shared_index, kind):
    made = mappings(SCHEME)
    made["properties"] |= {"number": {"type": "integer"}, "seconds": {"type": kind}, "plain": {"type": kind}}
    both = f"{dated},{shared_index(made, {'number_of_shards': 1, 'number_of_replicas': 0})}"
    search, body = FoldedSearch(engine, SCHEME), {"sort": ["number"], "size": 5}
    assert groups(search.search(both, body, FoldOptions.parse({"scope": "plain:4d"}))) == [["0", "1"], ["2"]]
    assert groups(search.search(both, body, FoldOptions.parse({"scope": "seconds"}))) == [["0"], ["1"], ["2"]]
    for options in ({"scope": "seconds:4d"}, {"representative": "newest:seconds"}):
        with pytest.raises(ConfigError, match=f"'seconds' is a date with a format in the index '{dated}'"):
            search.search(both, body, FoldOptions.parse(options))
    options = SimilarOptions(scope=(Scope.parse("seconds:4d"),))
    with pytest.raises(ConfigError, match="map it alike, or search the indices one by one"):
        SimilarSearch(engine).find(both, "0", options)


def engine_value(engine, index, name):
    body = {"query": {"ids": {"values": ["0"]}}, "docvalue_fields": [name]}
    return engine.search(index, body)["hits"]["hits"][0]["fields"][name][0]


def test_a_date_that_a_request_returns_in_its_format_is_not_read_wrongly(engine, dated):
    search = FoldedSearch(engine, SCHEME, on_trouble="raise")
    body = {"sort": ["number"], "explain": True, "docvalue_fields": ["seconds"]}
    with pytest.raises(ConfigError, match="folding reads seconds, which the request returns in another form"):
        search.search(dated, body, FoldOptions.parse({"scope": "seconds:4d"}))


@pytest.mark.parametrize("part", ["docvalue_fields", "fields"])
@pytest.mark.parametrize("shown", [["plain"], [{"field": "pl*", "format": "yyyy"}]])
def test_copies_from_the_index_keep_the_form_that_the_request_wants(engine, dated, part, shown):
    search = FoldedSearch(engine, SCHEME)
    body = {"query": {"term": {"number": 0}}, part: shown}
    options = FoldOptions.parse({"scope": "plain:4d", "members": {"from": "index"}})
    (hit,) = search.search(dated, body, options)["hits"]["hits"]
    own, copy = hit["inner_hits"]["duplicates"]["hits"]["hits"]
    assert (own["_id"], copy["_id"], copy["found_by_query"]) == ("0", "1", False)
    assert (len(copy["fields"]["plain"]), len(own["fields"]["plain"])) == (1, 1)
    assert len(copy["fields"]["plain"][0]) == len(own["fields"]["plain"][0])


FORMS = (
    None,
    "strict_date_optional_time",
    "epoch_millis",
    "epoch_millis||strict_date_optional_time",
    "date_optional_time||epoch_millis",
    "yyyy-MM-dd||epoch_millis",
    "date",
)
NUMBERS = (
    2026, "2026", 1000, 9999, 999, "0005", 20261, "20261", 2026.0, "2026.5", 1767225600000, 1e12, 0,
    -1, -12345678901, "2026-01", "2026-1-5", "2026-01-05",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_years_and_milliseconds_of_new_documents_are_read_as_the_server_reads_them(
    engine, shared_index, form
):
    pipeline = Pipeline.from_json(default_definition())
    made = mappings(SCHEME)
    made["properties"]["day"] = {"type": "date"} | ({} if form is None else {"format": form})
    index = shared_index(made, {"number_of_shards": 1, "number_of_replicas": 0})
    engine.bulk({"_index": index, "_id": str(at), "_source": {"day": day}} for at, day in enumerate(NUMBERS))
    engine.refresh(index)
    hits = engine.search(index, {"size": len(NUMBERS), "sort": ["day"]})["hits"]["hits"]
    assert len(hits) > 4
    for hit in hits:
        day, (milliseconds,) = hit["_source"]["day"], hit["sort"]
        document = {"title": "Bridge closed for repair", "day": day}
        near = [Scope.parse("day:7d")]
        query = query_document(pipeline, pipeline.recipe("_dedup"), document, near, {index: made})
        when = moment(query.values["day"][0])
        # Python knows the years 1 to 9999.
        known = -62135596800000 <= milliseconds < 253402300800000
        assert when == (milliseconds / 1000 if known else None), (day, form)
