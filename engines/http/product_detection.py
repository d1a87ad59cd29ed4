"""Detect the product and the version of the server at an address; how the clients connect to it."""

import json
import re
import ssl
from collections.abc import Mapping
from email.message import Message
from functools import partial
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import (
    AbstractHTTPHandler,
    HTTPSHandler,
    ProxyHandler,
    Request,
    build_opener,
)

from shinglefold.contracts.engine import BUSY
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.errors import reason, refusal, unavailable
from shinglefold.errors import ConfigError, EngineError, EngineUnavailable, reason_of

_LONGEST_ANSWER = 65_536
_VERSION_HEADER = re.compile(r"OpenSearch/(\d[\w.-]*)")


class Detected(NamedTuple):
    """The answer to ``GET /``; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: object


def product_of(connection: Connection) -> str:
    """Return ``opensearch`` or ``elasticsearch``, from the connection or else from the server.

    Raises:
        EngineError: the server does not answer, refuses us, or is neither.
    """
    if connection.product:
        return connection.product
    if connection.aws_region:
        return "opensearch"
    answer = _request_root(connection)
    found = detect(answer, connection)
    if found is None:
        raise refusal(answer.status, answer.body, f"server at {connection.address}")
    return found


def detect(answer: Detected, connection: Connection) -> str | None:
    """Return the product that sent an answer; None if the answer is a refusal without the product.

    Raises:
        EngineError: it is neither OpenSearch nor Elasticsearch.
    """
    if connection.product:
        return connection.product
    if answer.headers.get("x-elastic-product") == "Elasticsearch":
        return "elasticsearch"
    if version_header(answer.headers) or _is_opensearch(answer.body) or _is_opensearch_security(answer):
        return "opensearch"
    if answer.status == 404:
        raise EngineError(
            f"server at {connection.address}: {reason(answer.body) or 'nothing is there'} (404). Check the "
            "address, and its path if a proxy is in front of the server; if that path is closed, name the "
            "product: opensearch+http://… or elasticsearch+http://…"
        )
    if answer.status >= 400:
        return None
    raise EngineError(
        f"{connection.address} answers, but neither as OpenSearch nor as Elasticsearch; check the address, "
        "or say which it is: opensearch+http://… or elasticsearch+http://…"
    )


def _is_opensearch(body: object) -> bool:
    if not isinstance(body, dict):
        return False
    version = body.get("version")
    distribution = version.get("distribution") if isinstance(version, dict) else None
    # A server may hide its distribution for old clients, but not its tagline.
    return distribution == "opensearch" or "OpenSearch" in str(body.get("tagline"))


def _is_opensearch_security(answer: Detected) -> bool:
    """Return whether OpenSearch's security plugin answers: few users may read the version."""
    return answer.status == 403 and "no permissions for [cluster:monitor/main]" in reason(answer.body)


def version_header(headers: Mapping[str, str]) -> str:
    """Return the version that OpenSearch 3 sends with every answer; empty if it is missing."""
    found = _VERSION_HEADER.match(headers.get("x-opensearch-version", ""))
    return found[1] if found else ""


def version_for_all(connection: Connection) -> str:
    """Return the version that a server sends even to users who may not read it; empty if there is none."""
    try:
        return version_header(_request_root(connection).headers)
    except EngineUnavailable:
        return ""


def _request_root(connection: Connection) -> Detected:
    """Return the first answer of an address; that of a busy server only if no other server answers."""
    busy: Detected | None = None
    failed: Exception | None = None
    for url in connection.urls:
        request = Request(f"{url}/", headers={"Accept": "application/json"})  # noqa: S310 - checked: http(s)
        if authorization := connection.authorization():
            request.add_unredirected_header("Authorization", authorization)
        try:
            with _open(request, connection) as answer:
                found = Detected(answer.code, _lower(answer.headers), _json(answer.read(_LONGEST_ANSWER)))
        except (OSError, HTTPException) as error:
            failed = error
            continue
        if found.status not in BUSY or _is_opensearch(found.body):
            return found
        busy = busy or found
    if busy:
        return busy
    cause = getattr(failed, "reason", failed)
    why = reason_of(cause) if isinstance(cause, BaseException) else cause
    raise unavailable(f"server at {connection.address}", why) from failed


def _lower(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _open(request: Request, connection: Connection) -> Any:  # noqa: ANN401 - an answer, or HTTPError
    # The clients ignore the proxies in the environment, too.
    opener = build_opener(ProxyHandler({}), _TLSHandler(connection))
    try:
        return opener.open(request, timeout=connection.timeout)
    except HTTPError as refusal:
        return refusal


class _TLSHandler(HTTPSHandler):
    """Make the TLS context when an https address is opened: others need none, and it takes 30 ms."""

    def __init__(self, connection: Connection) -> None:
        # Not HTTPSHandler's own, which makes a context at once since Python 3.12.
        AbstractHTTPHandler.__init__(self)
        self._connection = connection

    def https_open(self, req: Request) -> HTTPResponse:
        """Open an https address."""
        return self.do_open(HTTPSConnection, req, context=tls_context(self._connection))


def tls_context(connection: Connection) -> ssl.SSLContext:
    """Return the TLS context of a connection.

    Raises:
        ConfigError: a certificate file can't be used.
    """
    try:
        context = ssl.create_default_context(cafile=connection.ca_file or None)
        if connection.client_cert:
            context.load_cert_chain(connection.client_cert, connection.client_key or None)
    except OSError as error:
        files = [connection.ca_file, connection.client_cert, connection.client_key]
        named = ", ".join(filter(None, files))
        raise ConfigError(
            f"certificates {named}: {reason_of(error)}; give certificates and their keys as PEM files"
        ) from error
    if not connection.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _json(body: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")


def without_redirects(kind: Any) -> Any:  # noqa: ANN401 - a class, which no checker follows when it is made
    """Return a class like an asynchronous client's own for connections, which follows no redirect.

    aiohttp would send a redirected POST again as a GET without its body, so that a search matches everything.
    """

    class Direct(kind):  # type: ignore[misc]
        _session: Any = None

        @property
        def session(self) -> Any:  # noqa: ANN401 - aiohttp's own type
            """The session, which the client opens with the first request."""
            return self._session

        @session.setter
        def session(self, opened: Any) -> None:  # noqa: ANN401
            if opened is not None:
                # A session warns about attributes that are set in the usual way.
                object.__setattr__(opened, "request", partial(opened.request, allow_redirects=False))
            self._session = opened

    return Direct
