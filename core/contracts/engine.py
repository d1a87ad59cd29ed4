"""The contracts of processors and engines, as protocols, and the values in their signatures."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from shinglefold.errors import EngineError

#: A JSON object. In a pipeline it has ``_id`` and ``_index`` in addition to its fields.
Document = dict[str, Any]
JSON = dict[str, Any]
#: The URL parameters of a request, by their names in the servers' interface.
Parameters = Mapping[str, Any]
#: The format of a date whose mapping names none.
DATE_FORMAT = "strict_date_optional_time||epoch_millis"
#: Statuses of an engine that is busy now, and of a request that it did not run.
BUSY, NOT_RUN = frozenset({429, 502, 503, 504}), frozenset({429, 503})
#: One search of ``msearch``: index, body and, optionally, parameters. The index is None if the body names a
#: point in time.
Search = tuple[str | None, Mapping[str, Any]] | tuple[str | None, Mapping[str, Any], Parameters | None]


def search_parts(search: Search) -> tuple[str | None, Mapping[str, Any], Parameters | None]:
    """Return index, body and parameters of one search of ``msearch``."""
    return search if len(search) == 3 else (search[0], search[1], None)


@runtime_checkable
class Processor(Protocol):
    """One step of an ingest pipeline; takes documents in blocks, which make fingerprinting cheap."""

    #: The name of the processor in a pipeline's JSON.
    type: ClassVar[str]

    def apply(self, documents: Sequence[Document]) -> list[Document | Exception | None]:
        """Return for each document, in order, the new document, None to drop it, or the error.

        Must not change the documents given, and must not raise because of a document.
        """
        ...


@dataclass(frozen=True, slots=True)
class BulkFailure:
    """One action that the engine did not do, and the engine's reason.

    ``dropped``: an ingest pipeline of the server dropped the document on purpose.
    """

    action: Mapping[str, Any]
    status: int
    reason: str
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class BulkResult:
    """The outcome of a bulk request: ``indexed + len(failures)`` is the number of actions.

    Attributes:
        written_over: how many of the indexed documents replaced one with the same id.
        renamed: how many of the indexed documents are in another index than the one named, by its name. It is
            the index behind an alias, or one that a pipeline of the server chose.
    """

    indexed: int
    failures: tuple[BulkFailure, ...] = field(default=())
    written_over: int = 0
    renamed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do beyond the common contract; known without asking a server.

    Attributes:
        bulks_at_once: how many threads may usefully send bulk requests at the same time.
        takes_json: the ``_source`` of a bulk action may also be JSON on one line, as text or as bytes; it is
            sent unchanged.
        seq_no: documents have versions: ``_seq_no`` is a doc value, hits have it on request
            (``seq_no_primary_term``), and ``if_seq_no`` guards writes.
        routing: documents may have a routing.
        slices: into how many slices a point in time can be cut, the same for every process: none, at most the
            number of shards, or any number.
        samples: the aggregation ``sampler`` reads only the best hits of each shard.
        unaltered: keys for the body of a search that must bypass search pipelines, which may filter, cut and
            fold hits.
        search_pipelines: searches may go through a pipeline, which ``search_pipeline`` returns.
        template_status: answers to searches by templates have the status.
        newest: parameters of a search, or of a point in time, that must see all that a refresh made visible.
    """

    bulks_at_once: int = 1
    takes_json: bool = False
    seq_no: bool = False
    routing: bool = False
    slices: Literal["none", "shards", "any"] = "none"
    samples: bool = False
    unaltered: JSON = field(default_factory=dict)
    search_pipelines: bool = False
    template_status: bool = False
    newest: Parameters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An existing index.

    Attributes:
        documents: as of the last refresh, as the engine counts them (with nested ones); None if the index
            can't be read now.
        size: bytes on disk, without replicas; None if the index can't be read now.
        aliases: sorted.
    """

    name: str
    documents: int | None
    size: int | None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Guard:
    """The version of a document. A write with this guard fails if the document has changed since."""

    seq_no: int
    primary_term: int


@dataclass(frozen=True, slots=True)
class VersionedDocument:
    """The current version of a document."""

    id: str
    source: Mapping[str, Any]
    guard: Guard


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The outcome of a guarded write: the HTTP status, and the new version or the reason for the failure."""

    status: int
    guard: Guard | None = None
    reason: str = ""


