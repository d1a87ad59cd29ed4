"""Checks of order, pages, cursors and points in time."""

from typing import Any, ClassVar

from shinglefold.contracts.engine import Engine
from shinglefold.errors import EngineError
from shinglefold.testing.engines.subject import IDS, document, empty, hits, ids, library, raises


class Pages:
    """Whatever the order, pages neither repeat nor skip."""

    #: The sort key that makes an order total under a point in time.
    tiebreaker: ClassVar[str] = "_shard_doc"

    def test_sorts_by_fields(self, engine: Engine) -> None:
        """Check numbers, dates, strings, several keys, and where documents without a value go."""
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
        """Check the sort values: numbers as they are, dates as milliseconds, no score unless asked for."""
        with library(engine) as index:
            response = engine.search(index, {"sort": [{"printed": "asc"}, {"shelf": "asc"}], "size": 1})
            assert hits(response)[0]["sort"] == [1705320000000, "south"]
            assert hits(response)[0]["_score"] is None
            assert response["hits"]["max_score"] is None
            # By score alone is the order without a sort, so servers give no sort values then.
            query = {"match": {"title": "fish"}}
            scored = engine.search(index, {"sort": ["_score", {"price": "asc"}], "query": query})
            assert hits(scored)[0]["sort"] == [hits(scored)[0]["_score"], 3.0]

    def test_pages_make_up_the_whole(self, engine: Engine) -> None:
        """Check from and size, and that a page beyond the end is empty."""
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
        """Check search_after on a unique key, without a point in time."""
        with library(engine) as index:
            for sort, expected in (({"price": "asc"}, "fbeadc"), ({"title.exact": "desc"}, "efdbac")):
                read: list[str] = []
                body: dict[str, Any] = {"sort": [sort], "size": 2}
                while page := hits(engine.search(index, body)):
                    read += [hit["_id"] for hit in page]
                    body["search_after"] = page[-1]["sort"]
                assert "".join(read) == expected

    def test_a_point_in_time_stays_as_it_was(self, engine: Engine) -> None:
        """Check that a snapshot does not see what is written afterwards."""
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
        """Check that the tiebreaker makes the order total, whatever is sorted by, and repeatable."""
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
        """Check track_total_hits: exact, up to a number, not at all."""
        with library(engine) as index:
            asked: tuple[tuple[Any, Any], ...] = (
                (True, {"value": 6, "relation": "eq"}),
                (100, {"value": 6, "relation": "eq"}),
                (2, {"value": 2, "relation": "gte"}),
                (False, None),
            )
            for given, expected in asked:
                # A size below the total, or an engine may know it all the same.
                response = engine.search(index, {"track_total_hits": given, "size": 1})
                assert response["hits"].get("total") == expected, given
