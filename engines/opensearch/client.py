"""A ``Connection`` in the words of opensearch-py."""

from typing import Any

from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.product_detection import tls_context
from shinglefold.engines.opensearch.serializer import OpenSearchSerializer
from shinglefold.errors import ConfigError, MissingExtra

#: Connections kept open, as many as threads usefully ask at once.
_POOL = 16
#: A point in time that lacked shards would let a scan pass them over without a word.
WHOLE_PIT = {"allow_partial_pit_creation": "false"}
#: Without the search pipeline that an index has for all searches (``index.search.default_pipeline``).
UNALTERED = {"search_pipeline": "_none"}


def client_options(connection: Connection) -> dict[str, Any]:
    """Return the arguments for the client, but for the signer, which is not the same for all its variants."""
    options: dict[str, Any] = {
        "hosts": list(connection.urls),
        "timeout": connection.timeout,
        "max_retries": connection.retries,
        # Busy is not dead: bulk waits and asks again itself.
        "retry_on_status": (502, 504),
        "pool_maxsize": _POOL,
        "serializer": OpenSearchSerializer(),
    }
    if any(url.startswith("https:") for url in connection.urls):
        options["ssl_context"] = tls_context(connection)
    if authorization := connection.authorization():
        options["headers"] = {"Authorization": authorization}
    return options


def aws_credentials(connection: Connection) -> Any:  # noqa: ANN401 - botocore's own type
    """Return the credentials botocore finds: environment, profile, or the role of the machine.

    Raises:
        MissingExtra: botocore is not installed.
        ConfigError: it finds none.
    """
    try:
        from botocore.session import Session
    except ModuleNotFoundError as error:
        raise MissingExtra("aws", "signing requests for Amazon OpenSearch Service") from error
    credentials = Session().get_credentials()
    if credentials is None:
        raise ConfigError("aws_region: botocore finds no credentials; set AWS_ACCESS_KEY_ID or AWS_PROFILE")
    return credentials
