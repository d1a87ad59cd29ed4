"""What engines offer beside the contract whose indices are files of their own."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, runtime_checkable

from shinglefold.contracts import JSON, Document

#: The words of texts of a document, by text.
WordsOf = dict[str, str]
#: A document as JSON: without the objects at its top level (null in their places), and these.
Halves = tuple[bytes, bytes]


class Ready(NamedTuple):
    """What an engine wants to have of a document; it makes ``halves`` itself where they are None."""

    words: WordsOf
    halves: Halves | None = None

    def of(self, texts: Mapping[Any, Any]) -> "Ready":
        """Return the same of a document with other texts, by those it had."""
        return self._replace(words={texts.get(text, text): made for text, made in self.words.items()})


#: Makes what an engine wants of documents.
MakeReady = Callable[[Sequence[Document]], list[Ready]]


@runtime_checkable
class ExclusiveWrites(Protocol):
    """What engines offer to whose indices one process at a time may write."""

    def exclusive(self, index: str) -> AbstractContextManager[None]:
        """Be the one that writes to an index, with all that was written before visible to searches.

        What is written meanwhile is durable and visible when the context is left.

        Raises:
            EngineUnavailable: another process writes to it.
        """
        ...

    def deciding(self, index: str, fields: Collection[str]) -> AbstractContextManager[None]:
        """Be the one that writes to an index, for one decision after another.

        What is written meanwhile is durable when the context is left. Searches see it about a second later,
        or when the index is given back; until then ``unsearched`` tells of it.

        Args:
            fields: that ``unsearched`` is asked for; keywords and numbers.

        Raises:
            EngineUnavailable: another process writes to it.
        """
        ...

    def unsearched(self, index: str, field: str, values: Collection[object]) -> dict[object, list[str]]:
        """Return the ids of documents that have one of some values in a field, by value.

        Of those that searches need not see yet; some may have other values by now, or be gone.
        """
        ...

    def held(self, index: str) -> AbstractContextManager[None]:
        """Keep other processes from writing to an index, while other threads go on; for longer than a batch.

        Raises:
            EngineUnavailable: another process writes to it.
        """
        ...

    def want(self, index: str) -> None:
        """Let the process that holds an index know that another waits for it."""
        ...

    def wanted(self, index: str) -> bool:
        """Tell once whether another process waits for an index."""
        ...

    def get_all(self, index: str, ids: Sequence[str]) -> list[JSON | None]:
        """Return the sources of documents as they are now, None for those that are gone."""
        ...


@runtime_checkable
class WantsReady(Protocol):
    """What engines offer that leave to other processes what is to be made of a document before it is written.

    A bulk action may have ``_ready``: what was made of its document; the engine makes what is missing there.
    """

    def ready_for(self, index: str, mappings: Mapping[str, Any]) -> MakeReady:
        """Return what makes documents ready, many at once, here or in a process forked from this one.

        Args:
            mappings: of the index, where it is made later on.
        """
        ...
