"""Heads come back as they went in, whatever their length, from any segment."""

import pytest

from shinglefold.documents import SourceFilter
from shinglefold.engines.embedded import EmbeddedEngine


@pytest.mark.parametrize("lengths", [(0, 1, 7, 8, 9), (900, 1100, 5, 50_000), (2000, 3000)])
def test_objects_of_any_length_come_back(engine: EmbeddedEngine, lengths):
    engine.create_index("pages", {"properties": {"inner": {"properties": {"tag": {"type": "keyword"}}}}}, {})
    sources = {f"id-{length}": {"inner": _tags(length), "n": length} for length in lengths}
    for id_, source in sources.items():
        engine.bulk([{"_index": "pages", "_id": id_, "_source": source}])
        engine.refresh("pages")
    body = {"_source": False, "docvalue_fields": ["inner.tag"], "size": 10}
    hits = engine.search("pages", body)["hits"]["hits"]
    shown = {hit["_id"]: "".join(hit.get("fields", {}).get("inner.tag", [])) for hit in hits}
    assert {id_: len(text) for id_, text in shown.items()} == {f"id-{n}": 9 * -(-n // 7) for n in lengths}
    for id_, source in sources.items():
        assert engine.get("pages", id_)["_source"] == source


def _tags(length: int) -> dict:
    """Return as many tags as make up about a length, each different."""
    return {"tag": [f"ї{number:08d}" for number in range(-(-length // 7))]}


def test_ids_come_with_documents_that_have_no_object(engine: EmbeddedEngine):
    engine.create_index("pages", {}, {})
    ids = {"a", "ї" * 200, "x" * 512, '"\\ ', "\u2028"}
    engine.bulk({"_index": "pages", "_id": id_, "_source": {}} for id_ in ids)
    engine.refresh("pages")
    assert {hit["_id"] for hit in engine.search("pages", {"_source": False})["hits"]["hits"]} == ids
    by_id = {"query": {"ids": {"values": list(ids)}}}
    assert {hit["_id"] for hit in engine.search("pages", by_id)["hits"]["hits"]} == ids


@pytest.mark.parametrize(
    "wanted", ["inner", "inner.tag", "n", "inner.none", "flat", "flat.n", "in*", "none", "inner.deep"]
)
def test_a_part_of_the_source_is_the_same_whether_the_rest_is_read_or_not(engine: EmbeddedEngine, wanted):
    engine.create_index("pages", {"properties": {"inner": {"properties": {"tag": {"type": "keyword"}}}}}, {})
    sources = {
        "a": {"inner": {"tag": "x", "deep": {"n": 1}}, "n": 1},
        "b": {"inner": None, "n": 2},
        "c": {"n": 3, "flat.n": 5},
        "d": {"inner": [{"tag": "x"}, {"tag": ["y", None]}], "flat": {"n": None}},
        "e": {"inner": [], "inner.tag": "z"},
    }
    engine.bulk([{"_index": "pages", "_id": id_, "_source": source} for id_, source in sources.items()])
    engine.refresh("pages")
    asked = SourceFilter(includes=(wanted,))
    hits = engine.search("pages", {"_source": [wanted], "size": 10})["hits"]["hits"]
    assert {hit["_id"]: hit["_source"] for hit in hits} == {
        id_: asked.apply(source) for id_, source in sources.items()
    }
