"""Translate a server's error answers (status and body) into our errors, for both products."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from types import MappingProxyType
from typing import Any

from shinglefold.contracts.engine import BUSY, NOT_RUN
from shinglefold.errors import (
    NODE_GONE,
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
    suggest,
)

#: The most letters of an error, and of an answer that an error quotes.
_LONGEST, _BEGIN = 500, 100
#: A mapping whose ``dynamic`` is ``strict``.
_STRICT = re.compile(r"dynamic introduction of \[(?P<field>[^]]+)\] within \[(?P<within>[^]]*)\]")
#: The beginnings of the clients' errors about an unreadable answer.
_UNREAD = re.compile("Unable to deserialize|Unknown mimetype, ")
#: Statuses of a request with malformed content.
MALFORMED = frozenset({400, 413})
_Meaning = tuple[type[EngineError], str]
_BLOCK = "cluster_block_exception"
_CLOSED = "index_closed_exception"
#: A node was lost during a request, or is not back yet; the status is 500.
_NODE_LOST = (
    "node_disconnected_exception",
    "node_not_connected_exception",
    "node_closed_exception",
    "connect_transport_exception",
    "send_request_transport_exception",
    "receive_timeout_transport_exception",
)
#: Errors that affect every document of an index until an administrator acts.
FOR_ALL = frozenset({_BLOCK, _CLOSED})


@dataclass(frozen=True, slots=True)
class ClientErrors:
    """The exceptions of a client, and their meaning.

    ``translate(error, who)`` returns our error for one of the exceptions in ``raised``. ``status(error)``
    returns the HTTP status: 400 if the client could not write the request, 0 if there was no answer.
    """

    raised: tuple[type[Exception], ...]
    translate: Callable[[Exception, str], EngineError]
    status: Callable[[Exception], int]

    def may_have_run(self, error: EngineUnavailable) -> bool:
        """Return whether a server may have run the request that failed; False if it was too busy."""
        cause = error.__cause__
        ran = not isinstance(cause, Exception) or self.status(cause) not in NOT_RUN
        return ran and not isinstance(error, NotRefreshed)


class NoDocument(EngineError):
    """A document does not exist; callers of the engines never see it."""


class NotRefreshed(EngineUnavailable):
    """Some copies of an index were not refreshed and still answer searches; the refresh can be retried."""


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
        404: (EngineError, "Check the name and the address, and its path if a proxy is in front."),
        405: (UnsupportedQuery, "This server was built without it."),
        401: (AuthenticationFailed, "Check user and password, API key or token."),
        403: (PermissionDenied, "Ask for a role that allows it, or use other credentials."),
        413: (EngineError, "Send less at once, or raise http.max_content_length."),
        **dict.fromkeys(BUSY, (EngineUnavailable, "Try again later, or send less at once.")),
    }
)
#: The statuses that servers give these errors where they answer a single request.
_READ_STATUSES = MappingProxyType(
    {
        "index_not_found_exception": 404,
        "security_exception": 403,
        **dict.fromkeys((_CLOSED, "illegal_argument_exception", "routing_missing_exception"), 400),
    }
)
_WINDOW = "Result window is too large"
_WINDOW_REMEDY = (
    'Raise the limit (PUT /INDEX/_settings {"index.max_result_window": …}), or use search_after under a '
    "point in time."
)
_FIELDS = "Limit of total fields"
_FIELDS_REMEDY = (
    "The index has as many fields as it may: take one with fewer, or raise that "
    '(PUT /INDEX/_settings {"index.mapping.total_fields.limit": …}).'
)
#: Our fields as text: documents with fingerprints were copied into an index that was not set up.
_COPIED = re.compile(
    r"ielddata(?: is disabled on|=true on) \[([^\]]+)\.(?:digest|signature|group|scheme|shingles)\]"
    r"(?: in \[(?P<index>[^\]]+)\])?"
)
_COPIED_REMEDY = (
    "Documents with fingerprints were copied into an index before it was set up, so that they are mapped as "
    "text: set up another index first, then copy the documents into it: {setup}"
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
#: A part of the server's message on a block; the error that it means, and the remedy.
_BLOCKS: Mapping[str, _Meaning] = MappingProxyType(
    {
        _NOT_YET: (EngineUnavailable, _NOT_YET_REMEDY),
        "flood-stage": (IndexReadOnly, _DISK_REMEDY),
        "/cluster read-only": (IndexReadOnly, _CLUSTER_REMEDY),
        "index read (api)": (PermissionDenied, _READ_BLOCK_REMEDY),
    }
)
#: OpenSearch refuses the whole request with this and status 500, Elasticsearch each update in it.
_FIELD_SECURITY = (
    "Update is not supported when FLS or DLS",
    "if field or document level security is enabled",
)
_FIELD_SECURITY_REMEDY = (
    "Whoever sees only some documents or fields can't update any, so nothing unseen is lost: do it as a user "
    "whose role has no document- or field-level security."
)


def refusal(status: int, body: object, who: str) -> EngineError:
    """Return the error for an answer that refuses.

    Args:
        body: the answer, as JSON or text.
        who: the server, as messages name it.
    """
    if status == 404 and isinstance(body, Mapping) and body.get("found") is False:
        return NoDocument(f"{who}: no document {body.get('_id')!r} in {body.get('_index')!r}")
    if isinstance(body, Mapping) and "error" not in body and "_shards" in body:
        return NotRefreshed(unrefreshed_shards(body["_shards"], who))
    text = reason(body)
    meaning, remedy = _text_mapping_meaning(text) or _meaning(status, error_type(body), text)
    return meaning(f"{who}: {text or 'refused without a word'} ({status}). {remedy}")


def under_pit(error: EngineError) -> EngineError:
    """Return the error of a search under a point in time, whose index existed when it was opened."""
    if not isinstance(error, IndexMissing):
        return error
    return IndexMissing(str(error).replace(_MISSING_REMEDY, _DELETED_REMEDY))


def unrefreshed_shards(shards: Mapping[str, Any], who: str) -> str:
    """Return a message about the copies of shards that were not refreshed."""
    total, successful = int(shards.get("total") or 0), int(shards.get("successful") or 0)
    why = "; ".join(dict.fromkeys(reason(one.get("reason")) for one in shards.get("failures") or ()))
    return (
        f"{who}: {total - successful} of {total} copies of shards were not refreshed"
        f"{f' ({_short(why)})' if why else ''}, so that searches may not see all that was written. Try again."
    )


def block_remedy(text: str) -> str:
    """Return how to remove the block that an error reports; empty if there is none or it ends by itself."""
    return _meaning(403, _BLOCK, text)[1] if _BLOCK in text and _NOT_YET not in text else ""


def closed_remedy(text: str) -> str:
    """Return how to open the index if an error reports that it is closed, else ""."""
    return _BY_TYPE[_CLOSED][1] if _CLOSED in text else ""


def field_security_remedy(text: str) -> str:
    """Return the remedy for a refusal by document- or field-level security; empty for other errors."""
    return _FIELD_SECURITY_REMEDY if any(words in text for words in _FIELD_SECURITY) else ""


def field_remedy(text: str) -> str:
    """Return what to do if an error reports a field that a strict mapping lacks, else ""."""
    found = _STRICT.search(text)
    if found is None:
        return ""
    whole = ".".join(name for name in (found["within"], found["field"]) if name not in ("_doc", ""))
    return (
        f"The mapping of the index is strict and has no field [{whole}]: add it (PUT /INDEX/_mapping), or "
        f'leave it out of the documents (put {{"remove": {{"field": "{whole}"}}}} last in the pipeline)'
    )


def unavailable(who: str, why: object) -> EngineUnavailable:
    """Return the error for a server that does not answer."""
    check = "Check the address, that the server runs, and for https the certificates (ca_file)."
    if "WRONG_VERSION_NUMBER" in str(why):
        check = "It speaks no TLS: write http:// instead of https://."
    return EngineUnavailable(f"{who} does not answer: {_short(str(why))}. {check}")


def not_json(who: str, causes: Sequence[object]) -> EngineError:
    """Return the error for a request that can't be written as JSON, or an answer that is not JSON.

    Args:
        causes: what the client reports, or the exceptions it caught.
    """
    if not is_broken_answer(causes):
        why = _short(str(causes[-1]) if causes else "the client can't write the request")
        return UnsupportedQuery(f"{who}: {why}. Give only what JSON has.")
    broken = next((cause for cause in causes if isinstance(cause, JSONDecodeError)), None)
    return broken_answer(who, f" ({broken.msg}, at character {broken.pos})" if broken else "")


def broken_answer(who: str, where: str = "", came: object = "") -> EngineUnavailable:
    """Return the error for an answer that is not JSON."""
    text = f", {_short(str(came), _BEGIN)!r}" if came else ""
    return EngineUnavailable(
        f"{who} answers with something that is not JSON{where}{text}: the answer was cut off, or something "
        "else answers. Try again, and check the address."
    )


def unexpected_answer(who: str, expected: str, came: object) -> EngineUnavailable:
    """Return the error for a JSON answer that lacks the parts expected for this request."""
    got = _short(str(came), _BEGIN)
    return EngineUnavailable(
        f"{who} answers with JSON that does not fit the request: expected {expected}, got {got}. "
        "Something else answers, such as a proxy. Try again, and check the address."
    )


def is_broken_answer(causes: Sequence[object]) -> bool:
    """Return whether an answer could not be read; otherwise the request could not be written."""
    return any(isinstance(cause, JSONDecodeError) or _UNREAD.match(str(cause)) for cause in causes)


def error_type(body: object) -> str:
    """Return the type of the root cause in an answer; empty if it has none.

    A server that loses a node while it collects answers names no root cause; then it is the first in the
    chain of causes that we know.
    """
    kinds = [str(cause["type"]) for cause in _causes(body) if "type" in cause]
    error = body.get("error") if isinstance(body, Mapping) else None
    if isinstance(error, Mapping) and error.get("root_cause") == []:
        kinds = [kind for kind in kinds if kind in _BY_TYPE or kind in _READ_STATUSES] or kinds
    return next(iter(kinds), "")


def read_status(item: object) -> int:
    """Return the status of a document that could not be read by ``_mget``, whose errors have none.

    An unknown error may be a lost node or shard, so another attempt can help.
    """
    return _READ_STATUSES.get(error_type(item), 503)


def reason(body: object) -> str:
    """Return type and reason of the error in an answer, and its causes."""
    causes = list(_causes(body))
    if not causes:
        text = (
            body.get("Message", body.get("message", body.get("error"))) if isinstance(body, Mapping) else body
        )
        return _short(str(text or ""))
    first, *others = causes
    words = [": ".join(str(word) for word in (first.get("type", "error"), first.get("reason")) if word)]
    words += [str(other["reason"]) for other in others if other.get("reason")]
    return _short(", caused by: ".join(dict.fromkeys(words)))


def _meaning(status: int, kind: str, text: str) -> _Meaning:
    if _WINDOW in text:
        return WindowTooLarge, _WINDOW_REMEDY
    if NODE_GONE in text:
        return PitExpired, "A node has left and taken the point in time with it; open another."
    if _FIELDS in text:
        return UnsupportedQuery, _FIELDS_REMEDY
    if kind == _BLOCK and (known := next((one for word, one in _BLOCKS.items() if word in text), None)):
        return known
    if remedy := field_security_remedy(text):
        return PermissionDenied, remedy
    fallback = EngineError, _MOVED_REMEDY if 300 <= status < 400 else "See the server's log."
    return _BY_TYPE.get(kind) or _BY_STATUS.get(status, fallback)


def _text_mapping_meaning(text: str) -> _Meaning | None:
    """Return the meaning of an error about fingerprints that are mapped as text; None for another error."""
    found = _COPIED.search(text)
    if found is None:
        return None
    setup = suggest("setup", f"{found['index'] or 'pages'}-2", dedup_field=found[1])
    return UnsupportedQuery, _COPIED_REMEDY.format(setup=setup)


def _causes(body: object) -> Iterator[Mapping[str, object]]:
    """Yield the root cause of the error in an answer, then the ``caused_by`` chain from the outside."""
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


def _short(text: str, most: int = _LONGEST) -> str:
    text = " ".join(text.split()).rstrip(".;")
    return text if len(text) <= most else f"{text[:most]}…"
