"""Deleting what a query finds, by searches and bulk requests: some servers come without a request for it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from shinglefold.contracts.engine import JSON, BulkResult, Engine, GuardedWrites, Search, search_parts
from shinglefold.errors import EngineError, EngineUnavailable

#: Documents found and deleted at a time.
_ROUND = 1_000


def delete_found(engine: Engine, index: str, query: Mapping[str, Any]) -> BulkResult:
    """Delete what a query finds, round by round, until nothing is found or nothing more can be deleted.

    A document that changes between being found and being deleted is looked at again in the next round.

    Raises:
        EngineUnavailable: not all shards answered, so that what they have would stay.
    """
    newest = engine.newest if isinstance(engine, GuardedWrites) else None
    body = {"query": dict(query), "size": _ROUND, "_source": False, "seq_no_primary_term": True}
    body |= engine.can.unaltered
    deleted = 0
    engine.refresh(index)
    while found := _complete(engine.search(index, body, newest)):
        result = engine.bulk([_deletion(hit) for hit in found])
        deleted += result.indexed
        engine.refresh(index)
        if not result.indexed:
            return BulkResult(deleted, result.failures)
    return BulkResult(deleted)


def _complete(answer: JSON) -> Sequence[JSON]:
    if answer["_shards"]["failed"] or answer["timed_out"]:
        raise EngineUnavailable("deleting: not all shards answered, so not all was deleted; try again later")
    hits: Sequence[JSON] = answer["hits"]["hits"]
    return hits


def _deletion(hit: JSON) -> JSON:
    action = {
        "_op_type": "delete",
        "_index": hit["_index"],
        "_id": hit["_id"],
        "if_seq_no": hit["_seq_no"],
        "if_primary_term": hit["_primary_term"],
    }
    return {**action, "routing": hit["_routing"]} if "_routing" in hit else action


Answer = JSON | EngineError


def one_by_one(search: Callable[..., JSON], searches: Iterable[Search]) -> list[Answer]:
    """Return the answer to each search, or what it raised."""
    return [_answer(search, one) for one in searches]


def _answer(search: Callable[..., JSON], one: Search) -> Answer:
    try:
        return search(*search_parts(one))
    except EngineError as error:
        return error
