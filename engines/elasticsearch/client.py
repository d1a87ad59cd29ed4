"""A ``Connection`` in the words of the elasticsearch client."""

from typing import Any

from shinglefold.engines.elasticsearch.serializer import ElasticsearchSerializer
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.product_detection import tls_context
from shinglefold.errors import ConfigError

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
