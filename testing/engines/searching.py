"""Checks of searches: which documents a query finds, and what is in the response, in which order."""

from typing import Any, ClassVar

from shinglefold.contracts.engine import Engine
from shinglefold.errors import EngineError, IndexMissing, UnsupportedQuery
from shinglefold.testing.engines.subject import IDS, document, empty, found, hits, ids, library, raises

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


class Hits:
    """Checks that responses have the shape of the servers', and hits exactly the requested parts."""

    def test_a_response_has_the_servers_shape(self, engine: Engine) -> None:
        """Check the keys of the response and of its hits."""
        with library(engine) as index:
            response = engine.search(index, {"query": {"match": {"title": "birds"}}})
            assert response.keys() >= {"took", "timed_out", "_shards", "hits"}
            assert response["timed_out"] is False
            assert response["_shards"]["failed"] == 0
            first = hits(response)[0]
            assert first.keys() >= {"_index", "_id", "_score", "_source"}
            assert "sort" not in first
            assert first["_score"] == response["hits"]["max_score"] > 0
            nothing = engine.search(index, {"query": {"match_none": {}}})
            assert (nothing["hits"]["max_score"], hits(nothing)) == (None, [])

    def test_sources_are_filtered(self, engine: Engine) -> None:
        """Check the forms of ``_source``."""
        whole = document(0)
        cases: tuple[tuple[Any, Any], ...] = (
            (True, whole),
            (False, None),
            ("title", {"title": whole["title"]}),
            (["pages", "pri*"], {name: whole[name] for name in ("pages", "price", "printed")}),
            ("_dedup.sh*", {"_dedup": {"shingles": 40}}),
            (["_dedup"], {"_dedup": whole["_dedup"]}),
            (
                {"includes": ["_dedup.*", "pages"], "excludes": ["_dedup.signature", "_dedup.supershingles"]},
                {"pages": 100, "_dedup": {"scheme": "sf1-kit", "shingles": 40}},
            ),
            ({"excludes": ["_dedup", "t*", "p*", "body", "lent"]}, {"shelf": "south"}),
        )
        with library(engine) as index:
            for given, expected in cases:
                body = {"query": {"ids": {"values": ["f"]}}, "_source": given}
                assert hits(engine.search(index, body))[0].get("_source") == expected, given

    def test_single_fields_come_as_lists(self, engine: Engine) -> None:
        """Check docvalue_fields, by name and by pattern, with and without source and id."""
        wanted = {
            "_dedup.scheme": ["sf1-kit"],
            "_dedup.shingles": [40],
            "_dedup.supershingles": ["000aaaa", "010bbbb"],
            "_dedup.signature": ["AAECAwQFBgcICQoL"],
        }
        query = {"ids": {"values": ["f"]}}
        with library(engine) as index:
            body: dict[str, Any] = {"query": query, "_source": False, "docvalue_fields": ["_dedup.*"]}
            (hit,) = hits(engine.search(index, body))
            assert (hit["_id"], hit["fields"]) == ("f", wanted)
            assert "_source" not in hit
            bare = {"query": query, "stored_fields": "_none_", "docvalue_fields": [{"field": "_dedup.*"}]}
            (hit,) = hits(engine.search(index, bare))
            assert hit["fields"] == wanted
            assert not hit.keys() & {"_id", "_source"}
            several = ["shelf", "pages", "price", "lent", "title.exact", "printed", "posted"]
            body = {"query": {"ids": {"values": ["b"]}}, "docvalue_fields": several}
            assert hits(engine.search(index, body))[0]["fields"] == {
                "shelf": ["north", "old"],
                "pages": [90],
                "price": [1.5],
                "lent": [False],
                "title.exact": ["mountain birds"],
                "printed": ["2024-02-15T12:00:00.000Z"],
                "posted": ["1704067200001"],
            }

    def test_missing_fields_are_left_out(self, engine: Engine) -> None:
        """Check that a hit without any of the fields has no ``fields``."""
        with library(engine) as index:
            body = {"query": {"ids": {"values": ["d"]}}, "docvalue_fields": ["_dedup.*", "pages"]}
            assert "fields" not in hits(engine.search(index, body))[0]

    def test_highlights_what_was_found(self, engine: Engine) -> None:
        """Check that matched words are marked, with the requested tags, only in the field that matched."""
        with library(engine) as index:
            options: dict[str, Any] = {"fields": {"body": {"number_of_fragments": 0}, "title": {}}}
            body = {"query": {"match": {"body": "slow heron"}}, "highlight": options}
            marked = {hit["_id"]: hit["highlight"] for hit in hits(engine.search(index, body))}
            assert marked == {
                "f": {"body": ["the grey <em>heron</em> waits by the <em>slow</em> river"]},
                "e": {"body": ["a pike hides in the <em>slow</em> river"]},
                "c": {"body": ["<em>heron</em> and eagle share the high lake"]},
            }
            body["highlight"] = {"pre_tags": ["["], "post_tags": ["]"], **options}
            assert "[heron]" in hits(engine.search(index, body))[0]["highlight"]["body"][0]

    def test_counts_the_terms_of_a_keyword(self, engine: Engine) -> None:
        """Check that a terms aggregation counts all hits, whatever the page."""
        with library(engine) as index:
            body = {"size": 0, "aggs": {"shelves": {"terms": {"field": "shelf", "size": 2}}}}
            counted = engine.search(index, body)["aggregations"]["shelves"]
            assert counted["sum_other_doc_count"] == 3
            assert [(bucket["key"], bucket["doc_count"]) for bucket in counted["buckets"]] == [
                ("north", 3),
                ("old", 3),
            ]


