"""Hits of a page are fetched by their numbers: each of them, in requests of so many at a time."""

from functools import partial
from types import SimpleNamespace

import pytest

from shinglefold.rerank.page import fetch
from shinglefold.rerank.page.window import PartialAnswer, WindowReader


def _read(number):
    return {"_index": "pages", "_score": 1.0, "fields": {"_seq_no": [number], "dedup.digest": [f"d{number}"]}}


def _stored(number):
    fields = {"dedup.digest": [f"d{number}"]}
    return {
        "_index": "pages",
        "_id": f"page-{number}",
        "_seq_no": number,
        "_primary_term": 1,
        "fields": fields,
    }


@pytest.mark.parametrize(
    ("at_once", "requests"), [(1000, [[3, 5, 8]]), (2, [[5, 8], [3]]), (1, [[8], [5], [3]])]
)
@pytest.mark.parametrize("pit", [None, "p1"])
def test_each_hit_is_fetched_once_and_stands_at_its_place(monkeypatch, at_once, requests, pit):
    monkeypatch.setattr(fetch, "_AT_ONCE", at_once)
    hits = [_read(8), _read(1), _read(5), _read(3)]
    reading = SimpleNamespace(
        hits=hits,
        shards=1,
        field="dedup",
        pit=pit,
        keep={"keep_alive": "1m"},
        record_response=PartialAnswer().note,
    )
    reading.under_pit = partial(WindowReader.under_pit, reading)
    steps = fetch._by_seq_no(reading, {"query": {"match_all": {}}}, [0, 2, 3], "pages", None)
    asked = []
    call = next(steps)
    try:
        while True:
            index, body = call.arguments
            assert index == (None if pit else "pages")
            assert body.get("pit") == ({"keep_alive": "1m", "id": "p1"} if pit else None)
            numbers = body["query"]["bool"]["filter"][0]["terms"]["_seq_no"]
            asked.append(numbers)
            answer = [_stored(number) for number in reversed(numbers)]
            call = steps.send(
                {"hits": {"hits": answer}, "_shards": {"total": 1, "successful": 1, "failed": 0}}
            )
    except StopIteration as stop:
        found = stop.value
    assert asked == requests
    assert {place: hit["_id"] for place, hit in found.items()} == {0: "page-8", 2: "page-5", 3: "page-3"}
