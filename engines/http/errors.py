"""What a server's refusal means: from status and body to our errors. Both products speak alike here."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from types import MappingProxyType
from typing import Any

from shinglefold.contracts.shard_failures import NODE_GONE
from shinglefold.errors import (
    AuthenticationFailed,
    EngineError,
    EngineUnavailable,
    IndexExists,
    IndexMissing,
    IndexReadOnly,
    PermissionDenied,
    PitExpired,
    UnsupportedQuery,
    WindowTooLarge,
)

#: Statuses that mean: not now.
BUSY = frozenset({429, 502, 503, 504})
_LONGEST = 500
#: A mapping whose ``dynamic`` is ``strict``.
_STRICT = re.compile(r"dynamic introduction of \[(?P<field>[^]]+)\] within \[(?P<within>[^]]*)\]")
#: Statuses that mean: something in the request, not the asking, was wrong.
MALFORMED = frozenset({400, 413})
_Meaning = tuple[type[EngineError], str]
_BLOCK = "cluster_block_exception"
_CLOSED = "index_closed_exception"
#: A node was lost in the middle of a request, or is not back yet; answered with status 500.
_NODE_LOST = (
    "node_disconnected_exception",
    "node_not_connected_exception",
    "node_closed_exception",
    "connect_transport_exception",
    "send_request_transport_exception",
    "receive_timeout_transport_exception",
)
#: What no document of an index gets past, and somebody has to lift.
FOR_ALL = frozenset({_BLOCK, _CLOSED})


@dataclass(frozen=True, slots=True)
class ClientErrors:
    """What one client raises, and what it means.

    ``raised`` are its exceptions; ``translate(error, who)`` makes ours of one, ``status(error)`` tells the
    HTTP status, 400 where the client itself could not write the request, 0 where there was no answer.
    """

    raised: tuple[type[Exception], ...]
    translate: Callable[[Exception, str], EngineError]
    status: Callable[[Exception], int]


class NoDocument(EngineError):
    """There is no such document; never leaves the adapters."""


class NotRefreshed(EngineUnavailable):
    """Some copies of an index answer searches as they were before a refresh; ask for it again."""


_MISSING_REMEDY = "Create it first, or check its name."
_DELETED_REMEDY = (
    "It was deleted while it was read under a point in time: begin anew with an index that is there."
)
_BY_TYPE: Mapping[str, _Meaning] = MappingProxyType(
    {
        "index_not_found_exception": (IndexMissing, _MISSING_REMEDY),
        "resource_already_exists_exception": (IndexExists, "Delete it or take another name."),
        "search_context_missing_exception": (
            PitExpired,
            "The point in time was closed or ran out; open another, with a longer keep_alive.",
        ),
        **dict.fromkeys(
            _NODE_LOST, (EngineUnavailable, "Try again; where it stays so, see that all nodes run.")
        ),
        _CLOSED: (EngineError, "Open the index (POST INDEX/_open)."),
        "index_create_block_exception": (
            IndexReadOnly,
            "The cluster takes no new indices, mostly for want of disk space: free some, then set "
            "cluster.blocks.create_index to null, if the server does not do it by itself.",
        ),
        _BLOCK: (
            IndexReadOnly,
            "Lift the block: set index.blocks.* of the index to null.",
        ),
    }
)
_BY_STATUS: Mapping[int, _Meaning] = MappingProxyType(
    {
        400: (UnsupportedQuery, "Correct the request."),
        405: (UnsupportedQuery, "This server was built without it."),
        401: (AuthenticationFailed, "Check user and password, API key or token."),
        403: (PermissionDenied, "Ask for a role that allows it, or use other credentials."),
        413: (EngineError, "Send less at once, or raise http.max_content_length."),
        **dict.fromkeys(BUSY, (EngineUnavailable, "Try again later, or send less at once.")),
    }
)
_WINDOW = "Result window is too large"
_WINDOW_REMEDY = "Use search_after under a point in time, or raise index.max_result_window."
_FIELDS = "Limit of total fields"
_FIELDS_REMEDY = (
    "The index has as many fields as it may: take one with fewer, or raise that "
    '(PUT /INDEX/_settings {"index.mapping.total_fields.limit": …}).'
)
_DISK_REMEDY = (
    "Free disk space or add some; then set index.blocks.read_only_allow_delete of the index to null, "
    "if the server does not do it by itself."
)
_READ_BLOCK_REMEDY = "The index is blocked for reading: set its index.blocks.read to null."
#: A block that a server sets and lifts by itself: nobody is elected to manage the cluster, or it is starting.
_NOT_YET = "blocked by: [SERVICE_UNAVAILABLE/"
_NOT_YET_REMEDY = (
    "Try again later; where it stays so, see that more than half of the nodes that may be elected run."
)
_CLUSTER_REMEDY = (
    "Lift the block: set cluster.blocks.read_only and cluster.blocks.read_only_allow_delete to null "
    "(PUT /_cluster/settings)."
)
_MOVED_REMEDY = "The address sends to another, as http:// often does to https://: give that one."
#: Words of a block, and what it means.
_BLOCKS: Mapping[str, _Meaning] = MappingProxyType(
    {
        _NOT_YET: (EngineUnavailable, _NOT_YET_REMEDY),
        "flood-stage": (IndexReadOnly, _DISK_REMEDY),
        "/cluster read-only": (IndexReadOnly, _CLUSTER_REMEDY),
        "index read (api)": (PermissionDenied, _READ_BLOCK_REMEDY),
    }
)
#: OpenSearch's words; it answers with status 500.
#: OpenSearch refuses a request with this, Elasticsearch each update in it.
_PARTLY_SEEN = (
    "Update is not supported when FLS or DLS",
    "if field or document level security is enabled",
)
_PARTLY_SEEN_REMEDY = (
    "Whoever sees only some documents or fields can't update any, so nothing unseen is lost: do it as a user "
    "whose role has no document- or field-level security."
)


def refusal(status: int, body: object, who: str) -> EngineError:
    """Return the error for an answer that refuses.

    Args:
        body: the answer's JSON, or its text.
        who: the server, as messages name it.
    """
    if status == 404 and isinstance(body, Mapping) and body.get("found") is False:
        return NoDocument(f"{who}: no document {body.get('_id')!r} in {body.get('_index')!r}")
    if isinstance(body, Mapping) and "error" not in body and "_shards" in body:
        return NotRefreshed(shards_told(body["_shards"], who))
    said = reason(body)
    meaning, remedy = _meaning(status, error_type(body), said)
    return meaning(f"{who}: {said or 'refused without a word'} ({status}). {remedy}")


def under_pit(error: EngineError) -> EngineError:
    """Return the error of a search under a point in time, which was of an index that was there."""
    if not isinstance(error, IndexMissing):
        return error
    return IndexMissing(str(error).replace(_MISSING_REMEDY, _DELETED_REMEDY))


def shards_told(shards: Mapping[str, Any], who: str) -> str:
    """Return what an answer says of copies that could not be refreshed."""
    total, successful = int(shards.get("total") or 0), int(shards.get("successful") or 0)
    why = "; ".join(dict.fromkeys(reason(one.get("reason")) for one in shards.get("failures") or ()))
    return (
        f"{who}: {total - successful} of {total} copies of shards were not refreshed"
        f"{f' ({_short(why)})' if why else ''}, so that searches may not see all that was written. Try again."
    )


def block_remedy(said: str) -> str:
    """Return how the block is lifted that an answer tells of; empty where none is, or it ends by itself."""
    return _meaning(403, _BLOCK, said)[1] if _BLOCK in said and _NOT_YET not in said else ""


def closed_remedy(said: str) -> str:
    """Return what opens an index that an answer says is closed; empty where it does not."""
    return _BY_TYPE[_CLOSED][1] if _CLOSED in said else ""


def unseen_remedy(said: str) -> str:
    """Return who can update what others see a part of; empty where it is something else."""
    return _PARTLY_SEEN_REMEDY if _is_partly_seen(said) else ""


def _is_partly_seen(said: str) -> bool:
    return any(words in said for words in _PARTLY_SEEN)


def field_remedy(said: str) -> str:
    """Return what to do about a field that a mapping does not take; empty where it is something else."""
    found = _STRICT.search(said)
    if found is None:
        return ""
    whole = ".".join(name for name in (found["within"], found["field"]) if name not in ("_doc", ""))
    return (
        f"The mapping of the index is strict and has no field [{whole}]: add it (PUT /INDEX/_mapping), or "
        f'leave it out of the documents (put {{"remove": {{"field": "{whole}"}}}} last in the pipeline)'
    )


def unavailable(who: str, why: object) -> EngineUnavailable:
    """Return the error for a server that does not answer."""
    return EngineUnavailable(
        f"{who} does not answer: {_short(str(why))}. Check the address, that the server runs, and for "
        "https the certificates (ca_file)."
    )


def not_json(who: str, causes: Sequence[object]) -> EngineError:
    """Return the error for a request that can't be written as JSON, or for an answer that is none.

    Args:
        causes: what the client found, or the exceptions it caught.
    """
    if not is_broken_answer(causes):
        why = _short(str(causes[-1]) if causes else "the client can't write the request")
        return UnsupportedQuery(f"{who}: {why}. Give only what JSON has.")
    broken = next((cause for cause in causes if isinstance(cause, JSONDecodeError)), None)
    where = f" ({broken.msg}, at character {broken.pos})" if broken else ""
    return EngineUnavailable(
        f"{who} answers with what is no JSON{where}: the answer was cut on its way, or something else "
        "answers. Try again, and check the address."
    )


def is_broken_answer(causes: Sequence[object]) -> bool:
    """Tell whether an answer could not be read; else it was the request that could not be written."""
    return any(isinstance(cause, JSONDecodeError) or "deserialize" in str(cause) for cause in causes)


def error_type(body: object) -> str:
    """Return the type of the error that caused an answer; empty where it does not say."""
    return next((str(cause["type"]) for cause in _causes(body) if "type" in cause), "")


def reason(body: object) -> str:
    """Return an answer's own words: type and reason, and what caused it."""
    causes = list(_causes(body))
    if not causes:
        said = (
            body.get("Message", body.get("message", body.get("error"))) if isinstance(body, Mapping) else body
        )
        return _short(str(said or ""))
    first, *others = causes
    words = [f"{first.get('type', 'error')}: {first.get('reason')}"]
    words += [str(other["reason"]) for other in others if other.get("reason")]
    return _short(", caused by: ".join(dict.fromkeys(words)))


