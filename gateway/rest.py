"""Requests and responses of the engines' REST API, and what an interceptor yields to have them sent."""

import json
import logging
import re
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from msgspec import MsgspecError
from msgspec.json import Encoder

from shinglefold.contracts.engine import JSON
from shinglefold.documents import to_json
from shinglefold.engines.http.errors import unexpected_answer
from shinglefold.engines.http.responses import read_json
from shinglefold.errors import (
    AuthenticationFailed,
    ConfigError,
    EngineError,
    IndexExists,
    IndexMissing,
    IndexReadOnly,
    InputError,
    OutputError,
    PermissionDenied,
    PitExpired,
    ProcessorError,
    RecipeMismatch,
    Refused,
    SchemeMismatch,
    ShinglefoldError,
    UnsupportedQuery,
)

Result = TypeVar("Result")
#: Yields ``Call``, ``Send``, ``Admit``, ``Work``, ``Tiebreaker``; is sent their answers.
Steps = Generator[Any, Any, Result]
log = logging.getLogger("shinglefold.gateway")
_STRICT = Encoder()
#: The engine, as messages name it where no address is known.
ENGINE = "the engine"
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
    def refused(self) -> bool:
        """Whether the engine refused the request."""
        return self.status >= 400

    @property
    def failed(self) -> bool:
        """Whether the engine refused the request, or something else answered."""
        return self.refused or not isinstance(self.body, Mapping)


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request to the engine; the answer is its ``RestResponse``."""

    request: RestRequest


@dataclass(frozen=True, slots=True)
class Work:
    """Run a slow function, such as one that signs; the answer is what it returns."""

    function: Callable[[], Any]


#: Announces slow work, such as comparing texts.
TAKES_TIME = Work(lambda: None)


class Tiebreaker(NamedTuple):
    """Return the sort key of the engine that makes an order total."""


class Operation(NamedTuple):
    """What a request does: the name of an endpoint, and the index and the id in its path."""

    name: str
    target: str | None = None
    id: str | None = None


#: The actions of bulks, and what their metadata name, which engines read as text.
_VERBS = ("index", "create", "update", "delete")
_NAMES = ("_index", "_id", "routing", "_routing")
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
    """Return the operation of a request; None if it is not intercepted."""
    parts = tuple(path.strip("/").split("/"))
    if "%" in path:
        parts = tuple(map(unquote, parts))
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
    """Return the JSON in bytes or a text, else raise ``ValueError``; other values unchanged."""
    return read_json(given) if isinstance(given, bytes | str) else given


def read_object(given: Any) -> JSON | None:  # noqa: ANN401 - JSON
    """Return the object in a body: {} without a body, None for one that the engine refuses."""
    if given is None or given == b"":
        return {}
    try:
        found = read_value(given)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def write_value(value: Any) -> bytes:  # noqa: ANN401 - JSON
    """Return a value as JSON on one line."""
    try:
        return to_json(value)
    except ValueError:
        # Half of a surrogate pair, which escapes keep.
        return json.dumps(value).encode()


def write_strict_value(value: Any) -> bytes:  # noqa: ANN401 - JSON
    """Return a value that has no NaN as JSON on one line; NaN would become null.

    Cost: half of that of ``write_value``, which looks for NaN.
    """
    try:
        return _STRICT.encode(value)
    except (MsgspecError, ValueError, OverflowError, RecursionError):
        return write_value(value)


def send(request: RestRequest) -> Steps[RestResponse]:
    """Return the response of the engine to a request."""
    answer: RestResponse = yield Send(request)
    return answer


def ask(method: str, path: str, headers: Mapping[str, str]) -> Steps[RestResponse]:
    """Return the response to a request without a body, sent with the headers of another request."""
    kept = {key: value for key, value in headers.items() if key.lower() != "content-type"}
    return (yield from send(RestRequest(method, path, headers=kept)))


def objects_of(answer: RestResponse, key: str, count: int) -> list[JSON]:
    """Return the objects that an answer has in a list, one for each of several actions or searches.

    Raises:
        EngineUnavailable: it has others, so that something else answers than the engine.
    """
    found = answer.body.get(key) if isinstance(answer.body, Mapping) else None
    if isinstance(found, list) and len(found) == count and all(isinstance(one, dict) for one in found):
        return found
    raise unexpected_answer(ENGINE, f"{key}, {count} objects", answer.body)


def items_of(answer: RestResponse, count: int) -> list[JSON]:
    """Return what the answer to a bulk says about each of its actions; see ``objects_of``."""
    told = [next(iter(one.values()), None) for one in objects_of(answer, "items", count)]
    return objects_of(replace(answer, body={"items": told}), "items", count)


def takes_all(request: RestRequest) -> bool:
    """Return whether a request takes its whole answer, as JSON."""
    accepted = [str(one) for name, one in request.headers.items() if name.lower() == "accept"]
    json = not accepted or any("json" in one or "*/*" in one for one in accepted)
    return (
        json
        and request.parameters.get("format", "json") == "json"
        and "filter_path" not in request.parameters
    )


def json_headers(headers: Mapping[str, str], *, lines: bool = False) -> dict[str, str]:
    """Return the headers of a request for one with a body of JSON, or of ``lines`` of JSON."""
    kind = "x-ndjson" if lines else "json"
    return {
        name: re.sub(r"(?<=[+/])(x-nd)?json", kind, one) if name.lower() == "content-type" else one
        for name, one in headers.items()
    }


def read_lines(body: bytes | str) -> list[bytes]:
    """Return the lines of a body of several JSON values, with empty ones between them."""
    given = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    lines = given.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def read_searches(body: bytes | str) -> list[tuple[JSON, Any]]:
    """Return the header and the body of each of several searches, as engines read them.

    An empty line in place of a header is one, and one before all is skipped.
    """
    lines = read_lines(body)
    if lines and not lines[0]:
        del lines[0]
    values = [read_value(line) if line or place % 2 else {} for place, line in enumerate(lines)]
    return list(zip(values[::2], values[1::2], strict=True))


def read_actions(body: bytes | str) -> Iterator[tuple[str, JSON, list[bytes]]]:
    """Yield each action of a bulk: its verb, its metadata, and its lines.

    Raises ``ValueError`` if the engine refuses an action, or may read it in another way.
    """
    lines = iter(read_lines(body))
    for line in lines:
        if not line.strip():
            # Between actions only: in place of a document an empty line is one, which the engine refuses.
            continue
        verb, metadata = _action(line)
        given = [line] if verb == "delete" else [line, *islice(lines, 1)]
        if len(given) == 1 and verb != "delete":
            raise ValueError(verb)
        yield verb, metadata, given


def _action(line: bytes) -> tuple[str, JSON]:
    """Return the verb and the metadata of an action; names that are numbers become texts, as engines do."""
    action = _ACTIONS.decode(_decode(line))
    verb = next(iter(action), None) if isinstance(action, dict) and len(action) == 1 else None
    if verb not in _VERBS or not isinstance(metadata := action[verb], dict):
        raise ValueError(line)
    values = [metadata[name] for name in _NAMES if metadata.get(name) is not None]
    if any(isinstance(value, list | dict) for value in values):
        raise ValueError(line)
    for value in values:
        # Half of a surrogate pair is in no path.
        str(value).encode()
    if not all(isinstance(value, str) for value in values):
        # 1.0 and 1e2 are ids as they are written.
        written = json.loads(line, parse_int=str, parse_float=str)[verb]
        metadata |= {name: as_text(written[name]) for name in _NAMES if name in metadata}
    return verb, metadata


class _NameTwice(ValueError):
    """An object of JSON has a name twice."""


def _unique(pairs: Sequence[tuple[str, Any]]) -> JSON:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _NameTwice
    return found


def names_twice(text: Any) -> bool:  # noqa: ANN401 - as it came
    """Return whether an object in JSON has a name twice, which engines refuse, and parsers here do not see.

    Cost: some 10 µs for 1 kB.
    """
    if not isinstance(text, bytes | str):
        return False
    try:
        _NAMES_ONCE.decode(_decode(text))
    except _NameTwice:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def _refuse(constant: str) -> Any:  # noqa: ANN401 - of the standard library
    raise ValueError(constant)


# ``json.loads`` makes a decoder for each text, which takes as long as one of 100 characters.
_NAMES_ONCE = json.JSONDecoder(object_pairs_hook=_unique)
_ACTIONS = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)


def _decode(given: bytes | str) -> str:
    """Return JSON as ``json.loads`` decodes it."""
    return given if isinstance(given, str) else given.decode(json.detect_encoding(given), "surrogatepass")


def as_text(value: Any) -> str | None:  # noqa: ANN401 - JSON
    """Return an id or a routing as engines read it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def ends_with_newline(body: Any) -> bool:  # noqa: ANN401 - as it came
    """Return whether a body of several JSON values is complete; engines refuse one that may be cut off."""
    return not isinstance(body, bytes | str) or body[-1:] in (b"\n", "\n")