@runtime_checkable
class GuardedWrites(Protocol):
    """Implemented by engines whose documents have versions (``Capabilities.seq_no``)."""

    def identities(self, indices: Sequence[str]) -> dict[str, str]:
        """Return the UUID of each existing index: a later index of the same name has another.

        Empty if the user may not read settings.
        """
        ...

    def ingest_pipelines(self, index: str) -> tuple[str, ...]:
        """Return the ingest pipelines that documents of an index go through by default.

        Empty if the user may not read settings, or if there is no such index.
        """
        ...

    def write(self, actions: Sequence[Mapping[str, Any]]) -> list[WriteResult]:
        """Run bulk actions once and return the outcome of each, in order.

        Actions are those of ``Engine.bulk``, guarded by ``if_seq_no`` and ``if_primary_term``. Nothing is
        retried. After an error the caller must find out which actions were done.

        Raises:
            EngineError: the request as a whole failed.
        """
        ...

    def read(
        self,
        index: str,
        ids: Sequence[str],
        source: Sequence[str] = (),
        routings: Sequence[str | None] = (),
    ) -> list[VersionedDocument | None]:
        """Return the current version of documents, searchable or not; None for each missing one.

        Args:
            source: the fields to return; by default all.
            routings: the routing of each document; one with another routing is not found.
        """
        ...


