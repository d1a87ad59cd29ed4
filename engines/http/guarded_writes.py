"""Guarded writes and reads of documents as they are now; the servers agree on both."""

import operator
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from shinglefold.contracts.engine import JSON, Guard, Parameters, VersionedDocument, WriteResult
from shinglefold.engines.http.admin import AdministeredEngine
from shinglefold.engines.http.bulk import DROPPED, DROPPED_REASON, was_dropped
from shinglefold.engines.http.errors import FOR_ALL, error_type, field_remedy, reason, refusal
from shinglefold.engines.http.responses import check_name, plain
from shinglefold.engines.http.search_requests import HttpSearches, Steps
from shinglefold.errors import PermissionDenied
from shinglefold.runtime.sans_io import run

_BESIDE = ("_index", "_id", "routing", "if_seq_no", "if_primary_term", "pipeline")
_UUID = "index.uuid"


class GuardedRequests(HttpSearches):
    """What a blocking and an awaited engine do alike for documents whose versions writes are guarded with."""

    @property
    def newest(self) -> Parameters:
        """A refresh and a write reach every copy here, so that any may be asked."""
        return MappingProxyType({})

    def _writing(self, actions: Sequence[Mapping[str, Any]], refresh: bool) -> Steps[list[WriteResult]]:
        if not actions:
            return []
        lines = [line for action in actions for line in _lines(action)]
        with self._asking():
            answer = plain((yield lambda: self._bulk_once(lines, refresh=refresh)))
        for told in (told for item in answer["items"] for told in item.values()):
            if error_type(told) in FOR_ALL:
                raise refusal(told["status"], told, self.who)
        return [_written(item, action) for item, action in zip(answer["items"], actions, strict=True)]

    def _reading(
        self, index: str, ids: Sequence[str], source: Sequence[str], routings: Sequence[str | None]
    ) -> Steps[list[VersionedDocument | None]]:
        check_name(index)
        if not ids:
            return []
        each = zip(ids, routings or [None] * len(ids), strict=True)
        wanted = {"docs": [_wanted(index, id_, source, routing) for id_, routing in each]}
        with self._asking():
            answer = plain((yield lambda: self._client.mget(body=wanted, **self.newest)))
        for found in answer["docs"]:
            if "error" in found:
                raise refusal(503, found, self.who)
        return [_held(found) for found in answer["docs"]]

    def _identifying(self, indices: Sequence[str]) -> Steps[dict[str, str]]:
        try:
            with self._asking():
                answer = plain(
                    (
                        yield lambda: self._client.indices.get_settings(
                            index=",".join(indices), name=_UUID, flat_settings=True, ignore_unavailable=True
                        )
                    )
                )
        except PermissionDenied:
            return dict.fromkeys(indices, "")
        return {name: entry["settings"][_UUID] for name, entry in answer.items() if entry["settings"]}

    @abstractmethod
    def _bulk_once(self, lines: Sequence[JSON], *, refresh: bool) -> Any:  # noqa: ANN401 - the clients' own types
        """Send the lines of one bulk request through the client."""


class GuardedEngine(AdministeredEngine, GuardedRequests):
    """An engine whose documents have versions that writes can be guarded with."""

    def identities(self, indices: Sequence[str]) -> dict[str, str]:
        """Return what tells each index from another of its name; see ``GuardedWrites``."""
        return run(self._identifying(indices), operator.call)

    def write(self, actions: Sequence[Mapping[str, Any]], *, refresh: bool = False) -> list[WriteResult]:
        """Run bulk actions once and return what became of each; see ``GuardedWrites``."""
        return run(self._writing(actions, refresh), operator.call)

    def read(
        self,
        index: str,
        ids: Sequence[str],
        source: Sequence[str] = (),
        routings: Sequence[str | None] = (),
    ) -> list[VersionedDocument | None]:
        """Return documents as they are now; see ``GuardedWrites``."""
        return run(self._reading(index, ids, source, routings), operator.call)


def _lines(action: Mapping[str, Any]) -> Iterator[JSON]:
    verb = action.get("_op_type", "index")
    yield {verb: {name: action[name] for name in _BESIDE if name in action}}
    if verb == "update":
        # Without detecting that nothing changes, so that there is another version in any case.
        yield {"doc": action["doc"], "detect_noop": False}
    elif verb != "delete":
        yield action["_source"]


def _wanted(index: str, id_: str, source: Sequence[str], routing: str | None) -> JSON:
    wanted: JSON = {"_index": index, "_id": id_, **({"_source": list(source)} if source else {})}
    return wanted if routing is None else {**wanted, "routing": routing}


def _written(item: Mapping[str, Any], action: Mapping[str, Any]) -> WriteResult:
    (told,) = item.values()
    if was_dropped(item):
        return WriteResult(DROPPED, None, DROPPED_REASON)
    if elsewhere := _elsewhere(told, action):
        return WriteResult(DROPPED, None, elsewhere)
    if "error" in told:
        why = reason({"error": told["error"]})
        remedy = field_remedy(why)
        return WriteResult(told["status"], None, f"{why}. {remedy}" if remedy else why)
    return WriteResult(told["status"], Guard(told["_seq_no"], told["_primary_term"]))


def _elsewhere(told: Mapping[str, Any], action: Mapping[str, Any]) -> str:
    """Return in words where the index's own pipeline sent a document: no guard of ours holds there."""
    index, id_ = told.get("_index", action["_index"]), told.get("_id", action.get("_id"))
    if index != action["_index"]:
        return f"the index's own pipeline sends it to the index {index!r}"
    if "_id" in action and id_ != action["_id"]:
        return f"the index's own pipeline gives it the id {id_!r}"
    return ""


def _held(found: Mapping[str, Any]) -> VersionedDocument | None:
    if not found.get("found"):
        return None
    return VersionedDocument(
        found["_id"], found.get("_source") or {}, Guard(found["_seq_no"], found["_primary_term"])
    )
