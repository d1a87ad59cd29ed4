"""The contracts between the packages: what a processor and an engine must offer."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from shinglefold.errors import EngineError

#: A JSON object. While it travels through a pipeline ``_id`` and ``_index`` stand beside its fields.
Document = dict[str, Any]
JSON = dict[str, Any]
#: What stands in the address of a request beside its body, by its name in the servers' interface.
Parameters = Mapping[str, Any]
#: One of several searches: the index, or None where the body names a point in time, the body and, where there
#: are any, the parameters.
Search = tuple[str | None, Mapping[str, Any]] | tuple[str | None, Mapping[str, Any], Parameters | None]


def search_parts(search: Search) -> tuple[str | None, Mapping[str, Any], Parameters | None]:
    """Return index, body and parameters of one of several searches."""
    return search if len(search) == 3 else (search[0], search[1], None)


@runtime_checkable
class Processor(Protocol):
    """One step of an ingest pipeline; works on blocks, because fingerprinting is cheap only in blocks."""

    #: Its name in a pipeline's JSON.
    type: ClassVar[str]

    def apply(self, documents: Sequence[Document]) -> list[Document | Exception | None]:
        """Return, for each document in order, the new document, None to drop it, or why it failed.

        Must not change the documents given and must not raise for a document's sake.
        """
        ...


@dataclass(frozen=True, slots=True)
class BulkFailure:
    """One action the engine did not do: which, and in its own words why.

    ``dropped``: it was told to, as by an ingest pipeline of the server's that drops the document.
    """

    action: Mapping[str, Any]
    status: int
    reason: str
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class BulkResult:
    """How a bulk request ended: ``indexed + len(failures)`` is the number of actions.

    ``written_over``: of those indexed, the ones that took the place of a document with their id.
    ``renamed``: of those indexed, how many are in an index of another name than the one given, by its name:
    in that behind an alias, or where a pipeline of the engine's own has sent them.
    """

    indexed: int
    failures: tuple[BulkFailure, ...] = field(default=())
    written_over: int = 0
    renamed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do beyond what all engines do alike; known without asking a server.

    Attributes:
        bulks_at_once: so many threads may usefully send bulk requests at the same time.
        takes_json: the ``_source`` of a bulk action may be the object's JSON on one line, too, as text or as
            bytes; these are sent as they are.
        seq_no: documents have versions: ``_seq_no`` is a doc value, hits tell it when asked
            (``seq_no_primary_term``), and ``if_seq_no`` guards writes.
        slices: whether a point in time can be cut into slices that every process cuts alike: not at all, into
            as many as there are shards at most, or into any number.
        samples: the aggregation ``sampler`` looks at the best results of each shard only.
        unaltered: what the body of a search says whose answer is to be that of the index itself, whatever the
            server makes of answers on their way: a search pipeline may filter, cut and fold what is found.
        newest: parameters of a search, or of a point in time, that must see all that a refresh made visible.
    """

    bulks_at_once: int = 1
    takes_json: bool = False
    seq_no: bool = False
    slices: Literal["none", "shards", "any"] = "none"
    samples: bool = False
    unaltered: JSON = field(default_factory=dict)
    newest: Parameters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index there is.

    Attributes:
        documents: as of the last refresh, as the engine counts them (with nested ones); None where the index
            can't be read now.
        size: bytes on disk, without replicas; None where the index can't be read now.
        aliases: further names it has, in order.
    """

    name: str
    documents: int | None
    size: int | None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Guard:
    """The version of a document: a write guarded with it fails if the document has another by then."""

    seq_no: int
    primary_term: int


@dataclass(frozen=True, slots=True)
class VersionedDocument:
    """A document as it is at this moment."""

    id: str
    source: Mapping[str, Any]
    guard: Guard


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What became of a guarded write: the HTTP status, the new version where it was done, else the reason."""

    status: int
    guard: Guard | None = None
    reason: str = ""


@runtime_checkable
class GuardedWrites(Protocol):
    """Implemented by the engines whose documents have versions: those with ``Capabilities.seq_no``."""

    def identities(self, indices: Sequence[str]) -> dict[str, str]:
        """Return what tells each index from another that has its name later; those that are gone are missing.

        Who may not look at settings is told of none.
        """
        ...

    def write(self, actions: Sequence[Mapping[str, Any]], *, refresh: bool = False) -> list[WriteResult]:
        """Run bulk actions once, as they are, and return what became of each, in order.

        Actions are those of ``Engine.bulk``, with ``if_seq_no`` and ``if_primary_term`` where they are
        guarded. Nothing is tried again: whether an action was done before an error is for the caller to find
        out.

        Args:
            refresh: make them visible to searches before this returns.

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
        """Return documents as they are now, visible to searches or not; None for each that is not there.

        Args:
            source: fields to return, all where none is named.
            routings: of each, where one has one; a document is not found under another.
        """
        ...


class GroupNumbers(Protocol):
    """What gives documents the numbers of their groups on their way into an index."""

    def number(self, actions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return index actions, in order, with the numbers in their documents.

        Batches come in the order in which they are sent, and no more than ``Capabilities.bulks_at_once`` are
        on their way.

        Raises:
            EngineError: the engine can't be asked.
        """
        ...


class Templates(Protocol):
    """What new indices are made from, and how those there are are set."""

    def component_template(self, name: str) -> JSON | None:
        """Return ``{"template": …}``, or None where there is none of this name."""
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

    def resolved_template(self, name: str) -> JSON:
        """Return what an index template makes, its components taken in: settings, mappings and aliases."""
        ...

    def legacy_templates(self) -> dict[str, JSON]:
        """Return every template of the older kind by name; they apply where no index template matches."""
        ...

    def index_settings(self, pattern: str) -> dict[str, JSON]:
        """Return the settings of each index that a name or pattern means, by flat names; closed ones, too."""
        ...

    def writes_to(self, name: str) -> tuple[tuple[str, ...], str]:
        """Return the indices that an alias means, and which takes new documents; empty where none does.

        What is no alias means itself.
        """
        ...

    def data_streams(self, pattern: str) -> dict[str, str]:
        """Return the data streams of a name or pattern, and the index template each is made from."""
        ...