class GroupNumbers(Protocol):
    """Assigns group numbers to documents before they are indexed."""

    def number(self, actions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return index actions, in order, with the group numbers in their documents.

        Batches arrive in the order in which they are sent. At most ``Capabilities.bulks_at_once`` of them are
        being sent.

        Raises:
            EngineError: a search for earlier documents failed.
        """
        ...


class Templates(Protocol):
    """Index templates, and the settings and aliases of existing indices."""

    def component_template(self, name: str) -> JSON | None:
        """Return ``{"template": …}``, or None if there is none of this name."""
        ...

    def put_component_template(self, name: str, body: Mapping[str, Any]) -> None:
        """Install or replace a component template."""
        ...

    def index_templates(self) -> dict[str, JSON]:
        """Return every index template by name: ``{"index_patterns": …, "composed_of": …}``."""
        ...

    def put_index_template(self, name: str, body: Mapping[str, Any]) -> None:
        """Install or replace an index template."""
        ...

    def delete_component_template(self, name: str) -> None:
        """Delete a component template that no index template uses."""
        ...

    def delete_index_template(self, name: str) -> None:
        """Delete an index template."""
        ...

    def resolved_template(self, name: str) -> JSON:
        """Return the settings, mappings and aliases of an index template, its components included."""
        ...

    def legacy_templates(self) -> dict[str, JSON]:
        """Return every legacy template by name; they apply only if no index template matches."""
        ...

    def index_settings(self, pattern: str) -> dict[str, JSON]:
        """Return the flat settings of each index that a name or pattern matches, closed ones included."""
        ...

    def writes_to(self, name: str) -> tuple[tuple[str, ...], str, str | None]:
        """Return the indices behind an alias, its write index (empty if it has none), and its index routing.

        Any other name stands for itself.
        """
        ...

    def data_streams(self, pattern: str) -> dict[str, str]:
        """Return the data streams that a name or pattern matches, with the index template of each."""
        ...


@runtime_checkable
class Engine(Protocol):
    """A search engine, in the request and response shapes of OpenSearch and Elasticsearch.

    Every method raises only ``EngineError`` and its subclasses.
    ``shinglefold.rerank.request.bodies`` describes how a sort order becomes total.
    """

    @property
    def can(self) -> Capabilities:
        """What this engine can do beyond the common contract."""
        ...

    @property
    def templates(self) -> Templates | None:
        """The engine's templates; None if it has none, so that every index is set up by itself."""
        ...

    def tiebreaker(self) -> str | None:
        """Return the sort key that makes any order total under a point in time, for ``FoldedSearch``.

        None if the engine has none, or its version is unknown. Sort by a field with unique values instead.
        """
        ...

    def info(self) -> JSON:
        """Return ``{"distribution": …, "version": …}``."""
        ...

    def create_index(self, index: str, mappings: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Create an index; raise ``IndexExists`` if there is one."""
        ...

    def delete_index(self, index: str) -> None:
        """Delete an index with all its documents; raise ``IndexMissing`` if there is none."""
        ...

    def index_exists(self, index: str) -> bool:
        """Return whether there is such an index or alias."""
        ...

    def indices(self, pattern: str = "*") -> list[IndexInfo]:
        """Return the indices that a name, an alias or a pattern with ``*`` matches, sorted by name.

        A name without ``*`` that matches none raises ``IndexMissing``. Names that begin with a dot are the
        engine's own: a pattern matches them only if it begins with a dot, too.
        """
        ...

    def check(self, index: str) -> None:
        """Check all files of an index; raise ``EngineUnavailable`` with the damaged ones.

        Does nothing on servers, which check their files themselves.
        """
        ...

    def replace_index(self, index: str, by: str) -> None:
        """Replace an index by another one, and delete the old one, in one atomic step.

        A search always finds one of the two indices. To rebuild an index in use, fill ``by``, then
        replace. On servers ``index`` becomes an alias of ``by``; the embedded engine renames ``by``.
        ``indices(index)`` returns the index behind the name, which ``delete_index`` takes. If there is no
        ``index`` yet, ``by`` gets its name.

        Raises:
            IndexMissing: there is no ``by``.
            UnsupportedQuery: ``index`` is an alias of several indices.
        """
        ...

    def delete_by_query(self, index: str, query: Mapping[str, Any]) -> BulkResult:
        """Delete all documents that a query matches, and refresh the index; see ``bulk`` for the result.

        ``indexed`` counts the deleted documents. Documents written meanwhile may stay.
        """
        ...

    def mappings(self, index: str) -> JSON:
        """Return the mappings of an index: ``{"properties": …, "_meta": …}``."""
        ...

    def all_mappings(self, pattern: str) -> dict[str, JSON]:
        """Return the mappings of each index that a name, alias or pattern matches; see ``indices``."""
        ...

    def put_mappings(self, index: str, mappings: Mapping[str, Any]) -> None:
        """Add fields to an index, and replace its ``_meta`` if one is given; no field can be changed."""
        ...

    def bulk(self, actions: Iterable[Mapping[str, Any]]) -> BulkResult:
        """Run bulk actions in order; failures are returned, not raised.

        Actions are those of the clients' helpers: ``_op_type`` (``index``, ``create``, ``update``,
        ``delete``; default ``index``), ``_index``, ``_id`` (optional for ``index``), ``_source`` (``doc`` for
        ``update``). ``can`` says whether ``_source`` may be JSON text, and how many requests may be sent at
        the same time.
        """
        ...

    def refresh(self, index: str) -> None:
        """Make everything written so far visible to searches."""
        ...

    def get(self, index: str, id: str) -> JSON | None:  # noqa: A002 - the engines' own word
        """Return ``{"_index", "_id", "_source"}`` or None."""
        ...

    def search(
        self, index: str | None, body: Mapping[str, Any], parameters: Parameters | None = None
    ) -> JSON:
        """Run a search; ``index`` is None if the body names a point in time.

        An unknown parameter raises ``UnsupportedQuery``.
        """
        ...

    def msearch(self, searches: Sequence[Search]) -> list[JSON | EngineError]:
        """Run several searches at once and return their responses in order.

        If ``search`` would raise for one of them, the list has the error instead of a response.
        """
        ...

    def open_pit(self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None) -> str:
        """Open a point in time and return its id, for ``{"pit": {"id": …}}`` in a body."""
        ...

    def close_pit(self, pit: str) -> None:
        """Close a point in time; no error if it is closed or has expired already."""
        ...

    def close(self) -> None:
        """Close connections and files; a second call does nothing."""
        ...


class AsyncEngine(Protocol):
    """The methods of ``Engine`` that a search needs, as coroutines."""

    @property
    def can(self) -> Capabilities:
        """What the engine can do; see ``Engine``."""
        ...

    def mappings(self, index: str) -> Awaitable[JSON]:
        """Return the mappings of an index."""
        ...

    def all_mappings(self, pattern: str) -> Awaitable[dict[str, JSON]]:
        """Return the mappings of each index that a name matches."""
        ...

    def search(
        self, index: str | None, body: Mapping[str, Any], parameters: Parameters | None = None
    ) -> Awaitable[JSON]:
        """Run a search."""
        ...

    def msearch(self, searches: Sequence[Search]) -> Awaitable[list[JSON | EngineError]]:
        """Run several searches at once."""
        ...

    def open_pit(
        self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None
    ) -> Awaitable[str]:
        """Open a point in time and return its id."""
        ...

    def close_pit(self, pit: str) -> Awaitable[None]:
        """Close a point in time."""
        ...


@runtime_checkable
class RunsInThreads(Protocol):
    """Implemented by async engines that run a blocking one in threads."""

    @property
    def blocking(self) -> Engine:
        """The blocking engine; it may also be used directly, in any thread."""
        ...


@runtime_checkable
class HasConnection(Protocol):
    """Implemented by async engines of servers."""

    @property
    def connection(self) -> Any:  # noqa: ANN401 - each engine has its own type
        """The connection to the server; ``open_engine`` makes a blocking engine from it."""
        ...
