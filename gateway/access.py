"""Access to a server: its address, whether that is loopback, and the token and the credentials of callers."""

import base64
import hmac
import ipaddress
import socket
from collections.abc import Mapping
from typing import Self

from shinglefold.errors import ConfigError, reason_of

#: Who sends the token in this header can send credentials for the engine as usual.
TOKEN_HEADER = "x-shinglefold-token"  # noqa: S105 - a name
_BACKLOG = 2048
#: Headers that say nothing about who sends a request, and may differ with each. Others may be credentials.
_OF_REQUEST = frozenset(
    (
        *("accept", "accept-encoding", "accept-language", "cache-control", "pragma", "priority"),
        *("content-type", "content-length", "content-encoding", "date", "user-agent", "referer"),
        # Names of requests, and where they are in a trace.
        *("x-opaque-id", "x-request-id", "x-correlation-id", "x-amzn-trace-id", "x-cloud-trace-context"),
        *("traceparent", "tracestate", "baggage", "elastic-apm-traceparent", "uber-trace-id", "sentry-trace"),
        *("b3", "x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid", "x-b3-sampled", "x-b3-flags"),
        *("x-datadog-trace-id", "x-datadog-parent-id", "x-datadog-sampling-priority", "x-datadog-tags"),
        *("x-request-start", "x-queue-start", "x-envoy-attempt-count", "x-envoy-expected-rq-timeout-ms"),
        # How a client describes itself.
        *("x-elastic-client-meta", "x-elastic-product-origin", "x-opensearch-product-origin"),
    )
)


class Listener:
    """A listening socket, and a context manager that closes it.

    Args:
        place: ``HOST:PORT``; port 0 takes a free one.
    """

    def __init__(self, place: str) -> None:
        host, _, port = place.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise ConfigError(f"--listen: expected HOST:PORT, such as 127.0.0.1:9201, got {place!r}")
        try:
            family, kind, protocol, _, at = socket.getaddrinfo(
                host.removeprefix("[").removesuffix("]"), int(port), type=socket.SOCK_STREAM
            )[0]
            self.socket = socket.socket(family, kind, protocol)
            try:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self.socket.bind(at)
                # Connections that come before the server runs wait.
                self.socket.listen(_BACKLOG)
            except OSError:
                self.socket.close()
                raise
        except OSError as error:
            raise ConfigError(
                f"--listen {place}: {reason_of(error)}; choose another address or port, such as 127.0.0.1:0, "
                "which takes a free one"
            ) from error
        self._host, self._port = self.socket.getsockname()[:2]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self._host)

    def address(self, scheme: str = "http") -> str:
        """Return the address where it listens."""
        return f"{scheme}://{_bracket_ipv6(self._host)}:{self._port}"

    @property
    def browser_address(self) -> str:
        """The address for a browser on this machine, even if the server listens at all addresses."""
        own = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - no address to bind
        return f"http://{_bracket_ipv6(own.get(self._host) or self._host)}:{self._port}/"


class AccessToken:
    """The token of callers: in ``X-Shinglefold-Token``, as a bearer token, or as a password of any user.

    Args:
        secret: "" if callers need no token; then no request counts as having it.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self.is_needed = bool(secret)

    def is_given(self, headers: Mapping[str, str]) -> bool:
        """Return whether headers, with names in lower case, have the token."""
        return self._is_text(headers.get(TOKEN_HEADER, "")) or self.takes_authorization(headers)

    def remove_from(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return headers without the token, for the engine."""
        own = {TOKEN_HEADER, *(("authorization",) if self.takes_authorization(headers) else ())}
        return {name: value for name, value in headers.items() if name not in own}

    def takes_authorization(self, headers: Mapping[str, str]) -> bool:
        """Return whether ``Authorization`` has the token, so it is not for the engine."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._is_text(given.strip())
        if kind.lower() != "basic":
            return False
        try:
            return self._is(base64.b64decode(given, validate=True).partition(b":")[2])
        except ValueError:  # binascii.Error, or characters beyond ASCII
            return False

    def _is_text(self, given: str) -> bool:
        # Bytes of UTF-8 in a header are read as UTF-8 by some, and as Latin-1 by others.
        return self._is(given.encode()) or self._is(given.encode("latin-1", "replace"))

    def _is(self, given: bytes) -> bool:
        return self.is_needed and hmac.compare_digest(given, self._secret)


def credentials(headers: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return the headers that identify the caller of a request."""
    return frozenset((name.lower(), one) for name, one in headers.items() if name.lower() not in _OF_REQUEST)


def check_pages_access(loopback: bool, secret: str) -> None:
    """Raise ``ConfigError`` if others could read pages, which show whole documents, without a token."""
    if not loopback and not secret:
        raise ConfigError(
            "others could read the pages here: add --admin-token TOKEN, a password that browsers must give, "
            "or listen at 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    """Return whether a name or an address can only mean this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(header: str) -> str:
    """Return the name in a ``Host`` header without its port."""
    name = header[1:].partition("]")[0] if header.startswith("[") else header.partition(":")[0]
    return name.lower().rstrip(".")


def _bracket_ipv6(host: str) -> str:
    return f"[{host}]" if ":" in host else host