@runtime_checkable
class Engine(Protocol):
    """A search engine, in the request and response shapes of OpenSearch and Elasticsearch.

    Every method raises only the tree under ``EngineError``.

    What makes an order total on an engine is told by ``shinglefold.rerank.request.bodies``.
    """

    @property
    def can(self) -> Capabilities:
        """What this engine can do beyond the rest of the contract."""
        ...

    @property
    def templates(self) -> Templates | None:
        """The engine's templates; None where it has none, so that each index is set up itself."""
        ...

    def tiebreaker(self) -> str | None:
        """Return the sort key that makes any order total under a point in time, for ``FoldedSearch``.

        None where the engine has none, or does not tell whoever asks. A field with a value of its own in each
        document will do instead.
        """
        ...

    def info(self) -> JSON:
        """Return ``{"distribution": …, "version": …}``."""
        ...

    def create_index(self, index: str, mappings: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Create an index; ``IndexExists`` when it is there."""
        ...

    def delete_index(self, index: str) -> None:
        """Delete an index with all its documents; ``IndexMissing`` when there is none."""
        ...

    def index_exists(self, index: str) -> bool:
        """Tell whether there is such an index (or alias)."""
        ...

    def indices(self, pattern: str = "*") -> list[IndexInfo]:
        """Return the indices that a name, an alias or a pattern with ``*`` means, by name.

        A name without ``*`` that means none raises ``IndexMissing``. Names that begin with a dot are the
        engine's own: a pattern means them only if it begins with a dot itself.
        """
        ...

    def check(self, index: str) -> None:
        """Check the files of an index as thoroughly as can be; ``EngineUnavailable`` names what is damaged.

        Servers watch over their files themselves, so that there is nothing to do.
        """
        ...

    def replace_index(self, index: str, by: str) -> None:
        """Let a name mean another index from now on, and delete what it meant, in one step.

        A search meets the one or the other, never none. This is how an index is built beside the one in use:
        fill ``by``, then replace. On servers ``index`` is an alias of ``by`` afterwards, on the embedded
        engine the name ``by`` is gone; ``indices(index)`` tells what stands behind the name, which is what
        ``delete_index`` wants. Where there is no ``index`` yet, ``by`` just gets its name.

        Raises ``IndexMissing`` where there is no ``by``, ``UnsupportedQuery`` where ``index`` is an alias of
        several indices.
        """
        ...

    def delete_by_query(self, index: str, query: Mapping[str, Any]) -> BulkResult:
        """Delete all documents that a query finds, and let searches see it; see ``bulk`` for the result.

        ``indexed`` counts those deleted. What is written meanwhile is not deleted unless it is found, too.
        """
        ...

    def mappings(self, index: str) -> JSON:
        """Return the mappings of an index: ``{"properties": …, "_meta": …}``."""
        ...

    def all_mappings(self, pattern: str) -> dict[str, JSON]:
        """Return the mappings of each index a name, alias or pattern means; ``IndexMissing`` for a name."""
        ...

    def put_mappings(self, index: str, mappings: Mapping[str, Any]) -> None:
        """Add fields to an index, and replace its ``_meta`` where one is given; no field can be changed."""
        ...

    def bulk(self, actions: Iterable[Mapping[str, Any]]) -> BulkResult:
        """Run actions of the clients' helpers' shape, in order; what is refused is returned, not raised.

        An action: ``_op_type`` (``index``, ``create``, ``update``, ``delete``; default ``index``),
        ``_index``, ``_id`` (optional for ``index``), ``_source`` (or ``doc`` for ``update``). ``can`` tells
        whether ``_source`` may be JSON text, and how many requests may be sent at the same time.
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
        """Run a search; ``index`` is None where the body names a point in time.

        A parameter that the engine does not know raises ``UnsupportedQuery``.
        """
        ...

    def msearch(self, searches: Sequence[Search]) -> list[JSON | EngineError]:
        """Run several searches at once and return their answers in order.

        Each is as for ``search``; what that would raise for one of them stands in its place.
        """
        ...

    def open_pit(self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None) -> str:
        """Open a point in time and return its id, for ``{"pit": {"id": …}}`` in a body."""
        ...

    def close_pit(self, pit: str) -> None:
        """Close a point in time; closing it twice, or after it ended by itself, is no error."""
        ...

    def close(self) -> None:
        """Give back what the engine holds; a second call does nothing."""
        ...


class AsyncEngine(Protocol):
    """The methods of ``Engine`` that a search needs, to be awaited."""

    @property
    def can(self) -> Capabilities:
        """What the engine can do; see ``Engine``."""
        ...

    def mappings(self, index: str) -> Awaitable[JSON]:
        """Return the mappings of an index."""
        ...

    def all_mappings(self, pattern: str) -> Awaitable[dict[str, JSON]]:
        """Return the mappings of each index that a name means."""
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
    """What awaited engines offer that have a blocking one do the work, in threads."""

    @property
    def blocking(self) -> Engine:
        """The engine that does the work; it may be used beside, in any thread."""
        ...


@runtime_checkable
class HasConnection(Protocol):
    """What awaited engines of servers offer."""

    @property
    def connection(self) -> Any:  # noqa: ANN401 - engines know what it is
        """How the server is reached: ``open_engine`` makes a blocking engine of it."""
        ...
