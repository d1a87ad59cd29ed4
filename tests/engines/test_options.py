"""What is not supported is refused with what is; nothing is ignored."""

import math
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shinglefold.engines import open_engine
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.engines.embedded.search.queries import minimum
from shinglefold.engines.embedded.store.snapshots import Pits
from shinglefold.errors import MissingExtra, PitExpired, UnsupportedQuery


@pytest.fixture
def pages(engine: EmbeddedEngine) -> EmbeddedEngine:
    properties = {"title": {"type": "text"}, "tag": {"type": "keyword"}, "n": {"type": "long"}}
    properties["at"] = {"type": "date"}
    raw = {"raw": {"type": "binary"}, "inner": {"properties": {"tag": {"type": "keyword"}}}}
    engine.create_index("pages", {"properties": properties | raw}, {})
    engine.bulk([{"_index": "pages", "_id": "1", "_source": {"title": "one", "tag": "a", "n": 1}}])
    engine.refresh("pages")
    return engine


@pytest.mark.long(every=6)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"quary": {}}, "did you mean 'query'"),
        ({"query": {"mach": {"title": "x"}}}, "did you mean 'match'"),
        ({"query": {"match": {"title": {"query": "x", "fuzziness": "AUTO"}}}}, "minimum_should_match"),
        ({"query": {"match": {"title": {"query": "x", "operator": "nor"}}}}, "did you mean 'or'"),
        ({"query": {"multi_match": {"query": "x", "type": "cross_fields"}}}, "best_fields"),
        ({"query": {"multi_match": {"query": "x", "fields": ["title^x"]}}}, "number after"),
        ({"query": {"match": {"title": {"query": ["x"]}}}}, "text to look for"),
        ({"query": {"match_all": {"boost": 10**400}}}, "boost: expected a number"),
        ({"query": {"match_all": {"boost": math.inf}}}, "boost: expected a number"),
        ({"sort": ["_doc"], "search_after": [math.inf]}, "expected a number"),
        ({"sort": ["n"], "search_after": ["nan"]}, "expected a number"),
        ({"query": {"bool": {"should": [], "mustnot": []}}}, "did you mean 'must_not'"),
        ({"query": {"bool": {"should": [{"match_all": {}}], "minimum_should_match": "2<75%"}}}, "percentage"),
        ({"query": {"range": {"n": {"from": 1}}}}, "Supported: boost, gt, gte"),
        ({"query": {"range": {"n": {"gte": 1, "gt": 1}}}}, "one lower"),
        ({"query": {"range": {"title": {"gte": "a"}}}}, "keyword"),
        ({"query": {"range": {"n": {"gte": "x"}}}}, "'n'"),
        ({"query": {"term": {"tag": ["a", "b"]}}}, "see terms"),
        ({"query": {"terms": {"tag": {"index": "x"}}}}, "list of values"),
        ({"query": {"term": {"inner": "a"}}}, "inner.…"),
        ({"query": {"term": {"raw": "a"}}}, "only stored"),
        ({"query": {"prefix": {"n": "1"}}}, "strings"),
        ({"query": {"match_all": {"boost": -1}}}, "a number of 0"),
        ({"query": {}}, "exactly one key"),
        ({"query": [{"match_all": {}}]}, "exactly one key"),
        ({"from": 1, "sort": ["n"], "search_after": [1]}, "leave it out"),
        ({"sort": ["n"], "search_after": [1, 2]}, "one for each of the 1"),
        ({"search_after": [1]}, "one for each of the 0"),
        ({"sort": ["title"]}, "no keyword multi-field"),
        ({"sort": ["tags"]}, "did you mean 'tag'"),
        ({"sort": [{"n": {"mode": "max"}}]}, "unmapped_type"),
        ({"sort": [{"n": "up"}]}, "'asc'|asc, desc"),
        ({"sort": ["_shard_doc"]}, "point in time"),
        ({"sort": ["at"], "search_after": ["soon"]}, "search_after: 'soon' is not a date"),
        ({"query": {"range": {"at": {"gte": 10**19}}}}, "is not a date"),
        ({"query": {"match_phrase": {"title": {"query": "a b", "slop": 2**31}}}}, "0 to 2147483647"),
        ({"aggs": {"a": {"terms": {"field": "tag", "size": 2**40}}}}, "1 to 2147483647"),
        ({"size": 2**64}, "0 to 2147483647"),
        ({"size": True}, "whole number"),
        ({"size": "10"}, "whole number"),
        ({"docvalue_fields": ["title"]}, "no doc values"),
        ({"docvalue_fields": ["raw"]}, "doc_values: true"),
        ({"docvalue_fields": [{"field": "n", "format": "x"}]}, "Supported: field"),
        ({"stored_fields": ["title"]}, "_source"),
        ({"stored_fields": "_none_", "_source": True}, "leave out _source"),
        ({"_source": {"include": ["a"]}}, "did you mean 'includes'"),
        ({"highlight": {}}, "name some"),
        ({"highlight": {"fields": {"title": {"type": "plain"}}}}, "fragment_size"),
        ({"aggs": {"a": {"terms": {"field": "title"}}}}, "'tag'|tag"),
        ({"aggs": {"a": {"avg": {"field": "n"}}}}, "Supported: cardinality, sampler, terms"),
        (
            {"aggs": {"a": {"terms": {"field": "tag"}, "aggs": {"b": {"terms": {"field": "tag"}}}}}},
            "only card",
        ),
        ({"aggs": {"a": {"cardinality": {"field": "title"}}}}, "distinct|cardinality aggregation of the"),
        ({"collapse": {"field": "tag"}}, "whole numbers to collapse by"),
        ({"collapse": {"field": "n"}, "sort": ["n"], "search_after": [1]}, "search_after"),
        ({"collapse": {"field": "n", "inner_hits": [{"size": 1}, {"size": 2}]}}, "name of its own"),
        ({"ext": {"dedup": True}}, "'ext'"),
        ({"pit": {"id": "x"}}, "give None"),
    ],
)
def test_a_refusal_names_what_there_is(pages, body, said):
    with pytest.raises(UnsupportedQuery, match=said):
        pages.search("pages", body)


