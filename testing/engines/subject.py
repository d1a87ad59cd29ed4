"""The documents and helpers of the engine checks."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from shinglefold.contracts.engine import Engine

#: Field types that every engine must support; the object has the form of stored fingerprints.
MAPPINGS: Mapping[str, Any] = {
    "properties": {
        "title": {"type": "text", "fields": {"exact": {"type": "keyword"}}},
        "body": {"type": "text"},
        "shelf": {"type": "keyword"},
        "pages": {"type": "integer"},
        "price": {"type": "double"},
        "lent": {"type": "boolean"},
        "printed": {"type": "date"},
        "posted": {"type": "date", "format": "epoch_millis"},
        "_dedup": {
            "properties": {
                "scheme": {"type": "keyword"},
                "shingles": {"type": "integer"},
                "supershingles": {"type": "keyword"},
                "signature": {"type": "binary", "doc_values": True},
            }
        },
    },
    "_meta": {"shinglefold": {"id": "sf1-kit"}},
}

_TITLES = ("river birds", "mountain birds", "river fish", "desert sand", "night sky", "birds birds birds")
_BODIES = (
    "the grey heron waits by the slow river",
    "the eagle circles over the high mountain",
    "a pike hides in the slow river",
    "sand moves with the wind",
    "stars over the high desert",
    "heron and eagle share the high lake",
)
#: The ids have another order than all other fields, so no order is right by chance.
IDS = ("f", "b", "e", "a", "d", "c")


def document(number: int) -> dict[str, Any]:
    """Return one of the six documents."""
    made: dict[str, Any] = {
        "title": _TITLES[number],
        "body": _BODIES[number],
        "shelf": ["north", "old"] if number % 2 else "south",
        "pages": 100 - 10 * number,
        "price": 1.5 * number,
        "lent": number > 3,
        "printed": f"2024-0{number + 1}-15T12:00:00Z",
        "posted": 1_704_067_200_000 + number,
        "_dedup": {
            "scheme": "sf1-kit",
            "shingles": 40 + number,
            "supershingles": [f"00{number % 2}aaaa", f"01{number}bbbb"],
            # A multiple of three bytes, because OpenSearch omits the padding in doc values.
            "signature": "AAECAwQFBgcICQoL",
        },
    }
    if number == 4:
        del made["pages"], made["_dedup"]
    return made


def actions(index: str) -> list[dict[str, Any]]:
    """Return the bulk actions that index all documents."""
    return [{"_index": index, "_id": id_, "_source": document(number)} for number, id_ in enumerate(IDS)]


@contextmanager
def empty(engine: Engine, mappings: Mapping[str, Any] = MAPPINGS) -> Iterator[str]:
    """Create an index for one check, and delete it afterwards."""
    index = f"conformance-{uuid.uuid4().hex[:12]}"
    engine.create_index(index, mappings, {})
    try:
        yield index
    finally:
        if engine.index_exists(index):
            engine.delete_index(index)


@contextmanager
def library(engine: Engine) -> Iterator[str]:
    """Create an index with all six documents, refreshed."""
    with empty(engine) as index:
        result = engine.bulk(actions(index))
        assert result.indexed == len(IDS), (
            f"{len(IDS)} documents given, {result.indexed} indexed: {result.failures}"
        )
        engine.refresh(index)
        yield index


@contextmanager
def raises(expected: type[Exception], of: str) -> Iterator[None]:
    """Check that the block raises the expected error, with a message."""
    message = None
    try:
        yield
    except expected as error:
        message = str(error)
    assert message is not None, f"{of}: expected {expected.__name__}, nothing was raised"
    assert message, f"{of}: the error has no message"


def hits(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the hits of a response."""
    found: list[dict[str, Any]] = response["hits"]["hits"]
    return found


def ids(response: Mapping[str, Any]) -> list[str]:
    """Return the ids of the hits of a response, in order."""
    return [hit["_id"] for hit in hits(response)]


def found(engine: Engine, index: str, query: Mapping[str, Any]) -> set[str]:
    """Return the ids of the documents that match a query."""
    return set(ids(engine.search(index, {"query": query, "size": 100})))
