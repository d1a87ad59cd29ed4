"""Optional interfaces of engines whose indices are local files."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, runtime_checkable

from shinglefold.contracts.engine import JSON, Document

#: The words of texts of a document, by text.
WordsOf = dict[str, str]
#: A document as JSON: its source with null for each object at the top level, and these objects.
SourceAndHead = tuple[bytes, bytes]


class PreparedDocument(NamedTuple):
    """What a worker prepared of a document; if ``source_and_head`` is None, the engine makes the JSON."""

    words: WordsOf
    source_and_head: SourceAndHead | None = None

    def of(self, texts: Mapping[Any, Any]) -> "PreparedDocument":
        """Return the same with other texts as keys, given new texts by old ones."""
        return self._replace(words={texts.get(text, text): made for text, made in self.words.items()})


#: Prepares documents for an engine, many at once.
PrepareDocuments = Callable[[Sequence[Document]], list[PreparedDocument]]


@runtime_checkable
class ExclusiveWrites(Protocol):
    """Implemented by engines whose indices one process at a time may write."""

    def exclusive(self, index: str) -> AbstractContextManager[None]:
        """Hold the write lock of an index; all earlier writes are visible to searches.

        Writes inside are durable and visible when the context is left.

        Raises:
            EngineUnavailable: another process writes to it.
        """
        ...

    def deciding(self, index: str, fields: Collection[str]) -> AbstractContextManager[None]:
        """Hold the write lock of an index for one decision of many.

        Writes inside are durable when the context is left. Searches see them about a second later, or when
        the index is released; until then ``pending_by_value`` returns them.

        Args:
            fields: keywords and numbers that ``pending_by_value`` can look up.

        Raises:
            EngineUnavailable: another process writes to it.
        """
        ...

    def pending_by_value(self, index: str, field: str, values: Collection[object]) -> dict[object, list[str]]:
        """Return the ids of pending documents by their value in a field.

        Pending means that searches may not see them yet. Some may have other values by now, or be deleted.
        """
        ...

    def lease(self, index: str) -> AbstractContextManager[None]:
        """Keep other processes from writing to an index for longer than a batch; other threads go on.

        Raises:
            EngineUnavailable: another process writes to it.
        """
        ...

    def request_lease(self, index: str) -> None:
        """Ask the process that holds an index to release it."""
        ...

    def lease_requested(self, index: str) -> bool:
        """Return whether another process asked for an index since the last call."""
        ...

    def get_all(self, index: str, ids: Sequence[str]) -> list[JSON | None]:
        """Return the current sources of documents, None for deleted ones."""
        ...


@runtime_checkable
class PreparesDocuments(Protocol):
    """Implemented by engines that let ingest workers prepare documents.

    A bulk action may bring the result as ``_ready``; the engine makes what is missing there.
    """

    def document_preparer(self, index: str, mappings: Mapping[str, Any]) -> PrepareDocuments:
        """Return a function that prepares documents, here or in a process forked from this one.

        Args:
            mappings: of the index, if it is created later.
        """
        ...
