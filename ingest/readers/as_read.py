"""A document that still knows the line it was read from, and travels to another process as that line."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.json import decode

from shinglefold.contracts import Document
from shinglefold.ingest.readers.records import to_document

#: Bytes from which on a line is too long to be held beside its document.
_LONG = 1 << 21
#: What nobody can change in its place.
_FLAT = frozenset((str, int, float, bool, type(None)))
_CHANGING = ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update")


class AsRead(dict[str, Any]):
    """A document as it was read from a line, which it forgets where it is changed.

    To send it to a worker, its texts need not be written as UTF-8 once more: the worker reads the line, which
    costs what it takes to read what was written. Copies are plain dictionaries.

    Args:
        document: what ``from_line`` returns of the line; its values hold no others.
    """

    __slots__ = ("_id_field", "_line")

    def __init__(self, document: Mapping[str, Any], line: bytes, id_field: str) -> None:
        super().__init__(document)
        self._line: bytes | None = line
        self._id_field = id_field

    def __reduce__(self) -> tuple[Callable[..., Document], tuple[Any, ...]]:
        return (dict, (dict(self),)) if self._line is None else (from_line, (self._line, self._id_field))


def from_line(line: bytes, id_field: str) -> Document:
    """Return the document of a line of UTF-8; what the fast reader takes has the values the library gives.

    Raises:
        MsgspecError, ValueError, RecursionError: the fast reader refuses it, the standard library may not.
        InputError: it is no document.
    """
    return to_document(decode(line), id_field)


def as_read(document: Document, line: bytes, id_field: str) -> Document:
    """Return a document that knows its line, where nothing in it can be changed unseen and it is not long."""
    if len(line) < _LONG and set(map(type, document.values())) <= _FLAT:
        return AsRead(document, line, id_field)
    return document


def _forgetting(change: Callable[..., Any]) -> Callable[..., Any]:
    def changed(self: AsRead, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the change has them
        self._line = None
        return change(self, *given, **named)

    return changed


for _name in _CHANGING:
    setattr(AsRead, _name, _forgetting(getattr(dict, _name)))
