"""Plan and carry out the deletion of an index, or of some of its documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shinglefold.contracts.engine import JSON, BulkResult, Engine, IndexInfo
from shinglefold.errors import ConfigError, EngineError, IndexMissing
from shinglefold.options.validation import check_engine, check_str, check_strings, check_type
from shinglefold.rerank.hits import check_complete

#: The number of ids per search, and the most ids shown in a plan.
_PAGE = 1000
_SHOWN = 10
_MOST_IDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Deletion:
    """The plan of a deletion.

    Attributes:
        index: the name of the index itself, even if an alias was given.
        aliases: its aliases, which are deleted with it.
        query: the query for the documents to delete; None for the whole index.
        documents: number of documents to delete; None if the index can't be read.
        size: bytes of the index, if known and the whole index is deleted.
        ids: some of the documents to delete.
        missing: given ids that do not exist.
        unread: why the index can't be read, else empty.
    """

    index: str
    aliases: tuple[str, ...]
    query: Mapping[str, Any] | None
    documents: int | None
    size: int | None = None
    ids: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unread: str = ""

    def to_json(self) -> JSON:
        """Return the plan as JSON."""
        return {
            "index": self.index,
            "aliases": list(self.aliases),
            "whole_index": self.query is None,
            "documents": self.documents,
            "bytes": self.size,
            "ids": list(self.ids),
            "missing": list(self.missing),
        } | ({"unread": self.unread} if self.unread else {})


def plan_deletion(
    engine: Engine, index: str, ids: Sequence[str] | None = None, query: Mapping[str, Any] | None = None
) -> Deletion:
    """Return what a deletion would delete, without deleting it.

    Args:
        index: an index, or an alias of one.
        ids: ids of documents to delete; without ids and query, the whole index is deleted.
        query: a query for the documents to delete.

    Raises:
        ConfigError: the name is a pattern, or an alias of several indices; or both ids and a query are given;
            or the list of ids is empty.
        IndexMissing: there is no such index.
    """
    check_engine(engine)
    check_str("index", index)
    if ids is not None and not check_strings("ids", ids, _MOST_IDS):
        raise ConfigError("ids: the list is empty; leave ids out to delete the whole index")
    if ids and query is not None:
        raise ConfigError("both ids and a query are given: give one of the two")
    info = _one_index(engine, index)
    own, aliases, size = info.name, info.aliases, info.size
    if ids:
        return _by_ids(engine, own, aliases, tuple(dict.fromkeys(ids)))
    if query is None:
        counted, unread = _counted(engine, info)
        return Deletion(own, aliases, None, counted, size, unread=unread)
    count, first = _found(engine, own, query, _SHOWN)
    return Deletion(own, aliases, query, count, ids=first)


def delete(engine: Engine, plan: Deletion) -> BulkResult:
    """Carry out a deletion and refresh the index.

    Returns:
        The number of deleted documents, and those that the engine did not delete.
    """
    check_engine(engine)
    check_type("plan", plan, Deletion, "what plan_deletion returns")
    if plan.query is not None:
        return engine.delete_by_query(plan.index, plan.query)
    engine.delete_index(plan.index)
    return BulkResult(plan.documents or 0)


def _one_index(engine: Engine, index: str) -> IndexInfo:
    if "*" in index or "," in index:
        raise ConfigError(f"{index!r} may mean several indices; name the one to delete")
    found = engine.indices(index)
    if not found:
        raise IndexMissing(f"no index {index!r}; check the name")
    if len(found) > 1:
        raise ConfigError(
            f"{index!r} is an alias of {', '.join(one.name for one in found)}; name the one to delete"
        )
    (info,) = found
    return info


def _by_ids(engine: Engine, index: str, aliases: tuple[str, ...], ids: tuple[str, ...]) -> Deletion:
    there: set[str] = set()
    for begin in range(0, len(ids), _PAGE):
        query = {"ids": {"values": list(ids[begin : begin + _PAGE])}}
        there.update(_found(engine, index, query, _PAGE)[1])
    present = tuple(one for one in ids if one in there)
    missing = tuple(one for one in ids if one not in there)
    query = {"ids": {"values": list(present)}}
    return Deletion(index, aliases, query, len(present), ids=present[:_SHOWN], missing=missing)


def _counted(engine: Engine, info: IndexInfo) -> tuple[int | None, str]:
    """Return the number of documents of an index, or None and the reason if it can't be read."""
    try:
        counted, _ = _found(engine, info.name, None, 0)
    except EngineError as error:
        # A damaged index can be deleted, too. Servers count documents even if the client may not read them.
        return None, str(error)
    return (None if info.documents is None else counted), ""


def _found(
    engine: Engine, index: str, query: Mapping[str, Any] | None, size: int
) -> tuple[int, tuple[str, ...]]:
    """Return the number of documents that a query finds, and the ids of the first ones."""
    body: JSON = {"size": size, "track_total_hits": True, "_source": False, **engine.can.unaltered}
    if query is not None:
        body["query"] = query
    hits = check_complete(engine.search(index, body, engine.can.newest))["hits"]
    return int(hits["total"]["value"]), tuple(str(hit["_id"]) for hit in hits["hits"])