class Pages:
    """Checks that pages neither repeat nor skip documents, in any order."""

    #: The sort key that makes an order total under a point in time.
    tiebreaker: ClassVar[str] = "_shard_doc"

    def test_sorts_by_fields(self, engine: Engine) -> None:
        """Check numbers, dates, strings, several keys, and the position of documents without a value."""
        orders: tuple[tuple[Any, str], ...] = (
            (["price"], "fbeadc"),
            ([{"price": "desc"}], "cdaebf"),
            ([{"pages": {"order": "asc"}}], "caebfd"),
            ([{"pages": {"order": "desc"}}], "fbeacd"),
            ([{"pages": {"order": "asc", "missing": "_first"}}], "dcaebf"),
            ([{"printed": {"order": "desc"}}], "cdaebf"),
            ([{"title.exact": "asc"}], "cabdfe"),
            ([{"lent": "desc"}, {"price": "desc"}], "cdaebf"),
            ([{"shelf": "asc"}, {"price": "asc"}], "bacfed"),
            ([{"shelf": "desc"}, {"price": "asc"}], "fedbac"),
        )
        with library(engine) as index:
            for sort, expected in orders:
                assert "".join(ids(engine.search(index, {"sort": sort}))) == expected, sort

    def test_sort_values_come_with_the_hits(self, engine: Engine) -> None:
        """Check the sort values: numbers unchanged, dates as milliseconds, no score unless requested."""
        with library(engine) as index:
            response = engine.search(index, {"sort": [{"printed": "asc"}, {"shelf": "asc"}], "size": 1})
            assert hits(response)[0]["sort"] == [1705320000000, "south"]
            assert hits(response)[0]["_score"] is None
            assert response["hits"]["max_score"] is None
            # With ``_score`` alone, which is the default order, servers return no sort values.
            query = {"match": {"title": "fish"}}
            scored = engine.search(index, {"sort": ["_score", {"price": "asc"}], "query": query})
            assert hits(scored)[0]["sort"] == [hits(scored)[0]["_score"], 3.0]

    def test_pages_make_up_the_whole(self, engine: Engine) -> None:
        """Check ``from`` and ``size``, and that a page beyond the end is empty."""
        with library(engine) as index:
            for size in (1, 2, 4, 100):
                read: list[str] = []
                for start in range(0, 8, size):
                    read += ids(engine.search(index, {"sort": ["price"], "from": start, "size": size}))
                assert "".join(read) == "fbeadc"
            response = engine.search(index, {"size": 0})
            assert hits(response) == []
            assert response["hits"]["total"] == {"value": 6, "relation": "eq"}

    def test_a_cursor_reads_on(self, engine: Engine) -> None:
        """Check ``search_after`` on a unique key, without a point in time."""
        with library(engine) as index:
            for sort, expected in (({"price": "asc"}, "fbeadc"), ({"title.exact": "desc"}, "efdbac")):
                read: list[str] = []
                body: dict[str, Any] = {"sort": [sort], "size": 2}
                while page := hits(engine.search(index, body)):
                    read += [hit["_id"] for hit in page]
                    body["search_after"] = page[-1]["sort"]
                assert "".join(read) == expected

    def test_a_point_in_time_stays_as_it_was(self, engine: Engine) -> None:
        """Check that a point in time does not show later writes."""
        with library(engine) as index:
            pit = engine.open_pit(index)
            engine.bulk(
                [
                    {"_index": index, "_id": "new", "_source": document(0)},
                    {"_index": index, "_id": "a", "_op_type": "delete"},
                ]
            )
            engine.refresh(index)
            response = engine.search(None, {"pit": {"id": pit, "keep_alive": "1m"}, "size": 100})
            assert set(ids(response)) == set(IDS)
            assert response["pit_id"]
            assert set(ids(engine.search(index, {"size": 100}))) == {*IDS, "new"} - {"a"}
            engine.close_pit(response["pit_id"])
            engine.close_pit(response["pit_id"])
            with raises(EngineError, of="searching a closed point in time"):
                engine.search(None, {"pit": {"id": pit}})

    def test_equal_keys_neither_repeat_nor_skip_under_a_point_in_time(self, engine: Engine) -> None:
        """Check that the tiebreaker makes any order total and repeatable."""
        count = 57
        with empty(engine) as index:
            sources = ({"shelf": "same", "pages": number % 3} for number in range(count))
            engine.bulk({"_index": index, "_source": source} for source in sources)
            engine.refresh(index)
            pit = engine.open_pit(index)
            for key in ({"_score": "desc"}, {"shelf": "asc"}, {"pages": "desc"}):
                sort = [key, {self.tiebreaker: "asc"}]
                reads = [self._read_through(engine, pit, sort, size) for size in (7, 10, 100)]
                assert len(set(reads[0])) == len(reads[0]) == count, key
                assert reads[0] == reads[1] == reads[2], key
            engine.close_pit(pit)

    @staticmethod
    def _read_through(engine: Engine, pit: str, sort: list[dict[str, str]], size: int) -> list[str]:
        read: list[str] = []
        body: dict[str, Any] = {"pit": {"id": pit}, "sort": sort, "size": size}
        while page := hits(engine.search(None, body)):
            read += [hit["_id"] for hit in page]
            body["search_after"] = page[-1]["sort"]
        return read

    def test_totals_are_counted_as_asked(self, engine: Engine) -> None:
        """Check ``track_total_hits``: exact, up to a number, not at all."""
        with library(engine) as index:
            cases: tuple[tuple[Any, Any], ...] = (
                (True, {"value": 6, "relation": "eq"}),
                (100, {"value": 6, "relation": "eq"}),
                (2, {"value": 2, "relation": "gte"}),
                (False, None),
            )
            for given, expected in cases:
                # A page that holds all hits would give away the total, so the size is below it.
                response = engine.search(index, {"track_total_hits": given, "size": 1})
                assert response["hits"].get("total") == expected, given