def _meaning(status: int, kind: str, said: str) -> _Meaning:
    if _WINDOW in said:
        return WindowTooLarge, _WINDOW_REMEDY
    if NODE_GONE in said:
        return PitExpired, "A node has left and taken the point in time with it; open another."
    if _FIELDS in said:
        return UnsupportedQuery, _FIELDS_REMEDY
    if kind == _BLOCK and (known := next((one for word, one in _BLOCKS.items() if word in said), None)):
        return known
    if _is_partly_seen(said):
        return PermissionDenied, _PARTLY_SEEN_REMEDY
    fallback = EngineError, _MOVED_REMEDY if 300 <= status < 400 else "See the server's log."
    return _BY_TYPE.get(kind) or _BY_STATUS.get(status, fallback)


def _causes(body: object) -> Iterator[Mapping[str, object]]:
    """Yield the root cause of an answer's error, and then what caused it, outermost first."""
    error = body.get("error", body) if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping) or not {"type", "reason", "root_cause"} & error.keys():
        return
    roots = error.get("root_cause")
    cause: object = roots[0] if isinstance(roots, list) and roots else error
    yield from _chain(cause)
    if cause is not error:
        yield from _chain(error.get("caused_by"))


def _chain(cause: object) -> Iterator[Mapping[str, object]]:
    while isinstance(cause, Mapping):
        yield cause
        cause = cause.get("caused_by")


def _short(text: str) -> str:
    text = " ".join(text.split()).rstrip(".;")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
