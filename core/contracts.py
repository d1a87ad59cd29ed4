"""The contracts between the packages: what a processor and an engine must offer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from shinglefold.errors import EngineError

#: A JSON object. While it travels through a pipeline ``_id`` and ``_index`` stand beside its fields.
Document = dict[str, Any]
JSON = dict[str, Any]
#: One of several searches: the index, or None where the body names a point in time, and the body.
Search = tuple[str | None, Mapping[str, Any]]


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
    """One action the engine refused: which, and in its own words why."""

    action: Mapping[str, Any]
    status: int
    reason: str


@dataclass(frozen=True, slots=True)
class BulkResult:
    """How a bulk request ended: ``indexed + len(failures)`` is the number of actions."""

    indexed: int
    failures: tuple[BulkFailure, ...] = field(default=())


@runtime_checkable
class Engine(Protocol):
    """A search engine, in the request and response shapes of OpenSearch and Elasticsearch.

    Every method raises only the tree under ``EngineError``.
    """

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

    def mappings(self, index: str) -> JSON:
        """Return the mappings of an index: ``{"properties": …, "_meta": …}``."""
        ...

    def bulk(self, actions: Iterable[Mapping[str, Any]]) -> BulkResult:
        """Run actions of the clients' helpers' shape, in order; what is refused is returned, not raised.

        An action: ``_op_type`` (``index``, ``create``, ``update``, ``delete``; default ``index``),
        ``_index``, ``_id`` (optional for ``index``), ``_source`` (or ``doc`` for ``update``).

        An engine may have ``takes_json = True``: ``_source`` may be the object's JSON text, too; and
        ``bulks_at_once``: above 1, threads may send so many requests at the same time.
        """
        ...

    def refresh(self, index: str) -> None:
        """Make everything written so far visible to searches."""
        ...

    def get(self, index: str, id: str) -> JSON | None:  # noqa: A002 - the engines' own word
        """Return ``{"_index", "_id", "_source"}`` or None."""
        ...

    def search(self, index: str | None, body: Mapping[str, Any]) -> JSON:
        """Run a search; ``index`` is None where the body names a point in time."""
        ...

    def msearch(self, searches: Sequence[Search]) -> list[JSON | EngineError]:
        """Run several searches at once and return their answers in order.

        Each is as for ``search``; what that would raise for one of them stands in its place.
        """
        ...

    def open_pit(self, index: str, keep_alive: str = "1m") -> str:
        """Open a point in time and return its id, for ``{"pit": {"id": …}}`` in a body."""
        ...

    def close_pit(self, pit: str) -> None:
        """Close a point in time; closing it twice, or after it ended by itself, is no error."""
        ...

    def close(self) -> None:
        """Give back what the engine holds; a second call does nothing."""
        ...
