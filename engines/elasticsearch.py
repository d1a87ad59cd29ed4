"""Elasticsearch 8 and 9 behind the ``Engine`` contract, by the client of the server's major version.

Needs the extra ``elasticsearch``; without it the import raises ``MissingExtra``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, ClassVar

from shinglefold.errors import ConfigError, EngineError, MissingExtra, PermissionDenied

try:
    from elasticsearch import (
        ApiError,
        AsyncElasticsearch,
        Elasticsearch,
        SerializationError,
        TransportError,
        UnsupportedProductError,
    )
    from elasticsearch.helpers import expand_action
    from elasticsearch.serializer import JsonSerializer
except ModuleNotFoundError as _error:
    raise MissingExtra("elasticsearch", "the adapter for Elasticsearch") from _error

from shinglefold.contracts.engine import JSON, Capabilities
from shinglefold.engines.http.admin import AdminEngine
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.engine import AsyncHttpEngine
from shinglefold.engines.http.errors import ClientErrors, is_broken_answer, not_json, refusal, unavailable
from shinglefold.engines.http.product_detection import tls_context, without_redirects
from shinglefold.engines.http.requests import HttpRequests
from shinglefold.engines.http.responses import read_answer, read_json, search_path, version_in


class ElasticsearchSerializer(JsonSerializer):
    """Writes requests as the client does, and reads answers faster."""

    def json_loads(self, data: bytes) -> Any:  # noqa: ANN401 - JSON
        """Parse the JSON of an answer; the client translates errors."""
        return read_json(data)


def _translate(error: Exception, who: str) -> EngineError:
    if isinstance(error, UnsupportedProductError):
        return EngineError(f"{who} is not Elasticsearch; use opensearch+http://… if it is OpenSearch")
    if isinstance(error, ApiError):
        if _is_other_generation(error):
            return EngineError(
                f"{who} is of an older generation than the client; install its own, such as "
                "'elasticsearch>=8.19,<9' for Elasticsearch 8"
            )
        return refusal(error.status_code, error.body, who)
    if isinstance(error, SerializationError):
        return not_json(who, (*error.errors, error))
    if isinstance(error, TransportError):
        return unavailable(who, error)
    return EngineError(f"{who}: the client refused: {error}. Check the connection's options.")


def _is_other_generation(error: ApiError) -> bool:
    """Return whether a server refused the client's media type, which names the client's major version."""
    return error.status_code in (400, 406) and "media_type_header_exception" in str(error.body)


def _status(error: Exception) -> int:
    if isinstance(error, SerializationError):
        return 0 if is_broken_answer((*error.errors, error)) else 400
    # A server that refuses the client refuses every request, whatever its documents are.
    if isinstance(error, ApiError) and not _is_other_generation(error):
        return error.status_code
    return 0


class _ElasticsearchRequests(HttpRequests):
    """The requests that the client sends in its own way; both its variants have the same methods."""

    product: ClassVar[str] = "Elasticsearch"
    client_errors: ClassVar[ClientErrors] = ClientErrors((ApiError, TransportError), _translate, _status)
    #: With more slices than shards, the position of a document decides its slice, and replicas differ in it.
    can: Capabilities = replace(HttpRequests.can, slices="shards")

    def _search(self, index: str | None, body: JSON, parameters: dict[str, str]) -> Any:  # noqa: ANN401
        return self._post(search_path(index, "_search"), parameters, body)

    def _msearch(self, lines: Sequence[JSON]) -> Any:  # noqa: ANN401 - see the base
        return self._client.msearch(searches=list(lines))

    def _bulk_body(self, body: bytes) -> Any:  # noqa: ANN401 - see the base
        return self._client.bulk(operations=(body,))

    def _dumps(self, value: Any) -> str | bytes:  # noqa: ANN401 - see the base
        made: str | bytes = self._client.transport.serializers.dumps(value, JsonSerializer.mimetype)
        return made

    def _create_pit(self, index: str, parameters: dict[str, str]) -> Any:  # noqa: ANN401 - see the base
        return self._post(search_path(index, "_pit"), parameters)

    def _delete_pit(self, pit: str) -> Any:  # noqa: ANN401 - see the base
        return self._client.close_point_in_time(id=pit)

    def _post(self, path: str, parameters: dict[str, str], body: JSON | None = None) -> Any:  # noqa: ANN401
        # The client's own methods refuse parameters that servers of other versions have.
        headers = {"accept": "application/json"} | (
            {} if body is None else {"content-type": "application/json"}
        )
        return self._client.perform_request("POST", path, params=parameters, headers=headers, body=body)


class ElasticsearchEngine(_ElasticsearchRequests, AdminEngine):
    """An Elasticsearch cluster."""

    expand_action = staticmethod(expand_action)

    def info(self) -> JSON:
        """Return ``{"distribution": "elasticsearch", "version": …}``.

        The version is empty for a user without the cluster privilege ``monitor``.
        """
        try:
            with self._translate_errors():
                return {"distribution": "elasticsearch", "version": self._version()}
        except PermissionDenied:
            return {"distribution": "elasticsearch", "version": ""}

    def tiebreaker(self) -> str | None:
        """Return ``_shard_doc``; every version has it."""
        return "_shard_doc"

    def _connect(self, connection: Connection) -> Elasticsearch:
        return Elasticsearch(**_client_options(connection))

    def _create(self, index: str, mappings: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:  # noqa: ANN401
        return self._client.indices.create(index=index, mappings=dict(mappings), settings=dict(settings))

    def _version(self) -> str:
        try:
            return version_in(self._client.info(), self.who)
        except ApiError as error:
            if error.status_code != 405:
                raise
            # A distribution without the module that answers at the root still has the versions of its nodes.
            answer = self._client.nodes.info(node_id="_local")
            return read_answer(answer, self.who, "nodes, each with its version", _version_of_node)


class AsyncElasticsearchEngine(_ElasticsearchRequests, AsyncHttpEngine):
    """An Elasticsearch cluster whose methods are awaited. Needs the extra ``async`` as well."""

    def _connect(self, connection: Connection) -> AsyncElasticsearch:
        if find_spec("aiohttp") is None:
            raise MissingExtra("async", "the asynchronous adapter for Elasticsearch")
        from elastic_transport import AiohttpHttpNode

        node = without_redirects(AiohttpHttpNode)
        return AsyncElasticsearch(node_class=node, **_client_options(connection))


def _version_of_node(answer: JSON) -> str:
    first, *_ = answer["nodes"].values()
    return str(first["version"])


def _client_options(connection: Connection) -> dict[str, Any]:
    """Return the arguments for the client.

    Raises:
        ConfigError: requests are to be signed for AWS, which this client can't do.
    """
    if connection.aws_region:
        raise ConfigError("aws_region: only OpenSearch takes signed requests")
    options: dict[str, Any] = {
        "hosts": list(connection.urls),
        "request_timeout": connection.timeout,
        "max_retries": connection.retries,
        # Not 429 and 503: the engine retries those itself, after a wait.
        "retry_on_status": (502, 504),
        "connections_per_node": connection.max_connections,
        "serializers": {ElasticsearchSerializer.mimetype: ElasticsearchSerializer()},
    }
    if any(url.startswith("https:") for url in connection.urls):
        options["ssl_context"] = tls_context(connection)
        if not connection.verify:
            # Without these two options the client checks certificates even if the context does not.
            options |= {"verify_certs": False, "ssl_show_warn": False}
    if authorization := connection.authorization():
        options["headers"] = {"Authorization": authorization}
    return options
