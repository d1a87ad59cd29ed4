"""An index whose documents are decided about, as gates let them in."""

from typing import Any

from shinglefold.engines.embedded import EmbeddedEngine

FIELDS = ("word", "number")


def create(engine: EmbeddedEngine) -> None:
    properties = {"word": {"type": "keyword"}, "number": {"type": "long"}}
    engine.create_index("pages", {"properties": properties}, {})


def put(number: int, version: int = 0, **more: Any) -> dict[str, Any]:
    source = {"number": number, "word": f"w{version}", "body": f"page {number} of many", **more}
    return {"_index": "pages", "_id": str(number), "_source": source}


def drop(number: int) -> dict[str, Any]:
    return {"_op_type": "delete", "_index": "pages", "_id": str(number)}


def decided(engine: EmbeddedEngine, *actions: dict[str, Any]) -> None:
    """Run actions as a gate does once it has decided."""
    with engine.deciding("pages", FIELDS):
        assert not engine.bulk(actions).failures


def stored(engine: EmbeddedEngine) -> dict[str, str]:
    """Return what searches see: the words of documents by id, none of them twice."""
    hits = engine.search("pages", {"size": 1000})["hits"]["hits"]
    assert len({hit["_id"] for hit in hits}) == len(hits)
    return {hit["_id"]: hit["_source"]["word"] for hit in hits}
