"""Hits told apart by the number of their last change instead of their id.

Engines keep ids beside the sources, so that reading 200 ids costs more than all that folding reads of the
hits. A shard numbers its changes, and these numbers are doc values: no two documents of a shard share one,
but where an index was made of another with more shards (``_shrink``), whose numbers its documents keep.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from functools import cached_property
from typing import Any

from shinglefold.contracts import JSON
from shinglefold.rerank.hits import Hit
from shinglefold.rerank.request.bodies import chosen_body

NUMBER = "_seq_no"
#: What an answer depends on the query for, beside its hits and their order.
_OF_QUERY = ("highlight", "explain", "script_fields", "rescore")
_INSIDE_QUERY = ("'_name'", "'inner_hits'")
Key = tuple[Any, ...]
#: Hits a server returns at a time unless told.
_MOST = 10_000


class Untold(Exception):
    """Hits that numbers do not tell apart, or that changed since: they must be read again, with ids."""


def without_ids(window: JSON) -> JSON:
    """Return the body of a window that reads numbers instead of ids; the same where it needs sources."""
    if window["_source"] is not False:
        return window
    fields = [*window["docvalue_fields"], NUMBER]
    return {**window, "stored_fields": "_none_", "docvalue_fields": fields}


def are_numbered(hits: Sequence[Hit]) -> bool:
    """Tell whether hits were read without ids."""
    return bool(hits) and "_id" not in hits[0]


class SeqNoFetch:
    """Fetches hits by their numbers and the digests of their texts, of one shard or of several."""

    def __init__(self, body: Mapping[str, Any], shards: int, dedup: str) -> None:
        self._body = body
        self._shards = shards or 2
        self._digest = f"{dedup}.digest"
        self._dropped = () if body.get("seq_no_primary_term") else (NUMBER, "_primary_term")

    def request(self, hits: Sequence[Hit], source: Any) -> JSON:  # noqa: ANN401 - JSON
        """Return the body that fetches some hits with everything the request wants of them.

        Raises:
            Untold: two of them have the same number and the same text.
        """
        keys = [self._key(hit, _number(hit)) for hit in hits]
        if len(set(keys)) < len(keys):
            raise Untold
        filters: list[JSON] = [{"terms": {NUMBER: sorted({number for _, number, _ in keys})}}]
        digests = {text for _, _, text in keys}
        if self._shards > 1 and None not in digests:
            # Other shards have documents of the same numbers; hardly any is a copy of a hit as well.
            filters.append({"terms": {self._digest: sorted(map(str, digests))}})
        body = self._body if _needs_query(self._body) else {**self._body, "query": None}
        request = chosen_body(body, {"bool": {"filter": filters}}, self._most(hits), source)
        request["docvalue_fields"] = [*(request.get("docvalue_fields") or ()), self._digest]
        return {**request, "seq_no_primary_term": True}

    def found(self, hits: Sequence[Hit], answer: Sequence[JSON]) -> list[JSON]:
        """Return of an answer the hits asked for, in their order.

        Raises:
            Untold: one is missing, or there are two of it.
        """
        if len(answer) >= self._most(hits):
            # There may be more: another document of its number might stand for the one asked for.
            raise Untold
        fetched: dict[Key, JSON] = {}
        for hit in answer:
            key = self._key(hit, hit.get(NUMBER))
            if key in fetched:
                raise Untold
            fetched[key] = hit
        try:
            return [self._as_asked(fetched[self._key(hit, _number(hit))]) for hit in hits]
        except KeyError:
            raise Untold from None

    def _most(self, hits: Sequence[Hit]) -> int:
        """Return more than may have the numbers of some hits, where an index has as many shards as ever."""
        return min(_MOST, len(hits) * self._shards + 1)

    def _key(self, hit: Hit, number: object) -> Key:
        return hit.get("_index"), number, self._text(hit)

    def _text(self, hit: Hit) -> object:
        values = (hit.get("fields") or {}).get(self._digest)
        return values[0] if values else None

    def _as_asked(self, hit: JSON) -> JSON:
        """Return a hit without what only finding it needed."""
        kept = dict(hit)
        for name in self._dropped:
            kept.pop(name, None)
        if "fields" in kept and not self._asks_for_digest:
            kept["fields"] = {name: value for name, value in kept["fields"].items() if name != self._digest}
            if not kept["fields"]:
                del kept["fields"]
        return kept

    @cached_property
    def _asks_for_digest(self) -> bool:
        asked = [*(self._body.get("docvalue_fields") or ()), *(self._body.get("fields") or ())]
        names = [one["field"] if isinstance(one, Mapping) else one for one in asked]
        return any(fnmatch(self._digest, str(name)) for name in names)


def _number(hit: Hit) -> int:
    try:
        number: int = hit["fields"][NUMBER][0]
    except (KeyError, IndexError):
        raise Untold from None
    return number


def _needs_query(body: Mapping[str, Any]) -> bool:
    if any(key in body for key in _OF_QUERY):
        return True
    query = str(body.get("query"))
    return any(key in query for key in _INSIDE_QUERY)
