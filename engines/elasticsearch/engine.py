"""Elasticsearch 8 and 9 behind the ``Engine`` contract, through the client of the server's generation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from elasticsearch import ApiError, BadRequestError, Elasticsearch, NotFoundError
from elasticsearch.helpers import streaming_bulk

from shinglefold.contracts.engine import JSON, Capabilities, Parameters
from shinglefold.engines.elasticsearch.client import ERRORS, client_options
from shinglefold.engines.http.bulk import BYTES, CHUNK
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.errors import ClientErrors
from shinglefold.engines.http.guarded_writes import GuardedEngine
from shinglefold.engines.http.responses import check_given, in_address, search_path, version_in
from shinglefold.errors import EngineError, PermissionDenied


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
