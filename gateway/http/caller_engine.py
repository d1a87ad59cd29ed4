"""An engine whose requests are sent upstream with the credentials of the caller they are made for."""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple
from urllib.parse import urlencode

from shinglefold.contracts.engine import AsyncEngine
from shinglefold.engines import open_async_engine, open_blocking_twin
from shinglefold.engines.http.product_detection import Detected, detect
from shinglefold.engines.http.responses import in_address
from shinglefold.errors import EngineUnavailable
from shinglefold.gateway.clients import through_function, with_transport
from shinglefold.gateway.dialects import Dialect, ElasticsearchDialect, OpenSearchDialect
from shinglefold.gateway.http.messages import HttpCaller
from shinglefold.gateway.http.upstream import Upstream, UpstreamFailure
from shinglefold.gateway.rest import RestRequest, RestResponse

#: The caller for whom requests of the engine are sent.
CALLER: ContextVar[HttpCaller] = ContextVar("shinglefold_gateway_caller")
#: Media types of Elasticsearch's client name its generation, and a server of another one refuses them.
_VENDOR = re.compile(r"application/vnd\.elasticsearch\+(x-ndjson|json)\s*;\s*compatible-with=\d+")
#: The last parts of paths whose requests read, by whatever method.
_READING = ("_search", "_msearch", "_mget", "_count", "point_in_time", "_pit")
#: Its client sends as many at a time as there are callers.
_CONNECTIONS = 10_000
#: Whether a resource exists, by the status of an answer to HEAD.
_EXISTS = {200: True, 404: False}


class Product(NamedTuple):
    """The product behind the gateway, and the sort key by which its version breaks ties.

    ``is_exact``: whether the caller could read the version.
    """

    name: str
    tiebreaker: str | None
    is_exact: bool = True


async def detect_product(upstream: Upstream, caller: HttpCaller) -> Product | RestResponse:
    """Return the product that answers a caller, or the answer if it hides the product.

    Raises:
        UpstreamFailure: nothing answers.
        EngineError: it is neither OpenSearch nor Elasticsearch.
    """
    reply = await upstream.ask(
        "GET", "/", caller, {**caller.headers, "accept": "application/json"}, safe=True
    )
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reply.headers}
    found = detect(Detected(reply.status, headers, reply.value), upstream.connection)
    if found is None:
        return RestResponse(reply.status, reply.value, reply)
    return _product(found, headers, reply.value)


def _product(name: str, headers: Mapping[str, str], body: object) -> Product:
    if name == "elasticsearch":
        return Product(name, "_shard_doc")
    from shinglefold.engines.http.product_detection import version_header
    from shinglefold.engines.opensearch import tiebreaker_of

    version = body.get("version") if isinstance(body, Mapping) else None
    number = version.get("number") if isinstance(version, Mapping) else None
    found = str(number or version_header(headers))
    return Product(name, tiebreaker_of(found), bool(found))


class CallerEngine:
    """The engine behind the gateway, for all callers.

    Args:
        product: ``opensearch`` or ``elasticsearch``.
    """

    def __init__(self, upstream: Upstream, product: str) -> None:
        self._upstream = upstream
        self._dialect: Dialect = OpenSearchDialect() if product == "opensearch" else ElasticsearchDialect()
        given = _client(product, list(upstream.connection.urls))
        self._transport = given.transport
        self._client = with_transport(given, through_function(given.transport, None, self._perform))
        self.awaited: AsyncEngine = open_async_engine(self._client)
        #: Returns the engine for threads other than that of a running loop, in which it sends.
        self.blocking = lru_cache(1)(partial(open_blocking_twin, self._client))

    async def _perform(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the clients' own types
        request, call = self._dialect.read(self._transport, args, kwargs, parsed=False)
        caller = CALLER.get()
        headers = {
            name.lower(): _VENDOR.sub(r"application/\1", str(value)) for name, value in call.headers.items()
        }
        # Those of the caller may name YAML.
        headers = {"accept": "application/json", "content-type": "application/json", **headers}
        own = {name: value for name, value in caller.headers.items() if name not in headers}
        safe = request.method in ("GET", "HEAD") or request.path.rpartition("/")[2] in _READING
        try:
            reply = await self._upstream.ask(
                request.method, target_of(request), caller, {**own, **headers}, request.body, safe=safe
            )
        except UpstreamFailure as failure:
            raise EngineUnavailable(f"{failure}.") from failure
        if (
            request.method == "HEAD"
            and isinstance(self._dialect, OpenSearchDialect)
            and reply.status in _EXISTS
        ):
            # The transport of OpenSearch's client returns no more than this.
            return _EXISTS[reply.status]
        return self._dialect.give(RestResponse(reply.status, reply.value), call, self._transport)


def load_clients(product: str) -> None:
    """Import the client of a product, "" for each that is installed: it takes longer than a request may."""
    for name, package in (("opensearch", "opensearchpy"), ("elasticsearch", "elasticsearch")):
        if product in ("", name) and find_spec(package) is not None:
            import_module(package)
            import_module(f"shinglefold.engines.{name}")


def target_of(request: RestRequest) -> str:
    """Return the path and the parameters of a request, percent-encoded."""
    query = urlencode(in_address(request.parameters))
    return f"{request.path}?{query}" if query else request.path


def _client(product: str, urls: list[str]) -> Any:  # noqa: ANN401 - the clients' own types
    """Return a client that never sends anything itself."""
    if product == "opensearch":
        from opensearchpy import AsyncOpenSearch

        return AsyncOpenSearch(urls, pool_maxsize=_CONNECTIONS)
    from elasticsearch import AsyncElasticsearch

    return AsyncElasticsearch(urls, connections_per_node=_CONNECTIONS)
