"""Documents read again, after somebody else was faster, and what it means that a server refuses a write."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from shinglefold.backoff import Backoff, retry_unavailable
from shinglefold.contracts import BulkFailure, Engine
from shinglefold.errors import EngineError, EngineUnavailable, IndexMissing
from shinglefold.ingest.maintenance.stored import Key, found_by
from shinglefold.shards import complete

Hit = Mapping[str, Any]
#: How often a document is tried again whose other writers are always faster.
ROUNDS = 10
#: Documents read again in one request.
_BATCH = 200
_REFUSED, _MISSING, _CONFLICT = 400, 404, 409


def fate(failure: BulkFailure) -> Literal["conflict", "gone", "refused"]:
    """Return what became of an update that was not made.

    Raises:
        IndexMissing: the index is gone.
        EngineUnavailable: the engine is too busy.
        EngineError: it takes no updates at all.
    """
    if failure.status == _CONFLICT:
        return "conflict"
    if failure.status == _MISSING and "index_not_found" in failure.reason:
        raise IndexMissing(f"the index {failure.action['_index']!r} was deleted meanwhile")
    if failure.status == _MISSING:
        return "gone"
    if failure.status == _REFUSED:
        return "refused"
    if failure.status in (429, 503):
        raise EngineUnavailable(f"the engine is too busy: {failure.reason}; go on later")
    raise EngineError(f"the engine takes no updates ({failure.status}): {failure.reason}")


def read_again(engine: Engine, keys: Iterable[Key], backoff: Backoff) -> Iterator[Hit]:
    """Yield the newest versions of documents; those that are gone are missing.

    Raises:
        EngineError: the engine can't be asked.
    """
    ids = defaultdict(list)
    for key in keys:
        ids[key.index, key.routing].append(key.id)
    for index in {index for index, _ in ids}:
        retry_unavailable(partial(engine.refresh, index), backoff)
    for (index, routing), several in ids.items():
        for start in range(0, len(several), _BATCH):
            yield from _fetch(engine, index, routing, several[start : start + _BATCH], backoff)


def _fetch(
    engine: Engine, index: str, routing: str | None, ids: Sequence[str], backoff: Backoff
) -> list[Hit]:
    body = {"query": found_by(routing, ids), "size": len(ids), **engine.can.unaltered}
    if engine.can.seq_no:
        body["seq_no_primary_term"] = True
    answer = retry_unavailable(lambda: complete(engine.search(index, body)), backoff)
    found: list[Hit] = answer["hits"]["hits"]
    return found