_MAPPINGS = {
    "properties": {
        "rank": {"type": "integer"},
        "host": {"type": "keyword"},
        "_dedup": {"properties": {"group": {"type": "long"}}},
    }
}
#: Group and host of each document, by rank.
_DOCUMENTS = ((9, "a"), (7, "a"), (9, "b"), (9, "a"), (2**40, "b"), (7, "b"), (3, "a"))


class Groups:
    """Checks of ``collapse`` and ``cardinality``."""

    def test_collapses_on_a_number_with_the_others_beside(self, engine: Engine) -> None:
        """Check that a page has the first document of each group, in order, with group number and members."""
        with empty(engine, _MAPPINGS) as index:
            _fill(engine, index)
            others = {"name": "all", "size": 2, "sort": [{"rank": "desc"}], "_source": ["rank"]}
            collapse = {"field": "_dedup.group", "inner_hits": others}
            body = {"sort": [{"rank": "asc"}], "collapse": collapse, "size": 2, "from": 1}
            answer = engine.search(index, body)
            assert answer["hits"]["total"]["value"] == len(_DOCUMENTS)
            assert [hit["_id"] for hit in hits(answer)] == ["1", "4"]
            assert [hit["fields"]["_dedup.group"] for hit in hits(answer)] == [[7], [2**40]]
            inner = hits(answer)[0]["inner_hits"]["all"]["hits"]
            assert inner["total"]["value"] == 2
            assert [hit["_source"] for hit in inner["hits"]] == [{"rank": 5}, {"rank": 1}]

    def test_collapses_what_is_ranked_by_score(self, engine: Engine) -> None:
        """Check that a group has the rank of its best member."""
        with empty(engine, _MAPPINGS) as index:
            _fill(engine, index)
            boosted = [{"constant_score": {"filter": {"term": {"rank": 5}}, "boost": 3}}]
            query = {"bool": {"must": [{"match_all": {}}], "should": boosted}}
            answer = engine.search(index, {"query": query, "collapse": {"field": "_dedup.group"}, "size": 1})
            assert [(hit["_id"], hit["_score"]) for hit in hits(answer)] == [("5", 4.0)]

    def test_counts_distinct_numbers_overall_and_by_keyword(self, engine: Engine) -> None:
        """Check ``cardinality``, alone and within a terms aggregation."""
        with empty(engine, _MAPPINGS) as index:
            _fill(engine, index)
            groups = {"cardinality": {"field": "_dedup.group", "precision_threshold": 1000}}
            hosts = {"terms": {"field": "host"}, "aggs": {"groups": groups}}
            answer = engine.search(index, {"size": 0, "aggs": {"groups": groups, "hosts": hosts}})
            assert answer["aggregations"]["groups"]["value"] == 4
            counted = answer["aggregations"]["hosts"]["buckets"]
            assert [(one["key"], one["doc_count"], one["groups"]["value"]) for one in counted] == [
                ("a", 4, 3),
                ("b", 3, 3),
            ]

    def test_counts_the_documents_of_some_groups(self, engine: Engine) -> None:
        """Check a terms aggregation of a number, over the documents that match a query."""
        with empty(engine, _MAPPINGS) as index:
            _fill(engine, index)
            counted = {"terms": {"field": "_dedup.group", "size": 2}}
            query = {"terms": {"_dedup.group": [7, 2**40]}}
            answer = engine.search(index, {"size": 0, "query": query, "aggs": {"groups": counted}})
            buckets = answer["aggregations"]["groups"]["buckets"]
            assert [(one["key"], one["doc_count"]) for one in buckets] == [(7, 2), (2**40, 1)]


def _fill(engine: Engine, index: str) -> None:
    result = engine.bulk(
        {
            "_index": index,
            "_id": str(rank),
            "_source": {"rank": rank, "host": host, "_dedup": {"group": group}},
        }
        for rank, (group, host) in enumerate(_DOCUMENTS)
    )
    assert not result.failures
    engine.refresh(index)
