"""OpenSearch 2 and 3 behind the ``Engine`` contract, through opensearch-py."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from opensearchpy import OpenSearch, Urllib3AWSV4SignerAuth
from opensearchpy.exceptions import (
    ConnectionError as NoConnection,
)
from opensearchpy.exceptions import (
    ImproperlyConfigured,
    NotFoundError,
    OpenSearchException,
    RequestError,
    SerializationError,
    TransportError,
)
from opensearchpy.helpers import streaming_bulk
from opensearchpy.serializer import JSONSerializer

from shinglefold.contracts.engine import JSON, Capabilities, Parameters
from shinglefold.engines.http.bulk import BYTES, CHUNK
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.errors import ClientErrors, is_broken_answer, not_json, refusal, unavailable
from shinglefold.engines.http.guarded_writes import GuardedEngine
from shinglefold.engines.http.product_detection import tls_context, told_version
from shinglefold.engines.http.responses import check_given, in_address, read_json, version_in
from shinglefold.errors import ConfigError, EngineError, MissingExtra, PermissionDenied

__all__ = ["ERRORS", "OpenSearchEngine"]

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


class OpenSearchSerializer(JSONSerializer):
    """Writes requests as the client does, and reads answers faster."""

    def loads(self, s: str) -> Any:  # noqa: ANN401 - JSON
        """Return what an answer holds."""
        try:
            return read_json(s)
        except (ValueError, TypeError) as error:
            raise SerializationError(s, error) from error


#: The first version that has ``_shard_doc``.
_SHARD_DOC_SINCE = (3, 3)


class OpenSearchEngine(GuardedEngine):
    """An OpenSearch cluster."""

    product: ClassVar[str] = "OpenSearch"
    client_errors: ClassVar[ClientErrors] = ERRORS
    can: Capabilities = replace(GuardedEngine.can, unaltered=UNALTERED)

    def info(self) -> JSON:
        """Return ``{"distribution": "opensearch", "version": …}``.

        The version is empty where the server does not tell it to whoever asks: that needs the right
        ``cluster:monitor/main``, which who may only read has not.
        """
        try:
            with self._asking():
                answer = self._client.info()
        except PermissionDenied:
            return {"distribution": "opensearch", "version": told_version(self.connection)}
        return {"distribution": "opensearch", "version": version_in(answer, self.who)}

    def tiebreaker(self) -> str | None:
        """Return ``_shard_doc`` where the server has it.

        None before 3.3, where ``_doc`` is not unique across shards, and where the server does not tell its
        version to whoever asks.
        """
        version = self.info()["version"]
        if not version:
            return None
        major, minor = (int(part) for part in version.split(".")[:2])
        return "_shard_doc" if (major, minor) >= _SHARD_DOC_SINCE else None

    @property
    def newest(self) -> Parameters:
        """Return what asks the primaries: where copies take over segments, a refresh does not reach them.

        And a copy that was given up may go on answering at a node that has not heard of it yet, while a write
        reaches the primary or fails.
        """
        return {"preference": "_primary"}

    def open_pit(self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None) -> str:
        """Open a point in time and return its id."""
        check_given(index)
        given = {"keep_alive": keep_alive, **WHOLE_PIT, **in_address(parameters or {})}
        with self._asking():
            answer = self._client.create_pit(index=index, params=given)
        return str(answer["pit_id"])

    def close_pit(self, pit: str) -> None:
        """Close a point in time; one that is gone already is no error."""
        try:
            with self._asking():
                self._client.delete_pit(body={"pit_id": [pit]})
        except EngineError as error:
            if not isinstance(error.__cause__, NotFoundError | RequestError):
                raise

    def _connect(self, connection: Connection) -> OpenSearch:
        options = client_options(connection)
        if connection.aws_region:
            credentials = aws_credentials(connection)
            options["http_auth"] = Urllib3AWSV4SignerAuth(
                credentials, connection.aws_region, connection.aws_service
            )
        return OpenSearch(**options)

    def _search_with(self, index: str | None, body: JSON, parameters: dict[str, str]) -> Any:  # noqa: ANN401
        return self._client.search(index=index, body=body, params=parameters)

    def _msearch(self, lines: Sequence[JSON]) -> Any:  # noqa: ANN401 - see the base
        return self._client.msearch(body=list(lines))

    def _create(self, index: str, mappings: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        self._client.indices.create(index=index, body={"mappings": mappings, "settings": settings})

    def _bulk_once(self, lines: Sequence[JSON], *, refresh: bool) -> Any:  # noqa: ANN401 - see the base
        return self._client.bulk(body=list(lines), params={"refresh": "true"} if refresh else {})

    def _bulk_body(self, body: bytes) -> Any:  # noqa: ANN401 - see the base
        return self._client.bulk(body=body)

    def _helper(self, actions: Sequence[dict[str, Any]]) -> Iterator[tuple[bool, Mapping[str, Any]]]:
        done: Iterator[tuple[bool, Mapping[str, Any]]] = streaming_bulk(
            self._client, actions, chunk_size=CHUNK, max_chunk_bytes=BYTES, raise_on_error=False
        )
        return done
