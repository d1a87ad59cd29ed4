"""Headers and bodies of HTTP messages: which are forwarded, and the format of the gateway's own answers."""

import asyncio
import gzip
import json
import re
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableSequence, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from shinglefold.errors import ShinglefoldError
from shinglefold.gateway.rest import failure, status_of, write_strict_value, write_value

Headers = Sequence[tuple[bytes, bytes]]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Sender = Callable[[Message], Awaitable[None]]
#: Headers of one connection (RFC 9110, section 7.6.1), and those that a proxy makes itself.
_HOP_BY_HOP = frozenset(
    name.encode()
    for name in (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade", "expect", "host"),
    )
)
#: Those that a caller may name as of the connection, and that are not.
_KEPT_THOUGH_NAMED = frozenset((b"content-length", b"authorization", b"keep-alive"))
#: Asks for a folded page, or for the engine's own, in one request.
FOLD = b"x-shinglefold-fold"
#: The header that says how a search was answered: folded or unfolded.
_OUTCOME = b"x-shinglefold"
#: Headers about the bytes of a body, which differ where the gateway writes it.
_OF_BYTES = frozenset((b"content-length", b"content-encoding", b"accept-encoding", FOLD))
_JSON = re.compile(r"application/(vnd\.(elasticsearch|opensearch)\+)?(json|x-ndjson)\b", re.IGNORECASE)
_ANY = re.compile(r"(\*|application)/\*", re.IGNORECASE)
_VENDOR = re.compile(r"application/vnd\.elasticsearch\+json\s*;\s*compatible-with\s*=\s*(\d+)", re.IGNORECASE)
#: The weight of an encoding that a caller does not take.
_REFUSED = re.compile(r"q\s*=\s*0(\.0*)?", re.IGNORECASE)
#: The type of refusals that are the gateway's own.
_KIND = "shinglefold_gateway_exception"
#: Shorter bodies are not compressed. Long ones take some ms, in which other threads run.
_COMPRESSED_FROM, _COMPRESSED_IN_THREADS_FROM = 1024, 262_144
#: The bytes for which memory is allocated at once.
_INFLATED_AT_ONCE = 1 << 20
#: Warnings of one answer, and characters of each: clients refuse headers that are longer.
_MOST_WARNINGS, _LONGEST_WARNING = 10, 300


class BodyTooLarge(Exception):
    """A body is larger than the gateway reads."""


class MalformedBody(Exception):
    """A compressed body can't be read."""


class CallerGone(Exception):
    """The caller closed the connection before the request was complete."""


@dataclass(frozen=True, slots=True)
class GatewayRequest:
    """A request as it came: ``path`` and ``query`` are percent-encoded, names of headers in lower case."""

    method: str
    path: str
    query: str
    headers: Headers

    @property
    def target(self) -> str:
        """The path and the parameters."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters by name; of repeated ones the last, as in the engines."""
        return {} if not self.query else dict(parse_qsl(self.query, keep_blank_values=True))


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the gateway, with its body as JSON or as bytes that are sent as they are.

    ``strict``: the body is made of strict JSON, so that it has no NaN.
    """

    status: int
    body: Any
    headers: Headers = ()
    warnings: Sequence[str] = ()
    outcome: str = ""
    strict: bool = False


class Reply(NamedTuple):
    """The answer of upstream to a request of the gateway: ``value`` is its JSON, or its text.

    ``strict``: it is JSON as the standard has it, so without NaN.
    """

    status: int
    headers: Headers
    content: bytes
    value: Any
    strict: bool = False


@dataclass(slots=True)
class HttpCaller:
    """The caller of a request, and the answers of upstream so far.

    ``headers``: sent with each request made for the caller. ``replies``: the answers of upstream.
    """

    headers: Mapping[str, str]
    replies: MutableSequence[Reply] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def header(headers: Headers, name: bytes) -> str:
    """Return the value of a header, several ones joined by commas; "" if it is missing."""
    found = [value for given, value in headers if given == name]
    return b", ".join(found).decode("latin-1")


def end_to_end_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers of a message without those of a single connection."""
    kept, named = [], set[bytes]()
    for name, value in headers:
        lower = name.lower()
        if lower == b"connection":
            named.update(token.strip().lower() for token in value.split(b","))
        elif lower not in _HOP_BY_HOP:
            kept.append((name, value))
    dropped = named - _KEPT_THOUGH_NAMED
    return [pair for pair in kept if pair[0].lower() not in dropped] if dropped else kept


def text(value: bytes) -> str:
    """Return the bytes of a header as a text that is the same bytes in UTF-8 where it can be."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def caller_headers(headers: Headers) -> dict[str, str]:
    """Return the headers of a caller to send with each request made for it."""
    kept: dict[str, str] = {}
    for name, value in end_to_end_headers(headers):
        if name not in _OF_BYTES:
            key = name.decode("latin-1")
            kept[key] = f"{kept[key]}, {text(value)}" if key in kept else text(value)
    return kept


def has_body(headers: Headers) -> bool:
    """Return whether a request announces a body."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0")
        for name, value in headers
    )


