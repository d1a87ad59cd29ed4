"""Elasticsearch 8 and 9 behind the ``Engine`` contract, through the client of the server's generation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from elasticsearch import (
    ApiError,
    BadRequestError,
    Elasticsearch,
    NotFoundError,
    SerializationError,
    TransportError,
    UnsupportedProductError,
)
from elasticsearch.helpers import streaming_bulk
from elasticsearch.serializer import JsonSerializer

from shinglefold.contracts.engine import JSON, Capabilities, Parameters
from shinglefold.engines.http.bulk import BYTES, CHUNK
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.errors import ClientErrors, is_broken_answer, not_json, refusal, unavailable
from shinglefold.engines.http.guarded_writes import GuardedEngine
from shinglefold.engines.http.product_detection import tls_context
from shinglefold.engines.http.responses import check_given, in_address, read_json, search_path, version_in
from shinglefold.errors import ConfigError, EngineError, PermissionDenied

#: Connections kept open, as many as threads usefully ask at once.
_POOL = 16


def client_options(connection: Connection) -> dict[str, Any]:
    """Return the arguments for the client.

    Raises:
        ConfigError: requests are to be signed for AWS, which this client can't.
    """
    if connection.aws_region:
        raise ConfigError("aws_region: only OpenSearch takes signed requests")
    options: dict[str, Any] = {
        "hosts": list(connection.urls),
        "request_timeout": connection.timeout,
        "max_retries": connection.retries,
        # Busy is not dead: bulk waits and asks again itself.
        "retry_on_status": (502, 504),
        "connections_per_node": _POOL,
        "serializers": {ElasticsearchSerializer.mimetype: ElasticsearchSerializer()},
    }
    if any(url.startswith("https:") for url in connection.urls):
        options |= _tls(connection)
    if authorization := connection.authorization():
        options["headers"] = {"Authorization": authorization}
    return options


def _tls(connection: Connection) -> dict[str, Any]:
    options: dict[str, Any] = {"ssl_context": tls_context(connection)}
    # Without these the client would check certificates whatever the context says.
    return options if connection.verify else {**options, "verify_certs": False, "ssl_show_warn": False}


def _translate(error: Exception, who: str) -> EngineError:
    if isinstance(error, UnsupportedProductError):
        return EngineError(f"{who} is no Elasticsearch; say opensearch+http://… if it is OpenSearch")
    if isinstance(error, ApiError):
        if _is_other_generation(error):
            return EngineError(
                f"{who} is of an older generation than the client; install its own, such as "
                "'elasticsearch>=8.19,<9' for Elasticsearch 8"
            )
        return refusal(error.status_code, error.body or error.message, who)
    if isinstance(error, SerializationError):
        return not_json(who, (*error.errors, error))
    if isinstance(error, TransportError):
        return unavailable(who, error)
    return EngineError(f"{who}: the client refused: {error}. Check the connection's options.")


def _is_other_generation(error: ApiError) -> bool:
    """Tell whether a server refused the client's media type, which names the client's major version."""
    return error.status_code in (400, 406) and "media_type_header_exception" in str(error.body)


def _status(error: Exception) -> int:
    if isinstance(error, SerializationError):
        return 0 if is_broken_answer((*error.errors, error)) else 400
    # A server that refuses the client refuses all it sends: no use in looking for a culprit.
    if isinstance(error, ApiError) and not _is_other_generation(error):
        return error.status_code
    return 0


ERRORS = ClientErrors((ApiError, TransportError), _translate, _status)


class ElasticsearchSerializer(JsonSerializer):
    """Writes requests as the client does, and reads answers faster."""

    def json_loads(self, data: bytes) -> Any:  # noqa: ANN401 - JSON
        """Return what an answer holds; the client translates what is raised."""
        return read_json(data)


class ElasticsearchEngine(GuardedEngine):
    """An Elasticsearch cluster."""

    product: ClassVar[str] = "Elasticsearch"
    client_errors: ClassVar[ClientErrors] = ERRORS
    #: Slices beyond the number of shards are cut by a document's place, which differs between copies.
    can: Capabilities = replace(GuardedEngine.can, slices="shards")

    def info(self) -> JSON:
        """Return ``{"distribution": "elasticsearch", "version": …}``.

        The version is empty where whoever asks lacks the cluster privilege ``monitor``.
        """
        try:
            with self._asking():
                return {"distribution": "elasticsearch", "version": self._version()}
        except PermissionDenied:
            return {"distribution": "elasticsearch", "version": ""}

    def tiebreaker(self) -> str | None:
        """Return ``_shard_doc``; every version has it."""
        return "_shard_doc"

    def open_pit(self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None) -> str:
        """Open a point in time and return its id."""
        check_given(index)
        given = {"keep_alive": keep_alive, **in_address(parameters or {})}
        with self._asking():
            answer = self._post(search_path(index, "_pit"), given)
        return str(answer["id"])

    def close_pit(self, pit: str) -> None:
        """Close a point in time; one that is gone already is no error."""
        try:
            with self._asking():
                self._client.close_point_in_time(id=pit)
        except EngineError as error:
            if not isinstance(error.__cause__, NotFoundError | BadRequestError):
                raise

    def _connect(self, connection: Connection) -> Elasticsearch:
        return Elasticsearch(**client_options(connection))

    def _search_with(self, index: str | None, body: JSON, parameters: dict[str, str]) -> Any:  # noqa: ANN401
        return self._post(search_path(index, "_search"), parameters, body)

    def _post(self, path: str, parameters: dict[str, str], body: JSON | None = None) -> Any:  # noqa: ANN401
        # The client's own methods refuse parameters that servers of other versions have.
        headers = {"accept": "application/json"} | (
            {} if body is None else {"content-type": "application/json"}
        )
        return self._client.perform_request("POST", path, params=parameters, headers=headers, body=body)

    def _msearch(self, lines: Sequence[JSON]) -> Any:  # noqa: ANN401 - see the base
        return self._client.msearch(searches=list(lines))

    def _create(self, index: str, mappings: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        self._client.indices.create(index=index, mappings=dict(mappings), settings=dict(settings))

    def _bulk_once(self, lines: Sequence[JSON], *, refresh: bool) -> Any:  # noqa: ANN401 - see the base
        return self._client.bulk(operations=list(lines), refresh=refresh or None)

    def _bulk_body(self, body: bytes) -> Any:  # noqa: ANN401 - see the base
        return self._client.bulk(operations=(body,))

    def _helper(self, actions: Sequence[dict[str, Any]]) -> Iterator[tuple[bool, Mapping[str, Any]]]:
        done: Iterable[tuple[bool, Mapping[str, Any]]] = streaming_bulk(
            self._client, actions, chunk_size=CHUNK, max_chunk_bytes=BYTES, raise_on_error=False
        )
        return iter(done)

    def _version(self) -> str:
        try:
            return version_in(self._client.info(), self.who)
        except ApiError as error:
            if error.status_code != 405:
                raise
            # A distribution without the module that answers at the root still knows its nodes.
            nodes = self._client.nodes.info(node_id="_local")["nodes"]
            return str(next(iter(nodes.values()))["version"])