def failure(reason: str, status: int = 400, kind: str = "illegal_argument_exception") -> JSON:
    """Return the body of a refusal in the engines' shape."""
    cause = {"type": kind, "reason": reason}
    return {"error": {"root_cause": [cause], **cause}, "status": status}


#: The status of an error, and of those below it. Clients send a request again after 503, and not after 4xx.
_STATUSES: Mapping[type[BaseException], int] = {
    **dict.fromkeys((ConfigError, SchemeMismatch, RecipeMismatch, InputError, ProcessorError), 400),
    **dict.fromkeys((UnsupportedQuery, IndexExists), 400),
    AuthenticationFailed: 401,
    **dict.fromkeys((PermissionDenied, IndexReadOnly), 403),
    **dict.fromkeys((IndexMissing, PitExpired), 404),
    Refused: 409,
    **dict.fromkeys((OutputError, EngineError, ShinglefoldError), 503),
}


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, its cause, and the cause of that."""
    while error is not None:
        yield error
        error = error.__cause__


def refused_status(error: BaseException) -> int:
    """Return the status by which the engine refused a request; 0 if the error is of another kind."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) and status >= 400 else 0


def status_of(error: BaseException) -> int:
    """Return the status of an error: the engine's own if it refused a request."""
    if own := next(filter(None, map(refused_status, causes(error))), 0):
        return own
    return next((_STATUSES[kind] for kind in type(error).__mro__ if kind in _STATUSES), 503)


def whole_number(value: Any) -> int:  # noqa: ANN401 - a parameter
    """Return a parameter as a number; 0 for one that the engine refuses."""
    try:
        return int(value or 0)
    except (TypeError, ValueError):
        return 0


def refuses_retries(parameters: Mapping[str, Any]) -> bool:
    """Return whether engines refuse the ``retry_on_conflict`` of an update: no number, or beside a guard."""
    value = parameters.get("retry_on_conflict")
    if isinstance(value, str) and not value.lstrip("+-").isdecimal():
        return True
    return "if_seq_no" in parameters and whole_number(value) > 0


def warn_stale(index: str, id_: str | None, why: str) -> None:
    """Warn that a document was updated, and its fingerprint was not."""
    warn(stale(index, id_, why))


def stale(index: str, id_: str | None, why: str) -> str:
    """Return the warning that a document was updated, and its fingerprint was not."""
    return (
        f"the fingerprint of {id_!r} in {index!r} is that of its text before: {why.rstrip('.')}. "
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
