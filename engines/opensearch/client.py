"""A ``Connection`` in the words of opensearch-py."""

from typing import Any

from opensearchpy.exceptions import (
    ConnectionError as NoConnection,
)
from opensearchpy.exceptions import (
    ImproperlyConfigured,
    OpenSearchException,
    SerializationError,
    TransportError,
)
from opensearchpy.serializer import JSONSerializer

from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.errors import ClientErrors, is_broken_answer, not_json, refusal, unavailable
from shinglefold.engines.http.product_detection import tls_context
from shinglefold.engines.http.responses import read_json
from shinglefold.errors import ConfigError, EngineError, MissingExtra

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


def _translate(error: Exception, who: str) -> EngineError:
    if isinstance(error, NoConnection):
        # Its own text repeats the client's class names; the cause says what happened.
        return unavailable(who, error.info or error.error)
    if isinstance(error, TransportError):
        return refusal(_status(error), error.info or error.error, who)
    if isinstance(error, SerializationError):
        return not_json(who, error.args)
    return EngineError(f"{who}: the client refused: {error}. Check the connection's options.")


def _status(error: Exception) -> int:
    if isinstance(error, SerializationError):
        return 0 if is_broken_answer(error.args) else 400
    status = error.status_code if isinstance(error, TransportError) else 0
    return status if isinstance(status, int) else 0


ERRORS = ClientErrors((OpenSearchException, ImproperlyConfigured), _translate, _status)

__all__ = ["ERRORS"]


class OpenSearchSerializer(JSONSerializer):
    """Writes requests as the client does, and reads answers faster."""

    def loads(self, s: str) -> Any:  # noqa: ANN401 - JSON
        """Return what an answer holds."""
        try:
            return read_json(s)
        except (ValueError, TypeError) as error:
            raise SerializationError(s, error) from error
