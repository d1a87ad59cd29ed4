"""Which whole numbers lie between two bounds, of which each may count or not."""

import pytest

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
