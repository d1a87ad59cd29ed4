"""Optional interfaces of engines whose indices are local files."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, runtime_checkable

from shinglefold.contracts.engine import JSON, Document

#: The canonical words of each text of a document.
WordsOf = dict[str, str]
#: A document as JSON: the source with null for each top-level object, and the head with these objects.
SourceAndHead = tuple[bytes, bytes]


class PreparedDocument(NamedTuple):
    """The words and the JSON of a document, from a worker; without JSON the engine encodes it itself."""

    words: WordsOf
    source_and_head: SourceAndHead | None = None

    def of(self, texts: Mapping[Any, Any]) -> "PreparedDocument":
        """Return a copy whose words are keyed by new texts; ``texts`` maps old texts to new ones."""
        return self._replace(words={texts.get(text, text): made for text, made in self.words.items()})


#: Prepares a block of documents for an engine.
PrepareDocuments = Callable[[Sequence[Document]], list[PreparedDocument]]


@runtime_checkable
class ExclusiveWrites(Protocol):
    """Implemented by engines whose indices only one process at a time may write."""

    def exclusive(self, index: str) -> AbstractContextManager[None]:
        """Keep the write lock of an index; all earlier writes are visible to searches.

        Writes inside are durable and visible when the context is left.

        Raises:
            EngineUnavailable: another process writes to it.
        """
        ...

    def deciding(self, index: str, fields: Collection[str]) -> AbstractContextManager[None]:
        """Keep the write lock of an index for one of many decisions.

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
        """Keep the write lock of an index across batches; other threads of this process may still write.

        Raises:
            EngineUnavailable: another process writes to it.
        """
        ...

    def release(self, index: str) -> None:
        """Let other processes write, unless a lease is held or a write is not yet committed."""
        ...

    def request_lease(self, index: str) -> None:
        """Request the lease of an index from the process that has it."""
        ...

    def lease_requested(self, index: str) -> bool:
        """Return whether another process requested the index since the last call."""
        ...

    def get_all(self, index: str, ids: Sequence[str]) -> list[JSON | None]:
        """Return the current sources of documents, None for deleted ones."""
        ...


@runtime_checkable
class PreparesDocuments(Protocol):
    """Implemented by engines that let ingest workers prepare documents.

    A bulk action may have the result as ``_ready``; the engine computes the missing parts.
    """

    def document_preparer(self, index: str, mappings: Mapping[str, Any]) -> PrepareDocuments:
        """Return a function that prepares documents, here or in a process forked from this one.

        Args:
            mappings: those of the index, if it does not exist yet.
        """
        ...
