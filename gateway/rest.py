"""Requests and responses of the engines' REST API, and what an interceptor yields to have them sent."""

import json
import logging
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from shinglefold.contracts.engine import JSON, VersionedDocument
from shinglefold.documents import to_json
from shinglefold.engines.http.responses import read_json
from shinglefold.errors import IndexMissing

Result = TypeVar("Result")
#: Yields ``Call``, ``Read``, ``Send``, ``Admit``, ``Work``, ``Tiebreaker``; is sent their answers.
Steps = Generator[Any, Any, Result]
log = logging.getLogger("shinglefold.gateway")
_collected: ContextVar[list[str] | None] = ContextVar("shinglefold_warnings", default=None)


@dataclass(frozen=True, slots=True)
class RestRequest:
    """A request: ``path`` is percent-encoded and without parameters.

    ``body``: bytes, or what the client was given for a search; None without one.
    """

    method: str
    path: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True, slots=True)
class RestResponse:
    """A response: its status and its JSON. ``native``: what the client's transport returned or raised."""

    status: int
    body: Any
    native: Any = None

    @property
    def failed(self) -> bool:
        """Whether the engine refused the request."""
        return self.status >= 400 or not isinstance(self.body, Mapping)


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request to the engine; the answer is its ``RestResponse``."""

    request: RestRequest


@dataclass(frozen=True, slots=True)
class Work:
    """Run a function that takes its time, such as one that signs; the answer is what it returns."""

    function: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Read:
    """Read documents of an index; the answer is a ``VersionedDocument`` for each, None for a missing one."""

    index: str
    ids: Sequence[str]
    routings: Sequence[str | None]

    def on(self, engine: Any) -> Any:  # noqa: ANN401 - blocking or awaited
        """Read them by an engine."""
        return engine.read(self.index, self.ids, (), self.routings)


class Tiebreaker(NamedTuple):
    """Return the sort key of the engine that makes an order total."""


class Operation(NamedTuple):
    """What a request does: the name of an endpoint, and the index and the id in its path."""

    name: str
    target: str | None = None
    id: str | None = None


_OF_ALL = {
    ("_search",): ("search", ("GET", "POST")),
    ("_search", "template"): ("search_template", ("GET", "POST")),
    ("_msearch",): ("msearch", ("GET", "POST")),
    ("_msearch", "template"): ("msearch_template", ("GET", "POST")),
    ("_bulk",): ("bulk", ("PUT", "POST")),
    ("_bulk", "stream"): ("bulk_stream", ("PUT", "POST")),
    ("_reindex",): ("reindex", ("POST",)),
}
_OF_INDEX = {
    **{path: made for path, made in _OF_ALL.items() if path != ("_reindex",)},
    ("_doc",): ("index", ("POST",)),
    ("_update_by_query",): ("update_by_query", ("POST",)),
}
_OF_DOCUMENT = {
    "_doc": ("index", ("PUT", "POST")),
    "_create": ("create", ("PUT", "POST")),
    "_update": ("update", ("POST",)),
}


def operation_of(method: str, path: str) -> Operation | None:
    """Return what a request does; None if it is none of the operations that are intercepted."""
    parts = tuple(unquote(part) for part in path.strip("/").split("/"))
    index, id_, found = None, None, _OF_ALL.get(parts)
    if found is None and (parts[0] == "_all" or not parts[0].startswith("_")):
        index, rest = parts[0], parts[1:]
        found = _OF_INDEX.get(rest)
        if found is None and len(rest) == 2:
            found, id_ = _OF_DOCUMENT.get(rest[0]), rest[1]
    if found is None or method.upper() not in found[1]:
        return None
    return Operation(found[0], index, id_)


def path_of(*parts: str) -> str:
    """Return a path of parts, percent-encoded."""
    return "/" + "/".join(quote(part, safe=",*") for part in parts)


def read_value(given: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON in bytes or a text; other values unchanged.

    Raises:
        ValueError: it is not JSON.
    """
    return read_json(given) if isinstance(given, bytes | str) else given


def write_value(value: Any) -> bytes:  # noqa: ANN401 - JSON
    """Return a value as JSON on one line."""
    try:
        return to_json(value)
    except ValueError:
        # Half of a surrogate pair, which escapes keep.
        return json.dumps(value).encode()


def send(request: RestRequest) -> Steps[RestResponse]:
    """Return the response of the engine to a request."""
    answer: RestResponse = yield Send(request)
    return answer


def read_documents(
    index: str, ids: Sequence[str], routings: Sequence[str | None]
) -> Steps[list[VersionedDocument | None]]:
    """Return documents with their versions, None for missing ones, also where the index is missing.

    Raises:
        PermissionDenied: the user may not read them.
    """
    try:
        return list((yield Read(index, ids, routings)))
    except IndexMissing:
        # A template may make it when a document is inserted.
        return [None] * len(ids)


def read_lines(body: bytes | str) -> list[bytes]:
    """Return the lines of a body of several JSON values, without empty ones."""
    given = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    return [line for line in given.split(b"\n") if line.strip()]


def ends_with_newline(body: Any) -> bool:  # noqa: ANN401 - as it came
    """Return whether a body of several JSON values is complete; engines refuse one that may be cut off."""
    return not isinstance(body, bytes | str) or body[-1:] in (b"\n", "\n")


def failure(reason: str, status: int = 400, kind: str = "illegal_argument_exception") -> JSON:
    """Return the body of a refusal in the engines' shape."""
    cause = {"type": kind, "reason": reason}
    return {"error": {"root_cause": [cause], **cause}, "status": status}


def whole_number(value: Any) -> int:  # noqa: ANN401 - a parameter
    """Return a parameter as a number; 0 for what the engine has to refuse."""
    try:
        return int(value or 0)
    except (TypeError, ValueError):
        return 0


def warn_stale(index: str, id_: str | None, why: str) -> None:
    """Warn that a document was updated, and its fingerprint was not."""
    warn(stale(index, id_, why))


def stale(index: str, id_: str | None, why: str) -> str:
    """Return the warning that a document was updated, and its fingerprint was not."""
    return (
        f"the fingerprint of {id_!r} in {index!r} is that of its text before: {why}. "
        f"Run `shinglefold backfill {index}`"
    )


@contextmanager
def collect_warnings(messages: list[str]) -> Iterator[None]:
    """Collect the warnings of a block in a list, instead of Python's own way to warn."""
    token = _collected.set(messages)
    try:
        yield
    finally:
        _collected.reset(token)


def warn(message: str) -> None:
    """Warn that documents are stored without the fingerprint of their text, and log it."""
    log.warning("%s", message)
    collected = _collected.get()
    if collected is None:
        warnings.warn(message, UserWarning, stacklevel=2)
    else:
        collected.append(message)
