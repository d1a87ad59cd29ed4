"""Checks of the query DSL: which documents of the library each query matches."""

from typing import Any

from shinglefold.contracts.engine import Engine
from shinglefold.errors import EngineError, IndexMissing, UnsupportedQuery
from shinglefold.testing.engines.subject import IDS, found, ids, library, raises

#: Queries and the ids of the documents they match; the documents are indexed in the order f b e a d c.
_FINDS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"match_all": {}}, "fbeadc"),
    ({"match_none": {}}, ""),
    ({"ids": {"values": ["a", "c", "absent"]}}, "ac"),
    ({"match": {"title": "birds"}}, "fbc"),
    ({"match": {"title": "river birds"}}, "fbec"),
    ({"match": {"title": {"query": "river birds", "operator": "and"}}}, "f"),
    ({"match": {"title": {"query": "river birds fish", "minimum_should_match": 2}}}, "fe"),
    ({"match": {"title": {"query": "river birds fish", "minimum_should_match": "70%"}}}, "fe"),
    ({"match": {"title": "absent"}}, ""),
    ({"match": {"shelf": "old"}}, "bac"),
    ({"match": {"pages": 80}}, "e"),
    ({"match_phrase": {"body": "slow river"}}, "fe"),
    ({"match_phrase": {"body": "river slow"}}, ""),
    ({"match_phrase": {"body": {"query": "waits river", "slop": 3}}}, "f"),
    ({"match_phrase": {"body": "river"}}, "fe"),
    ({"multi_match": {"query": "desert", "fields": ["title", "body"]}}, "ad"),
    ({"multi_match": {"query": "desert", "fields": ["title^3", "body"], "type": "most_fields"}}, "ad"),
    ({"multi_match": {"query": "high desert", "fields": ["title", "body"], "operator": "and"}}, "d"),
    ({"term": {"shelf": "north"}}, "bac"),
    ({"term": {"shelf": {"value": "south", "boost": 2}}}, "fed"),
    ({"term": {"title.exact": "river fish"}}, "e"),
    ({"term": {"pages": 60}}, ""),
    ({"term": {"price": 4.5}}, "a"),
    ({"term": {"lent": True}}, "dc"),
    ({"term": {"printed": "2024-02-15T12:00:00Z"}}, "b"),
    ({"term": {"_dedup.supershingles": "000aaaa"}}, "fe"),
    ({"terms": {"_dedup.supershingles": ["011bbbb", "013bbbb", "absent"]}}, "ba"),
    ({"terms": {"pages": [100, 50]}}, "fc"),
    ({"terms": {"shelf": []}}, ""),
    ({"range": {"pages": {"gte": 80, "lt": 100}}}, "be"),
    ({"range": {"price": {"gt": 1.5, "lte": 4.5}}}, "ea"),
    ({"range": {"printed": {"gte": "2024-02", "lte": "2024-03-15"}}}, "be"),
    ({"range": {"printed": {"gt": "2024-05-15"}}}, "c"),
    ({"range": {"shelf": {"gte": "o", "lt": "p"}}}, "bac"),
    ({"prefix": {"shelf": "so"}}, "fed"),
    ({"exists": {"field": "pages"}}, "fbeac"),
    ({"exists": {"field": "_dedup"}}, "fbeac"),
    ({"exists": {"field": "absent"}}, ""),
    ({"term": {"absent": 1}}, ""),
    ({"bool": {"must": [{"match": {"title": "birds"}}], "filter": {"term": {"shelf": "south"}}}}, "f"),
    ({"bool": {"must_not": [{"match": {"title": "birds"}}]}}, "ead"),
    ({"bool": {"must": {"match": {"title": "birds"}}, "should": {"term": {"shelf": "old"}}}}, "fbc"),
    ({"bool": {"should": [{"match": {"title": "sky"}}, {"match": {"title": "fish"}}]}}, "ed"),
    (
        {
            "bool": {
                "should": [{"term": {"lent": True}}, {"match": {"title": "birds"}}, {"term": {"pages": 90}}],
                "minimum_should_match": 2,
            }
        },
        "bc",
    ),
    ({"bool": {}}, "fbeadc"),
    ({"constant_score": {"filter": {"match": {"title": "fish"}}}}, "e"),
    ({"dis_max": {"queries": [{"match": {"title": "fish"}}, {"match": {"body": "pike"}}]}}, "e"),
)


