"""Checks of every request to the pages, and the headers of every answer, which restrict browsers."""

import base64
import hmac
from collections.abc import Collection
from http import HTTPStatus
from typing import NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The names of this machine that only it can mean.
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class _Refusal(NamedTuple):
    """A status, the message, and a header beside those of every answer."""

    status: HTTPStatus
    message: str
    header: tuple[str, str] | None = None


class PageGuard:
    """Checks requests before an application sees them, and adds headers to its answers.

    Args:
        hosts: the host names that a request may be addressed to; None for any. A page elsewhere can let a
            name of its own mean this machine, and would then read the answers.
        token: what callers must give as the password of HTTP's basic authentication; "" for none.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None, token: str) -> None:
        self._app, self._hosts, self._token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, send_with_headers)
            return
        response = PlainTextResponse(
            f"{refusal.message}\n", refusal.status, dict([refusal.header] if refusal.header else ())
        )
        await response(scope, receive, send_with_headers)

    def _refusal(self, method: str, headers: Headers) -> _Refusal | None:
        host = _name_of(headers.get("host", ""))
        if self._hosts is not None and host not in self._hosts:
            known = " or ".join(sorted(self._hosts))
            return _Refusal(
                HTTPStatus.MISDIRECTED_REQUEST, f"These pages are not at {host!r}. Open them as {known}."
            )
        if self._token and not _has_token(headers.get("authorization", ""), self._token):
            return _Refusal(
                HTTPStatus.UNAUTHORIZED,
                "Give the token that shinglefold serve was started with as the password, with any user name.",
                ("www-authenticate", 'Basic realm="shinglefold", charset="UTF-8"'),
            )
        if method not in ("GET", "HEAD"):
            return _Refusal(
                HTTPStatus.METHOD_NOT_ALLOWED, "These pages only show: send GET.", ("allow", "GET, HEAD")
            )
        return None


def _name_of(host: str) -> str:
    """Return the name in a ``Host`` header without its port."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return name.lower().rstrip(".")


def _has_token(authorization: str, token: str) -> bool:
    kind, _, given = authorization.partition(" ")
    if kind.lower() != "basic":
        return False
    try:
        password = base64.b64decode(given, validate=True).partition(b":")[2]
    except ValueError:  # binascii.Error, or characters beyond ASCII
        return False
    return hmac.compare_digest(password, token.encode())
