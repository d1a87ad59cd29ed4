"""OpenSearch 2 and 3 behind the ``Engine`` contract, through opensearch-py.

Needs the extra ``opensearch``; without it the import raises ``MissingExtra``.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from shinglefold.errors import ConfigError, EngineError, EngineUnavailable, MissingExtra, PermissionDenied

try:
    from opensearchpy import OpenSearch, Urllib3AWSV4SignerAuth
    from opensearchpy.exceptions import ConnectionError as NoConnection
    from opensearchpy.exceptions import (
        ImproperlyConfigured,
        OpenSearchException,
        SerializationError,
        TransportError,
    )
    from opensearchpy.helpers import expand_action
    from opensearchpy.serializer import JSONSerializer
except ModuleNotFoundError as _error:
    raise MissingExtra("opensearch", "the adapter for OpenSearch") from _error

from shinglefold.contracts.engine import JSON, Capabilities
from shinglefold.engines.http.admin import AdminEngine
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.engine import AsyncHttpEngine
from shinglefold.engines.http.errors import ClientErrors, is_broken_answer, not_json, refusal, unavailable
from shinglefold.engines.http.product_detection import tls_context, version_for_all, without_redirects
from shinglefold.engines.http.requests import HttpRequests, Steps
from shinglefold.engines.http.responses import read_json, version_in
from shinglefold.runtime.sans_io import run, run_async

#: Parameters that skip the search pipeline of an index (``index.search.default_pipeline``).
_UNALTERED = {"search_pipeline": "_none"}
#: Parameters that search the primaries. With segment replication a refresh does not reach the replicas. A
#: node that has lost the cluster may also answer from an old replica; a write reaches the primary or fails.
_NEWEST = {"preference": "_primary"}
#: The setting of an index that names the pipeline of its searches.
_PIPELINE = "index.search.default_pipeline"
#: The first version that has ``_shard_doc``.
_SHARD_DOC_SINCE = (3, 3)


class OpenSearchSerializer(JSONSerializer):
    """Writes requests as the client does, and reads answers faster."""

    def loads(self, s: str) -> Any:  # noqa: ANN401 - JSON
        """Parse the JSON of an answer."""
        try:
            return read_json(s)
        except (ValueError, TypeError) as error:
            raise SerializationError(s, error) from error


def tiebreaker_of(version: str) -> str | None:
    """Return the sort key that makes an order total on a server of a version; None if it has none."""
    if not version:
        return None
    major, minor = (int(part) for part in version.split(".")[:2])
    return "_shard_doc" if (major, minor) >= _SHARD_DOC_SINCE else None


def _translate(error: Exception, who: str) -> EngineError:
    if isinstance(error, NoConnection):
        # The text of the error repeats the client's class names; the cause says what happened.
        return unavailable(who, error.info or error.error)
    if isinstance(error, TransportError):
        return refusal(_status(error), error.info or error.error, who)
    if isinstance(error, SerializationError):
        return not_json(who, error.args[-1:])
    return EngineError(f"{who}: the client refused: {error}. Check the connection's options.")


def _status(error: Exception) -> int:
    if isinstance(error, SerializationError):
        return 0 if is_broken_answer(error.args[-1:]) else 400
    status = error.status_code if isinstance(error, TransportError) else 0
    return status if isinstance(status, int) else 0


class _OpenSearchRequests(HttpRequests):
    """The requests that opensearch-py sends in its own way; both its clients have the same methods."""

    product: ClassVar[str] = "OpenSearch"
    client_errors: ClassVar[ClientErrors] = ClientErrors(
        (OpenSearchException, ImproperlyConfigured), _translate, _status
    )
    can: Capabilities = replace(
        HttpRequests.can,
        unaltered=_UNALTERED,
        search_pipelines=True,
        template_status=True,
        newest=_NEWEST,
    )

    def _search(self, index: str | None, body: JSON, parameters: dict[str, str]) -> Any:  # noqa: ANN401
        return self._client.search(index=index, body=body, params=parameters)

    def _msearch(self, lines: Sequence[JSON]) -> Any:  # noqa: ANN401 - see the base
        return self._client.msearch(body=list(lines))

    def _bulk_body(self, body: bytes) -> Any:  # noqa: ANN401 - see the base
        return self._client.bulk(body=body)

    def _dumps(self, value: Any) -> str | bytes:  # noqa: ANN401 - see the base
        made: str | bytes = self._client.transport.serializer.dumps(value)
        return made

    def _create_pit(self, index: str, parameters: dict[str, str]) -> Any:  # noqa: ANN401 - see the base
        # A scan would silently skip the shards that a partial point in time lacks.
        return self._client.create_pit(
            index=index, params={"allow_partial_pit_creation": "false", **parameters}
        )

    def _delete_pit(self, pit: str) -> Any:  # noqa: ANN401 - see the base
        return self._client.delete_pit(body={"pit_id": [pit]})

    def _search_pipeline_steps(self, index: str, name: str | None) -> Steps[JSON]:
        try:
            if name is None:
                settings = yield from self._settings_steps(index, _PIPELINE)
                values = (one.get(_PIPELINE) for one in settings.values())
                names = {str(value) for value in values if value not in (None, "_none")}
                # If the indices have several pipelines, the server uses none.
                name = names.pop() if len(names) == 1 else "_none"
            if name == "_none":
                return {}

            def read(answer: JSON) -> JSON:
                return dict(answer[name])

            send = partial(self._client.search_pipeline.get, id=name)
            return (yield from self._answer(send, f"the search pipeline {name!r}", read))
        except EngineUnavailable:
            raise
        except EngineError:
            # There is none of this name, or a role may not read it.
            return {}


class OpenSearchEngine(_OpenSearchRequests, AdminEngine):
    """An OpenSearch cluster."""

    expand_action = staticmethod(expand_action)

    def info(self) -> JSON:
        """Return ``{"distribution": "opensearch", "version": …}``.

        The version is empty if the server hides it from users without the permission
        ``cluster:monitor/main``, such as those who may only read.
        """
        try:
            with self._translate_errors():
                answer = self._client.info()
        except PermissionDenied:
            return {"distribution": "opensearch", "version": version_for_all(self.connection)}
        return {"distribution": "opensearch", "version": version_in(answer, self.who)}

    def tiebreaker(self) -> str | None:
        """Return ``_shard_doc`` if the server has it.

        None before 3.3, where ``_doc`` is not unique across shards, and if the version is not known.
        """
        return tiebreaker_of(self.info()["version"])

    def search_pipeline(self, index: str, name: str | None) -> JSON:
        """Return the definition of a search pipeline, by default that of an index.

        {} if there is none, or the user may not read it.
        """
        return run(self._search_pipeline_steps(index, name), operator.call)

    def _connect(self, connection: Connection) -> OpenSearch:
        return OpenSearch(**_client_options(connection, Urllib3AWSV4SignerAuth))

    def _create(self, index: str, mappings: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:  # noqa: ANN401
        return self._client.indices.create(index=index, body={"mappings": mappings, "settings": settings})


class AsyncOpenSearchEngine(_OpenSearchRequests, AsyncHttpEngine):
    """An OpenSearch cluster whose methods are awaited. Needs the extra ``async`` as well."""

    async def search_pipeline(self, index: str, name: str | None) -> JSON:
        """Return the definition of a search pipeline; see ``OpenSearchEngine.search_pipeline``."""
        return await run_async(self._search_pipeline_steps(index, name), self._send_in_turn)

    def _connect(self, connection: Connection) -> Any:  # noqa: ANN401 - see the base
        try:
            from opensearchpy import AIOHttpConnection, AsyncOpenSearch, AWSV4SignerAsyncAuth
        except ImportError as error:
            raise MissingExtra("async", "the asynchronous adapter for OpenSearch") from error
        options = _client_options(connection, AWSV4SignerAsyncAuth)
        return AsyncOpenSearch(connection_class=without_redirects(AIOHttpConnection), **options)


def _client_options(connection: Connection, signer: Any) -> dict[str, Any]:  # noqa: ANN401 - a class
    """Return the arguments for the client.

    Args:
        signer: signs requests for AWS; each client has its own.
    """
    options: dict[str, Any] = {
        "hosts": list(connection.urls),
        "timeout": connection.timeout,
        "max_retries": connection.retries,
        # Not 429 and 503: the engine retries those itself, after a wait.
        "retry_on_status": (502, 504),
        "pool_maxsize": connection.max_connections,
        "serializer": OpenSearchSerializer(),
    }
    if any(url.startswith("https:") for url in connection.urls):
        options["ssl_context"] = tls_context(connection)
    if authorization := connection.authorization():
        options["headers"] = {"Authorization": authorization}
    if connection.aws_region:
        options["http_auth"] = signer(_aws_credentials(), connection.aws_region, connection.aws_service)
    return options


def _aws_credentials() -> Any:  # noqa: ANN401 - botocore's own type
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
