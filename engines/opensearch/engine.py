"""OpenSearch 2 and 3 behind the ``Engine`` contract, through opensearch-py."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from opensearchpy import OpenSearch, Urllib3AWSV4SignerAuth
from opensearchpy.exceptions import NotFoundError, RequestError
from opensearchpy.helpers import streaming_bulk

from shinglefold.contracts.engine import JSON, Capabilities, Parameters
from shinglefold.engines.http.bulk import BYTES, CHUNK
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.errors import ClientErrors
from shinglefold.engines.http.guarded_writes import GuardedEngine
from shinglefold.engines.http.product_detection import told_version
from shinglefold.engines.http.responses import check_given, in_address, version_in
from shinglefold.engines.opensearch.client import (
    ERRORS,
    UNALTERED,
    WHOLE_PIT,
    aws_credentials,
    client_options,
)
from shinglefold.errors import EngineError, PermissionDenied

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
