"""Requests through a client, as sans-IO generators: the blocking and the awaited engine both run them."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import Any, ClassVar, Self, TypeVar
from urllib.parse import quote

from shinglefold.contracts.engine import (
    JSON,
    Capabilities,
    Guard,
    Parameters,
    Search,
    VersionedDocument,
    WriteResult,
    search_parts,
)
from shinglefold.engines.http.bulk import DROPPED, DROPPED_REASON, bulk_lines, was_dropped
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.errors import (
    FOR_ALL,
    ClientErrors,
    error_type,
    field_remedy,
    read_status,
    reason,
    refusal,
    under_pit,
)
from shinglefold.engines.http.responses import (
    HITS,
    ITEMS,
    SETTINGS,
    check_given,
    check_local,
    check_name,
    check_refreshed,
    check_searched,
    check_searches,
    fits_msearch,
    in_address,
    insert_refusals,
    msearch_lines,
    objects_in,
    one_mapping,
    parse_msearch,
    read_answer,
    search_answer,
    with_objects,
)
from shinglefold.errors import (
    ConfigError,
    EngineError,
    EngineUnavailable,
    IndexMissing,
    PermissionDenied,
    UnsupportedQuery,
)

T = TypeVar("T")
#: A generator of requests for ``operator.call``: receives what the client returns or raises; returns T.
Steps = Generator[Callable[[], Any], Any, T]
#: The connections of opensearch-py's asynchronous client, unless it is told otherwise.
_ASYNC_OPENSEARCH_POOL = 10
_BULK_METADATA = ("_index", "_id", "routing", "if_seq_no", "if_primary_term", "pipeline")
_UUID = "index.uuid"
#: The settings that name ingest pipelines, and the value that means "no pipeline".
_PIPELINES, _NO_PIPELINE = ("index.default_pipeline", "index.final_pipeline"), "_none"


class HttpRequests(ABC):
    """A client, the translation of its errors, and the requests that both kinds of engine send through it.

    A subclass for a product sends each request through the client. The client may block or be awaited.

    Args:
        connection: the addresses and the credentials; with ``client`` only its addresses.
        client: a client to use unchanged; closing the engine leaves it open. None opens one.
    """

    #: The name of the product in messages, and what its client raises.
    product: ClassVar[str]
    client_errors: ClassVar[ClientErrors]
    #: Two bulk requests are sent at a time, so that the server need not wait for the next one.
    can: Capabilities = Capabilities(
        bulks_at_once=2, takes_json=True, seq_no=True, routing=True, slices="any", samples=True
    )

    def __init__(self, connection: Connection, *, client: Any = None) -> None:  # noqa: ANN401
        self.connection = connection
        self.owns_client = client is None
        self._client = self._connect(connection) if client is None else client
        self._closed = False

    @classmethod
    def of_client(cls, client: Any) -> Self:  # noqa: ANN401 - the clients' own types
        """Return an engine that uses a client unchanged, with its credentials, pool and hooks.

        Raises:
            ConfigError: the client hides errors (``options(ignore_status=…)``).
        """
        check_raises_errors(client)
        product, most = cls.product.lower(), pool_size(client)
        return cls(Connection(addresses_of(client), product=product, max_connections=most), client=client)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.connection!r})"

    @property
    def who(self) -> str:
        """The server, as messages name it."""
        return f"{self.product} at {self.connection.address}"

    @abstractmethod
    def _connect(self, connection: Connection) -> Any:  # noqa: ANN401 - the clients' own types
        """Return the client."""

    @abstractmethod
    def _search(self, index: str | None, body: JSON, parameters: dict[str, str]) -> Any:  # noqa: ANN401
        """Send a search with parameters."""

    @abstractmethod
    def _msearch(self, lines: Sequence[JSON]) -> Any:  # noqa: ANN401 - the clients' own types
        """Send several searches."""

    @abstractmethod
    def _bulk_body(self, body: bytes) -> Any:  # noqa: ANN401 - the clients' own types
        """Send the body of one bulk request through the client."""

    @abstractmethod
    def _dumps(self, value: Any) -> str | bytes:  # noqa: ANN401 - JSON
        """Return a value as JSON, as the client writes it."""

    @abstractmethod
    def _create_pit(self, index: str, parameters: dict[str, str]) -> Any:  # noqa: ANN401
        """Open a point in time; its id is in the answer as ``id`` or ``pit_id``."""

    @abstractmethod
    def _delete_pit(self, pit: str) -> Any:  # noqa: ANN401 - the clients' own types
        """Close a point in time."""

    def _mapping_steps(self, index: str) -> Steps[JSON]:
        """Return the mappings of an index, or those of several (alias, pattern) combined."""
        return one_mapping(index, (yield from self._mapping_answer(index)), self.who)

    def _all_mappings_steps(self, pattern: str) -> Steps[dict[str, JSON]]:
        """Return the mappings of each index that a name, alias or pattern matches."""
        answer = yield from self._mapping_answer(pattern)
        return {index: entry["mappings"] for index, entry in answer.items()}

    def _mapping_answer(self, pattern: str) -> Steps[JSON]:
        check_given(pattern)
        check_local(pattern)
        send = partial(self._client.indices.get_mapping, index=pattern)
        return (yield from self._answer(send, "the mappings of each index", _mappings))

    def _search_steps(
        self, index: str | None, body: Mapping[str, Any], parameters: Parameters | None = None
    ) -> Steps[JSON]:
        check_searched(index, body)
        refine = under_pit if index is None else None
        given = in_address(parameters or {})
        send = partial(self._client.search, index=index, body=dict(body))
        if given:
            send = partial(self._search, index, dict(body), given)
        # A filtered answer may lack the hits.
        read: Callable[[JSON], JSON] = dict if "filter_path" in given else search_answer
        return (yield from self._answer(send, HITS, read, refine))

    def _msearch_steps(self, searches: Sequence[Search]) -> Steps[list[JSON | EngineError]]:
        """Return the answer to each of several searches, in one request if that is possible."""
        refusals, sent = check_searches(searches)
        if not sent:
            return insert_refusals(refusals, [])
        # Some parameters hold for a whole request, so each search is a separate one.
        together = all(fits_msearch(search) for search in sent)
        answers = yield from (self._in_one_request(sent) if together else self._one_by_one(sent))
        return insert_refusals(refusals, answers)

    def _in_one_request(self, searches: Sequence[Search]) -> Steps[list[JSON | EngineError]]:
        try:
            with self._translate_errors():
                answer = yield lambda: self._msearch(msearch_lines(searches))
                read = partial(parse_msearch, searches, who=self.who)
                return read_answer(answer, self.who, "responses, one for each search", read)
        except UnsupportedQuery as error:
            if len(searches) == 1:
                return [error]
        except PermissionDenied:
            # A role that only reads indices may search, but on OpenSearch not several times at once.
            return (yield from self._one_by_one(searches))
        # A server that can't read one of them refuses all.
        answers: list[JSON | EngineError] = []
        for search in searches:
            answers += yield from self._in_one_request([search])
        return answers

    def _one_by_one(self, searches: Sequence[Search]) -> Steps[list[JSON | EngineError]]:
        answers: list[JSON | EngineError] = []
        for search in searches:
            try:
                answers.append((yield from self._search_steps(*search_parts(search))))
            except EngineError as error:
                answers.append(error)
        return answers

    def _open_pit_steps(self, index: str, keep_alive: str, parameters: Parameters | None) -> Steps[str]:
        check_given(index)
        given = {"keep_alive": keep_alive, **in_address(parameters or {})}
        return (yield from self._answer(lambda: self._create_pit(index, given), "pit_id or id", _pit_id))

    def _close_pit_steps(self, pit: str) -> Steps[None]:
        try:
            yield from self._answer(lambda: self._delete_pit(pit), "pits or succeeded", _check_closed)
        except EngineError as error:
            # Servers answer one of these if the point in time does not exist any more.
            cause = error.__cause__
            if not isinstance(cause, Exception) or self.client_errors.status(cause) not in (400, 404):
                raise

    def _refresh_steps(self, index: str) -> Steps[None]:
        check_given(index)
        begun = monotonic()

        def read(answer: JSON) -> None:
            check_refreshed(answer, monotonic() - begun, self.who)

        yield from self._answer(lambda: self._client.indices.refresh(index=index), "_shards", read)

    def _write_steps(self, actions: Sequence[Mapping[str, Any]]) -> Steps[list[WriteResult]]:
        if not actions:
            return []
        sent = [line for action in actions for line in _action_lines(action)]

        def read(answer: JSON) -> list[WriteResult]:
            for result in (result for item in answer["items"] for result in item.values()):
                if error_type(result) in FOR_ALL:
                    raise refusal(result["status"], result, self.who)
            return [_write_result(item, one) for item, one in zip(answer["items"], actions, strict=True)]

        return (yield from self._answer(lambda: self._bulk_body(bulk_lines(sent, self._dumps)), ITEMS, read))

    def _read_steps(
        self, index: str, ids: Sequence[str], source: Sequence[str], routings: Sequence[str | None]
    ) -> Steps[list[VersionedDocument | None]]:
        check_name(index)
        if not ids:
            return []
        each = zip(ids, routings or [None] * len(ids), strict=True)
        body = {"docs": [_mget_item(index, id_, source, routing) for id_, routing in each]}

        def read(answer: JSON) -> list[VersionedDocument | None]:
            for found, _ in zip(answer["docs"], ids, strict=True):
                if "error" in found:
                    raise refusal(read_status(found), found, self.who)
            return [_versioned_document(found) for found in answer["docs"]]

        send = partial(self._client.mget, body=body, **self.can.newest)
        return (yield from self._answer(send, "docs, one for each id", read))

    def _identities_steps(self, indices: Sequence[str]) -> Steps[dict[str, str]]:
        try:
            found = yield from self._settings_steps(",".join(indices), _UUID)
        except PermissionDenied:
            return dict.fromkeys(indices, "")
        return {name: settings[_UUID] for name, settings in found.items() if _UUID in settings}

    def _ingest_pipelines_steps(self, index: str) -> Steps[tuple[str, ...]]:
        try:
            found = yield from self._settings_steps(index, *_PIPELINES)
        except (PermissionDenied, IndexMissing):
            return ()
        named = {str(one) for settings in found.values() for one in settings.values()}
        return tuple(sorted(named - {_NO_PIPELINE}))

    def _settings_steps(self, index: str, *names: str) -> Steps[dict[str, JSON]]:
        """Return some settings of each index that a name or several match."""
        options = {"name": ",".join(names), "flat_settings": True, "ignore_unavailable": True}
        send = partial(self._client.indices.get_settings, index=index, **options)
        return (yield from self._answer(send, SETTINGS, partial(objects_in, "settings")))

    def _answer(
        self,
        send: Callable[[], Any],
        expected: str,
        read: Callable[[JSON], T],
        refine: Callable[[EngineError], EngineError] | None = None,
    ) -> Steps[T]:
        """Send a request and return its parsed answer; see ``read_answer`` and ``_translate_errors``."""
        with self._translate_errors(refine):
            return read_answer((yield send), self.who, expected, read)

    @contextmanager
    def _translate_errors(self, refine: Callable[[EngineError], EngineError] | None = None) -> Iterator[None]:
        """Translate what the client raises.

        Args:
            refine: returns the error to raise instead of the translated one.
        """
        self._check_open()
        try:
            yield
        except self.client_errors.raised as error:
            translated = self.client_errors.translate(error, self.who)
            raise (translated if refine is None else refine(translated)) from error

    def _all_busy(self) -> EngineUnavailable:
        most, seconds = self.connection.max_connections, self.connection.timeout
        return EngineUnavailable(
            f"{self.who}: all {most} connections were busy for {seconds:g} s; send fewer requests at a time, "
            "or allow more: SHINGLEFOLD_ENGINE_MAX_CONNECTIONS (of your own client: the size of its pool)"
        )

    def _check_open(self) -> None:
        if self._closed:
            raise EngineError(f"the connection to {self.who} is closed; open another")


def _mappings(answer: JSON) -> dict[str, JSON]:
    return {
        index: {"mappings": with_objects(mappings)}
        for index, mappings in objects_in("mappings", answer).items()
    }


def _pit_id(answer: JSON) -> str:
    return str(answer["pit_id"] if "pit_id" in answer else answer["id"])


def _check_closed(answer: JSON) -> None:
    if not answer.keys() & {"pits", "succeeded"}:
        raise KeyError("pits")


def _action_lines(action: Mapping[str, Any]) -> Iterator[JSON]:
    verb = action.get("_op_type", "index")
    yield {verb: {name: action[name] for name in _BULK_METADATA if name in action}}
    if verb == "update":
        # Without detect_noop an update that changes nothing makes a new version, too.
        yield {"doc": action["doc"], "detect_noop": False}
    elif verb != "delete":
        yield action["_source"]


def _mget_item(index: str, id_: str, source: Sequence[str], routing: str | None) -> JSON:
    item: JSON = {"_index": index, "_id": id_, **({"_source": list(source)} if source else {})}
    return item if routing is None else {**item, "routing": routing}


def _write_result(item: Mapping[str, Any], action: Mapping[str, Any]) -> WriteResult:
    (result,) = item.values()
    if was_dropped(item):
        return WriteResult(DROPPED, None, DROPPED_REASON)
    if why := _redirection(result, action):
        return WriteResult(DROPPED, None, why)
    if "error" in result:
        why = reason({"error": result["error"]})
        remedy = field_remedy(why)
        return WriteResult(result["status"], None, f"{why}. {remedy}" if remedy else why)
    return WriteResult(result["status"], Guard(result["_seq_no"], result["_primary_term"]))


def _redirection(result: Mapping[str, Any], action: Mapping[str, Any]) -> str:
    """Return a clause about the index to which a pipeline sent a document; guards have no effect there."""
    index, id_ = result.get("_index", action["_index"]), result.get("_id", action.get("_id"))
    if index != action["_index"]:
        return f"the index's own pipeline sends it to the index {index!r}"
    if "_id" in action and id_ != action["_id"]:
        return f"the index's own pipeline gives it the id {id_!r}"
    return ""


def _versioned_document(found: Mapping[str, Any]) -> VersionedDocument | None:
    if not found.get("found"):
        return None
    return VersionedDocument(
        found["_id"], dict(found.get("_source") or {}), Guard(found["_seq_no"], found["_primary_term"])
    )


def addresses_of(client: Any) -> tuple[str, ...]:  # noqa: ANN401 - the clients' own types
    """Return the addresses of a client, without credentials; for messages."""
    transport = client.transport
    if hasattr(transport, "node_pool"):
        return tuple(node.base_url for node in transport.node_pool.all())
    return tuple(_address(host) for host in transport.hosts)


def pool_size(client: Any) -> int:  # noqa: ANN401 - the clients' own types
    """Return how many requests a client sends at a time before others wait for a connection."""
    transport = client.transport
    if hasattr(transport, "node_pool"):
        return sum(node.config.connections_per_node for node in transport.node_pool.all())
    if "_async" not in type(transport).__module__.split("."):
        # The blocking client of OpenSearch opens further connections instead.
        return sys.maxsize
    most = transport.pool_maxsize or transport.kwargs.get("maxsize", _ASYNC_OPENSEARCH_POOL)
    return max(1, len(transport.hosts)) * int(most)


def _address(host: dict[str, Any]) -> str:
    scheme = "https" if host.get("use_ssl") or host.get("scheme") == "https" else "http"
    port = f":{host['port']}" if "port" in host else ""
    prefix = quote(str(host.get("url_prefix", "")).strip("/"), safe="/%")
    name = str(host.get("host", "localhost"))
    name = f"[{name}]" if ":" in name else name
    return f"{scheme}://{name}{port}" + (f"/{prefix}" if prefix else "")


def check_raises_errors(client: Any) -> None:  # noqa: ANN401 - the clients' own types
    """Check that a client raises the errors of a server.

    Raises:
        ConfigError: it returns them instead.
    """
    ignored = getattr(client, "_ignore_status", None)
    if isinstance(ignored, int | tuple | list | set) and ignored:
        raise ConfigError(
            f"the client ignores the statuses {ignored}, so errors would go unnoticed: give it without "
            "options(ignore_status=…)"
        )
