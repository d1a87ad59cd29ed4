"""Checks of every request to the pages, and the headers of every answer, which restrict browsers."""

from collections.abc import Collection
from http import HTTPStatus
from typing import NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shinglefold.gateway.access import AccessToken, host_name, is_loopback

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
    """A status, a message, and an additional header."""

    status: HTTPStatus
    message: str
    header: tuple[str, str] | None = None


class PageGuard:
    """Checks requests before an application sees them, and adds headers to its answers.

    Args:
        hosts: the names that a request may be addressed to without a token, beside those of loopback. A page
            elsewhere can let a name of its own mean this machine, and would then read the answers.
        token: what callers must give.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], token: AccessToken) -> None:
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
        host = host_name(headers.get("host", ""))
        if not self._token.is_needed and not is_loopback(host) and host not in self._hosts:
            known = " or ".join(sorted({*self._hosts, "localhost"}))
            return _Refusal(
                HTTPStatus.MISDIRECTED_REQUEST, f"These pages are not at {host!r}. Open them as {known}."
            )
        if self._token.is_needed and not self._token.is_given(headers):
            return _Refusal(
                HTTPStatus.UNAUTHORIZED,
                "Give the token of --admin-token as the password, with any user name.",
                ("www-authenticate", 'Basic realm="shinglefold", charset="UTF-8"'),
            )
        if _is_from_elsewhere(headers):
            return _Refusal(
                HTTPStatus.FORBIDDEN,
                "A page elsewhere asked for this one, which may take long to make. To see it, press Enter in "
                "the address bar.",
            )
        if method not in ("GET", "HEAD"):
            return _Refusal(
                HTTPStatus.METHOD_NOT_ALLOWED, "These pages only show: send GET.", ("allow", "GET, HEAD")
            )
        return None


def _is_from_elsewhere(headers: Headers) -> bool:
    """Return whether a page of another site sent a request, except by a link that a user followed."""
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    followed = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-user") == "?1"
    return not followed or headers.get("sec-fetch-dest") != "document"
