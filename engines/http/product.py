"""Which product answers at an address."""

import json
import ssl
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.failures import refusal, unavailable
from shinglefold.errors import ConfigError, EngineError

_MOST = 65_536


def product_of(connection: Connection) -> str:
    """Return ``opensearch`` or ``elasticsearch``: what the connection says, else what the server says.

    Raises:
        EngineError: it does not answer, does not let us in, or is neither.
    """
    if connection.product:
        return connection.product
    if connection.aws_region:
        return "opensearch"
    status, product, body = _ask(connection)
    if product == "Elasticsearch":
        return "elasticsearch"
    if _is_opensearch(body):
        return "opensearch"
    if status >= 400:
        raise refusal(status, body, f"server at {connection.address}")
    raise EngineError(
        f"{connection.address} answers, but neither as OpenSearch nor as Elasticsearch; check the address, "
        "or say which it is: opensearch+http://… or elasticsearch+http://…"
    )


def _is_opensearch(body: object) -> bool:
    if not isinstance(body, dict):
        return False
    version = body.get("version")
    distribution = version.get("distribution") if isinstance(version, dict) else None
    # A server may hide its distribution to please old clients, but not its motto.
    return distribution == "opensearch" or "OpenSearch" in str(body.get("tagline"))


def _ask(connection: Connection) -> tuple[int, str, object]:
    """Return the status, the product header and the body of the first address that answers."""
    failed: Exception | None = None
    for url in connection.urls:
        request = Request(f"{url}/", headers={"Accept": "application/json"})  # noqa: S310 - checked: http(s)
        if authorization := connection.authorization():
            request.add_unredirected_header("Authorization", authorization)
        try:
            with _opener(connection).open(request, timeout=connection.timeout) as answer:
                return answer.status, answer.headers.get("X-elastic-product", ""), _json(answer.read(_MOST))
        except HTTPError as error:
            with error:
                return error.code, error.headers.get("X-elastic-product", ""), _json(error.read(_MOST))
        except (OSError, HTTPException) as error:
            failed = error
    raise unavailable(f"server at {connection.address}", getattr(failed, "reason", failed)) from failed


def _opener(connection: Connection) -> OpenerDirector:
    # As the clients do, past the proxies the environment may name.
    return build_opener(ProxyHandler({}), HTTPSHandler(context=tls_context(connection)))


def tls_context(connection: Connection) -> ssl.SSLContext:
    """Return the context for encrypted connections.

    Raises:
        ConfigError: a certificate file can't be used.
    """
    try:
        context = ssl.create_default_context(cafile=connection.ca_file or None)
        if connection.client_cert:
            context.load_cert_chain(connection.client_cert, connection.client_key or None)
    except OSError as error:
        files = [connection.ca_file, connection.client_cert, connection.client_key]
        raise ConfigError(f"certificates {', '.join(filter(None, files))}: {error}") from error
    if not connection.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _json(body: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