class Queries:
    """Checks that queries match the same documents as on servers, with scores in the same order."""

    def test_each_query_finds_its_documents(self, engine: Engine) -> None:
        """Check a table of queries."""
        with library(engine) as index:
            for query, expected in _FINDS:
                assert found(engine, index, query) == set(expected), query

    def test_more_and_rarer_words_score_higher(self, engine: Engine) -> None:
        """Check that a document with both words comes first, and the rarer word before the commoner."""
        with library(engine) as index:
            response = engine.search(index, {"query": {"match": {"title": "river fish"}}})
            assert ids(response) == ["e", "f"]
            response = engine.search(index, {"query": {"match": {"title": "birds mountain"}}})
            assert ids(response)[0] == "b"

    def test_several_searches_are_answered_as_each_alone(self, engine: Engine) -> None:
        """Check order and content of the responses, and that the list has the error of a failed search."""
        with library(engine) as index:
            pit = engine.open_pit(index)
            searches: list[tuple[str | None, dict[str, Any]]] = [
                (index, {"query": {"match": {"title": "birds"}}}),
                ("conformance-absent", {}),
                (index, {"query": {"no_such_query": {}}}),
                (None, {"size": 2}),
                (None, {"pit": {"id": pit, "keep_alive": "1m"}, "size": 2, "sort": ["price"]}),
                (index, {"size": 0, "aggs": {"shelves": {"terms": {"field": "shelf"}}}}),
            ]
            answers = engine.msearch(searches)
            engine.close_pit(pit)
            assert engine.msearch([]) == []
            first, absent, unknown, nowhere, paged, counted = answers
            assert isinstance(absent, IndexMissing)
            assert isinstance(unknown, UnsupportedQuery)
            assert isinstance(nowhere, UnsupportedQuery)
            assert not isinstance(paged, EngineError)
            assert ids(paged) == ["f", "b"]
            for answer, search in ((first, searches[0]), (counted, searches[5])):
                assert not isinstance(answer, EngineError)
                alone = engine.search(*search)
                assert {**answer, "took": 0} == {**alone, "took": 0}

    def test_boosts_change_the_order(self, engine: Engine) -> None:
        """Check boosts of fields and clauses, and that filters do not score."""
        with library(engine) as index:
            for fields, first in ((["title^10", "body"], "a"), (["title", "body^10"], "d")):
                query = {"multi_match": {"query": "desert", "fields": fields}}
                assert ids(engine.search(index, {"query": query}))[0] == first
            wanted = [{"term": {"shelf": {"value": "old", "boost": 5}}}, {"term": {"shelf": "south"}}]
            response = engine.search(index, {"query": {"bool": {"should": wanted}}})
            assert set(ids(response)[:3]) == set("bac")
            response = engine.search(index, {"query": {"bool": {"filter": {"match_all": {}}}}})
            assert {hit["_score"] for hit in response["hits"]["hits"]} == {0.0}

    def test_what_it_does_not_know_is_refused(self, engine: Engine) -> None:
        """Check that unknown queries, options and keys raise; none is ignored."""
        bodies: tuple[dict[str, Any], ...] = (
            {"query": {"no_such_query": {}}},
            {"query": {"match": {"title": {"query": "x", "no_such_option": 1}}}},
            {"query": {"match_all": {}, "match_none": {}}},
            {"query": {"term": {"pages": "many"}}},
            {"query": {"bool": {"no_such_clause": []}}},
            {"no_such_key": 1},
            {"ext": {"dedup": {}}},
            {"size": -1},
            {"sort": ["no_such_field"]},
            {"aggs": {"x": {"no_such_aggregation": {}}}},
        )
        with library(engine) as index:
            for body in bodies:
                with raises(EngineError, of=str(body)):
                    engine.search(index, body)
            assert found(engine, index, {"match_all": {}}) == set(IDS)
