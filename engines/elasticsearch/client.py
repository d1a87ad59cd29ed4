"""A ``Connection`` in the words of the elasticsearch client."""

from typing import Any

from elasticsearch import ApiError, SerializationError, TransportError, UnsupportedProductError
from elasticsearch.serializer import JsonSerializer

from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.errors import ClientErrors, is_broken_answer, not_json, refusal, unavailable
from shinglefold.engines.http.product_detection import tls_context
from shinglefold.engines.http.responses import read_json
from shinglefold.errors import ConfigError, EngineError

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