def sends_json(headers: Headers) -> bool:
    """Return whether the body of a request is JSON, or a request without one could have it."""
    return bool(_JSON.match(header(headers, b"content-type").strip())) or not has_body(headers)


def takes_json(headers: Headers, parameters: Mapping[str, Any]) -> bool:
    """Return whether a caller takes its answer as JSON."""
    accepted = header(headers, b"accept")
    takes = not accepted or _JSON.search(accepted) or _ANY.search(accepted)
    return bool(takes) and parameters.get("format", "json") == "json"


def takes_gzip(headers: Headers) -> bool:
    """Return whether a caller takes compressed answers."""
    for part in header(headers, b"accept-encoding").lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "*") and not _REFUSED.fullmatch(weight.strip()):
            return True
    return False


async def read_body(receive: Receive, headers: Headers, most: int) -> bytes:
    """Return the body of a request, as it was sent; raise ``BodyTooLarge`` or ``CallerGone``."""
    announced = header(headers, b"content-length")
    if announced.isdigit() and int(announced) > most:
        raise BodyTooLarge
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise CallerGone
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise BodyTooLarge
        parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts)


def decompress(body: bytes, headers: Headers, most: int) -> bytes | None:
    """Return a body without its compression; None if it is one that the gateway does not read.

    Raises ``BodyTooLarge`` beyond ``most`` bytes, and ``MalformedBody``.
    """
    encoding = header(headers, b"content-encoding").strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        return None
    parts: list[bytes] = []
    size, reader = 0, gzip.GzipFile(fileobj=BytesIO(body))
    try:
        while part := reader.read(_INFLATED_AT_ONCE):
            parts.append(part)
            size += len(part)
            if size > most:
                raise BodyTooLarge
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise MalformedBody from error
    return b"".join(parts)


def json_type(accepted: str, product: str) -> bytes:
    """Return the content type of an answer, as the engine chooses it."""
    if product != "elasticsearch":
        return b"application/json; charset=UTF-8"
    vendor = _VENDOR.search(accepted)
    if vendor:
        return f"application/vnd.elasticsearch+json;compatible-with={vendor[1]}".encode()
    return b"application/json"


def refusal(status: int, reason: str, kind: str = _KIND) -> Answer:
    """Return a refusal in the engines' shape."""
    return Answer(status, failure(reason, status, kind))


def refusal_of(error: ShinglefoldError) -> Answer:
    """Return the refusal for an error, with its status and message."""
    status = status_of(error)
    return refusal(status, str(error), "illegal_argument_exception" if status == 400 else _KIND)


def header_text(reason: str) -> str:
    """Return a text that can be quoted in a header."""
    plain = reason.replace('"', "'").encode("ascii", "backslashreplace").decode()
    short = plain if len(plain) <= _LONGEST_WARNING else plain[: _LONGEST_WARNING - 3] + "..."
    return re.sub(r"[^\x20-\x7e]", " ", short.replace("\\", "/"))


def warning_header(warnings: Iterable[str]) -> bytes:
    """Return the value of a ``Warning`` header; the rest of many warnings is only counted."""
    several = list(dict.fromkeys(warnings))
    shown = several[:_MOST_WARNINGS]
    if len(several) > len(shown):
        shown.append(f"and {len(several) - len(shown)} more, which are in the log of the gateway")
    return ", ".join(f'299 shinglefold "{header_text(one)}"' for one in shown).encode()


def encode(answer: Answer, headers: Headers, product: str, *, pretty: bool) -> tuple[bytes, Headers]:
    """Return the body and the headers of an answer to a request with ``headers``, for ``send_answer``."""
    sent = list(answer.headers)
    if isinstance(answer.body, bytes):
        body = answer.body
    else:
        write = write_strict_value if answer.strict else write_value
        body = _pretty(answer.body) if pretty else write(answer.body)
    if not any(name == b"content-type" for name, _ in sent):
        sent.append((b"content-type", json_type(header(headers, b"accept"), product)))
    if product == "elasticsearch" and not any(name.lower() == b"x-elastic-product" for name, _ in sent):
        sent.append((b"x-elastic-product", b"Elasticsearch"))
    if answer.outcome:
        sent.append((_OUTCOME, answer.outcome.encode()))
    if answer.warnings:
        sent.append((b"warning", warning_header(answer.warnings)))
    return body, sent


def _pretty(value: Any) -> bytes:  # noqa: ANN401 - JSON
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


async def send_answer(
    send: Sender, status: int, headers: Headers, body: bytes, *, compressed: bool, threads: Executor
) -> None:
    """Send a complete answer; ``compressed``: if it is long enough."""
    sent = list(headers)
    if compressed and len(body) >= _COMPRESSED_FROM:
        compress = partial(gzip.compress, body, 1, mtime=0)
        if len(body) < _COMPRESSED_IN_THREADS_FROM:
            body = compress()
        else:
            body = await asyncio.get_running_loop().run_in_executor(threads, compress)
        sent += ((b"content-encoding", b"gzip"), (b"vary", b"accept-encoding"))
    sent.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})
