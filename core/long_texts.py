"""Long texts, compressed while they wait or travel: each hand they go through would hold a copy."""

import ctypes
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: Characters from which on a text is long.
LONG = 1 << 21
#: Characters compressed together.
_PIECE = 1 << 20
#: The fastest: text takes 40 % of its bytes, or less.
LEVEL = 1


@dataclass(frozen=True, slots=True)
class LongText:
    """A long text in a document, compressed. Two of one text are equal if both were made by ``of``.

    Cost: some 15 ms a million characters to make, 4 to read.
    """

    packed: tuple[bytes, ...]
    characters: int

    @classmethod
    def of(cls, text: str) -> "LongText":
        """Compress a text."""
        return cls.joined(slices(text))

    @classmethod
    def joined(cls, pieces: Iterable[str]) -> "LongText":
        """Compress a text that comes in pieces of any length."""
        packed: list[bytes] = []
        waiting: list[str] = []
        characters = size = 0
        for piece in pieces:
            waiting.append(piece)
            size += len(piece)
            if size >= _PIECE:
                packed.append(_compressed(waiting))
                characters += size
                waiting, size = [], 0
        if waiting:
            packed.append(_compressed(waiting))
        return cls(tuple(packed), characters + size)

    def __len__(self) -> int:
        return self.characters

    def __repr__(self) -> str:
        return f"<a text of {self.characters:,} characters>"

    def __str__(self) -> str:
        # Not piece by piece: all pieces at once would weigh as much again.
        whole = bytearray()
        for piece in self.packed:
            whole += zlib.decompress(piece)
        return whole.decode("utf-8", "surrogatepass")

    def pieces(self) -> Iterator[str]:
        """Yield the text in pieces of about a million characters."""
        for piece in self.packed:
            yield zlib.decompress(piece).decode("utf-8", "surrogatepass")


#: A text of a document, long or not.
Text = str | LongText


def slices(text: str) -> Iterator[str]:
    """Yield a text in pieces of a million characters."""
    for begin in range(0, len(text), _PIECE):
        yield text[begin : begin + _PIECE]


def is_long(value: object) -> bool:
    """Tell whether a value of a document is a long text, compressed or not."""
    return isinstance(value, LongText) or (isinstance(value, str) and len(value) >= LONG)


def packed(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[Text, Text]]:
    """Return a document with its long texts compressed, and these by text."""
    long: dict[Text, Text] = {
        value: LongText.of(value) for value in document.values() if isinstance(value, str) and is_long(value)
    }
    if not long:
        return dict(document), {}
    fields = {name: long.get(value, value) if is_long(value) else value for name, value in document.items()}
    return fields, long


def pack(document: dict[str, Any]) -> None:
    """Compress the long texts of a document in place: whoever else holds it lets go of them, too."""
    fields, long = packed(document)
    if long:
        document.update(fields)
        long.clear()
        give_back()


def give_back() -> None:
    """Let the system have the memory that was freed: C's library keeps what many small pieces were.

    Of a text of 100 MB that is as much again. Cost: milliseconds. Without such a library it does nothing.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def unpacked(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with its long texts as they are."""
    return {name: str(value) if isinstance(value, LongText) else value for name, value in document.items()}


def _compressed(pieces: list[str]) -> bytes:
    return zlib.compress("".join(pieces).encode("utf-8", "surrogatepass"), LEVEL)