def test_a_search_needs_an_index_or_a_point_in_time(pages):
    with pytest.raises(UnsupportedQuery, match="point in time"):
        pages.search(None, {})
    with pytest.raises(UnsupportedQuery, match="several indices"):
        pages.search("pages,other", {})


def test_bulk_keys_it_has_not_are_refused(pages):
    result = pages.bulk(
        [
            {"_index": "pages", "n": 1, "routing": "x"},
            {"_index": "pages", "_op_type": "upsert", "_source": {}},
            {"_source": {}},
            {"_index": "absent", "_source": {}},
            {"_index": "pages", "_id": "", "_source": {}},
            {"_index": "pages", "_id": "x" * 513, "_source": {}},
            {"_index": "pages", "_op_type": "update", "_id": "1", "_source": {"n": 1}},
            {"_index": "pages", "_id": 7, "n": 5},
        ]
    )
    assert [failure.status for failure in result.failures] == [400, 400, 400, 404, 400, 400, 400]
    assert pages.get("pages", "7") == {"_index": "pages", "_id": "7", "_source": {"n": 5}}


@pytest.mark.parametrize(
    ("given", "clauses", "expected"),
    [(2, 5, 2), ("3", 5, 3), (-1, 5, 4), ("75%", 5, 3), ("-25%", 5, 4), (9, 5, 9), (-9, 5, 0), ("0%", 5, 0)],
)
def test_minimum_should_match_is_reckoned_as_lucene_does(given, clauses, expected):
    assert minimum(given, clauses) == expected


@pytest.mark.parametrize(
    ("told", "seconds"), [("500ms", 0.5), ("30s", 30), ("5m", 300), ("2h", 7200), ("1d", 86_400)]
)
def test_a_point_in_time_is_kept_for_as_long_as_was_said(told, seconds):
    now = [1000.0]
    pits = Pits(lambda: now[0])
    pit = pits.open("a snapshot", told)
    now[0] += 0.9 * seconds
    assert pits.snapshot(pit, told) == "a snapshot"
    now[0] += 0.9999 * seconds
    assert pits.snapshot(pit, None) == "a snapshot"
    now[0] += 0.0002 * seconds
    with pytest.raises(PitExpired, match="ran out"):
        pits.snapshot(pit, None)


def test_a_time_without_a_unit_is_refused():
    with pytest.raises(UnsupportedQuery, match="1m"):
        Pits().open("a snapshot", "soon")


def test_an_address_names_the_engine(tmp_path: Path, words):
    for where in (tmp_path, str(tmp_path), f"embedded:{tmp_path}"):
        engine = open_engine(where, words)
        assert isinstance(engine, EmbeddedEngine)
        assert engine.path == tmp_path


def test_without_tantivy_the_message_names_the_extra():
    code = (
        "import sys; sys.modules['tantivy'] = None\n"
        "from shinglefold.engines import open_engine\n"
        "from shinglefold.errors import MissingExtra\n"
        "try: open_engine('x', list)\n"
        "except MissingExtra as error: print(error)"
    )
    told = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert told.strip() == str(MissingExtra("embedded", "the embedded engine"))


def test_threads_may_share_an_engine(pages):
    from concurrent.futures import ThreadPoolExecutor

    def write(worker: int) -> int:
        actions = ({"_index": "pages", "_id": f"{worker}-{n}", "n": n} for n in range(50))
        done = pages.bulk(actions).indexed
        pages.refresh("pages")
        return done + len(pages.search("pages", {"size": 1})["hits"]["hits"])

    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(write, range(4))) == [51] * 4
    assert pages.search("pages", {})["hits"]["total"]["value"] == 201
    assert time.monotonic() - began < 60


def test_a_page_of_any_size_takes_the_memory_of_its_hits(pages):
    body = {"size": 2**31 - 1, "aggs": {"tags": {"terms": {"field": "tag", "size": 2**31 - 1}}}}
    found = pages.search("pages", body)
    assert [hit["_id"] for hit in found["hits"]["hits"]] == ["1"]
    assert found["aggregations"]["tags"]["buckets"] == [{"key": "a", "doc_count": 1}]


def test_names_and_times_of_other_types_are_refused(pages):
    for name in (None, 5, "\ud800"):
        for ask in (pages.indices, pages.all_mappings, pages.index_exists):
            with pytest.raises(UnsupportedQuery, match="is not a valid index name"):
                ask(name)
    for keep_alive in (None, 5):
        with pytest.raises(UnsupportedQuery, match="keep_alive"):
            pages.open_pit("pages", keep_alive)
