"""Checks of what search by groups needs: collapse on a number, and distinct values counted."""

from shinglefold.contracts.engine import Engine
from shinglefold.testing.engines.subject import empty, hits

_MAPPINGS = {
    "properties": {
        "rank": {"type": "integer"},
        "host": {"type": "keyword"},
        "dedup": {"properties": {"group": {"type": "long"}}},
    }
}
#: Group and host of each document, by rank.
_DOCUMENTS = ((9, "a"), (7, "a"), (9, "b"), (9, "a"), (2**40, "b"), (7, "b"), (3, "a"))


class Groups:
    """Checks of ``collapse`` and ``cardinality``."""

    def test_collapses_on_a_number_with_the_others_beside(self, engine: Engine) -> None:
        """Check that the first of each group is shown, in order, with its group's number and members."""
        with empty(engine, _MAPPINGS) as index:
            _fill(engine, index)
            others = {"name": "all", "size": 2, "sort": [{"rank": "desc"}], "_source": ["rank"]}
            collapse = {"field": "dedup.group", "inner_hits": others}
            body = {"sort": [{"rank": "asc"}], "collapse": collapse, "size": 2, "from": 1}
            answer = engine.search(index, body)
            assert answer["hits"]["total"]["value"] == len(_DOCUMENTS)
            assert [hit["_id"] for hit in hits(answer)] == ["1", "4"]
            assert [hit["fields"]["dedup.group"] for hit in hits(answer)] == [[7], [2**40]]
            inner = hits(answer)[0]["inner_hits"]["all"]["hits"]
            assert inner["total"]["value"] == 2
            assert [hit["_source"] for hit in inner["hits"]] == [{"rank": 5}, {"rank": 1}]

    def test_collapses_what_is_ranked_by_score(self, engine: Engine) -> None:
        """Check that a group stands where its best-ranked member does."""
        with empty(engine, _MAPPINGS) as index:
            _fill(engine, index)
            boosted = [{"constant_score": {"filter": {"term": {"rank": 5}}, "boost": 3}}]
            query = {"bool": {"must": [{"match_all": {}}], "should": boosted}}
            answer = engine.search(index, {"query": query, "collapse": {"field": "dedup.group"}, "size": 1})
            assert [(hit["_id"], hit["_score"]) for hit in hits(answer)] == [("5", 4.0)]

    def test_counts_distinct_numbers_overall_and_by_keyword(self, engine: Engine) -> None:
        """Check ``cardinality``, alone and within the terms of a keyword."""
        with empty(engine, _MAPPINGS) as index:
            _fill(engine, index)
            groups = {"cardinality": {"field": "dedup.group", "precision_threshold": 1000}}
            hosts = {"terms": {"field": "host"}, "aggs": {"groups": groups}}
            answer = engine.search(index, {"size": 0, "aggs": {"groups": groups, "hosts": hosts}})
            assert answer["aggregations"]["groups"]["value"] == 4
            counted = answer["aggregations"]["hosts"]["buckets"]
            assert [(one["key"], one["doc_count"], one["groups"]["value"]) for one in counted] == [
                ("a", 4, 3),
                ("b", 3, 3),
            ]

    def test_counts_the_documents_of_some_groups(self, engine: Engine) -> None:
        """Check a terms aggregation of a number, over those documents that a query finds."""
        with empty(engine, _MAPPINGS) as index:
            _fill(engine, index)
            counted = {"terms": {"field": "dedup.group", "size": 2}}
            query = {"terms": {"dedup.group": [7, 2**40]}}
            answer = engine.search(index, {"size": 0, "query": query, "aggs": {"groups": counted}})
            buckets = answer["aggregations"]["groups"]["buckets"]
            assert [(one["key"], one["doc_count"]) for one in buckets] == [(7, 2), (2**40, 1)]


def _fill(engine: Engine, index: str) -> None:
    result = engine.bulk(
        {
            "_index": index,
            "_id": str(rank),
            "_source": {"rank": rank, "host": host, "dedup": {"group": group}},
        }
        for rank, (group, host) in enumerate(_DOCUMENTS)
    )
    assert not result.failures
    engine.refresh(index)
