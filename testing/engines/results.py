"""Checks of what a hit gives back: its shape, source, single fields, highlights; and aggregations."""

from typing import Any

from shinglefold.contracts.engine import Engine
from shinglefold.testing.engines.subject import document, hits, library


class Hits:
    """A response looks as the servers' do, and a hit holds what was asked for, no more."""

    def test_a_response_has_the_servers_shape(self, engine: Engine) -> None:
        """Check the keys around and in the hits."""
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
        """Check the ways to ask for parts of a source."""
        whole = document(0)
        asked: tuple[tuple[Any, Any], ...] = (
            (True, whole),
            (False, None),
            ("title", {"title": whole["title"]}),
            (["pages", "pri*"], {name: whole[name] for name in ("pages", "price", "printed")}),
            ("dedup.sh*", {"dedup": {"shingles": 40}}),
            (["dedup"], {"dedup": whole["dedup"]}),
            (
                {"includes": ["dedup.*", "pages"], "excludes": ["dedup.signature", "dedup.supershingles"]},
                {"pages": 100, "dedup": {"scheme": "sf1-kit", "shingles": 40}},
            ),
            ({"excludes": ["dedup", "t*", "p*", "body", "lent"]}, {"shelf": "south"}),
        )
        with library(engine) as index:
            for given, expected in asked:
                body = {"query": {"ids": {"values": ["f"]}}, "_source": given}
                assert hits(engine.search(index, body))[0].get("_source") == expected, given

    def test_single_fields_come_as_lists(self, engine: Engine) -> None:
        """Check docvalue_fields, by name and by pattern, with and without source and id."""
        wanted = {
            "dedup.scheme": ["sf1-kit"],
            "dedup.shingles": [40],
            "dedup.supershingles": ["000aaaa", "010bbbb"],
            "dedup.signature": ["AAECAwQFBgcICQoL"],
        }
        query = {"ids": {"values": ["f"]}}
        with library(engine) as index:
            body: dict[str, Any] = {"query": query, "_source": False, "docvalue_fields": ["dedup.*"]}
            (hit,) = hits(engine.search(index, body))
            assert (hit["_id"], hit["fields"]) == ("f", wanted)
            assert "_source" not in hit
            bare = {"query": query, "stored_fields": "_none_", "docvalue_fields": [{"field": "dedup.*"}]}
            (hit,) = hits(engine.search(index, bare))
            assert hit["fields"] == wanted
            assert not hit.keys() & {"_id", "_source"}
            several = ["shelf", "pages", "price", "lent", "title.exact"]
            body = {"query": {"ids": {"values": ["b"]}}, "docvalue_fields": several}
            assert hits(engine.search(index, body))[0]["fields"] == {
                "shelf": ["north", "old"],
                "pages": [90],
                "price": [1.5],
                "lent": [False],
                "title.exact": ["mountain birds"],
            }

    def test_missing_fields_are_left_out(self, engine: Engine) -> None:
        """Check that a hit without any of the fields has no fields at all."""
        with library(engine) as index:
            body = {"query": {"ids": {"values": ["d"]}}, "docvalue_fields": ["dedup.*", "pages"]}
            assert "fields" not in hits(engine.search(index, body))[0]

    def test_highlights_what_was_found(self, engine: Engine) -> None:
        """Check that the words found are marked, with the tags asked for, in their own field only."""
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
        """Check a terms aggregation over all that was found, whatever the page."""
        with library(engine) as index:
            body = {"size": 0, "aggs": {"shelves": {"terms": {"field": "shelf", "size": 2}}}}
            counted = engine.search(index, body)["aggregations"]["shelves"]
            assert counted["sum_other_doc_count"] == 3
            assert [(bucket["key"], bucket["doc_count"]) for bucket in counted["buckets"]] == [
                ("north", 3),
                ("old", 3),
            ]
