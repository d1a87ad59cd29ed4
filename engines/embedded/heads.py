"""The head of a document: its id and the objects at its top level, readable without the page they belong to.

A window of hits needs a small object of each of some hundred documents. Stored fields are compressed in
blocks together with the pages, so reading them costs what the pages are long (measured: 15 ms for 200 pages
of 14 kB). Columns are not, but tantivy gives numbers only. So heads are records in files of our own, and one
column has their addresses: 200 of 600 bytes take 0.3 ms, where 75 columns of eight bytes of JSON each, as
indices of earlier versions have them, take 3.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import tantivy

from shinglefold.engines.embedded.volumes import Volumes

#: The column of addresses, and the folder of the files they mean, beside tantivy's.
ADDRESS, FOLDER = "at", "heads"
#: The columns of earlier versions, of eight bytes each, and where what is too long for them is stored.
COLUMNS, STORED = 128, "_head"
_WIDTH = 8
_BLANK = int.from_bytes(b" " * _WIDTH, "little")


class Head(NamedTuple):
    """The id of a document and the objects at its top level, by name."""

    id: str
    parts: dict[str, Any]


class Heads(Protocol):
    """Where the heads of an index are."""

    def load(self, searcher: tantivy.Searcher, places: Sequence[tantivy.DocAddress]) -> list[bytes]:
        """Return the heads of documents, as JSON."""
        ...

    def beside(self, searcher: tantivy.Searcher, place: tantivy.DocAddress) -> bytes | None:
        """Return what stands beside the head of a document, None where nothing does."""
        ...


def read_head(data: bytes) -> Head:
    """Return the head that JSON holds."""
    id_, parts = json.loads(data.decode("utf-8", "surrogatepass"))
    return Head(id_, parts)


class Filed:
    """Heads in files. Cost: about 1.5 µs each."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes

    def load(self, searcher: tantivy.Searcher, places: Sequence[tantivy.DocAddress]) -> list[bytes]:
        """Return the heads of documents, as JSON."""
        read = self._volumes.read
        found = addresses(searcher, places)
        return [b'["", {}]' if address is None else read(address) for address in found]

    def beside(self, searcher: tantivy.Searcher, place: tantivy.DocAddress) -> bytes | None:
        """Return what stands beside the head of a document, None where nothing does."""
        (address,) = addresses(searcher, [place])
        return None if address is None else self._volumes.more(address)


def addresses(searcher: tantivy.Searcher, places: Sequence[tantivy.DocAddress]) -> list[int | None]:
    """Return the addresses of the heads of documents."""
    found = searcher.fast_field_values(ADDRESS, list(places))
    return [None if address is None else int(address) for address in found]


def column_name(number: int) -> str:
    """Return the name of a head's column."""
    return f"h{number}"


_NAMES = tuple(map(column_name, range(COLUMNS)))


class InColumns:
    """Heads in columns, as earlier versions wrote them. Cost: about a millisecond, and 10 µs each."""

    def load(self, searcher: tantivy.Searcher, places: Sequence[tantivy.DocAddress]) -> list[bytes]:
        """Return the heads of documents, as JSON."""
        wanted = list(places)
        columns: list[list[int]] = []
        while wanted and len(columns) < COLUMNS:
            values = searcher.fast_field_values(column_name(len(columns)), wanted)
            if all(value is None for value in values):
                break
            columns.append([_BLANK if value is None else int(value) for value in values])
        if not columns:
            return [_stored(searcher, place) for place in wanted]
        rows = np.ascontiguousarray(np.array(columns, "<u8").T)
        heads = [row.tobytes() for row in rows]
        # No head begins with a blank, so a blank one is not in the columns.
        return [
            _stored(searcher, place) if head.isspace() else head
            for head, place in zip(heads, wanted, strict=True)
        ]

    def beside(self, searcher: tantivy.Searcher, place: tantivy.DocAddress) -> bytes | None:
        """Return None, as columns hold nothing beside."""
        return None


def add_columns(document: tantivy.Document, data: bytes) -> None:
    """Add a head to a document: to the columns, or stored where it is too long for them."""
    if len(data) > COLUMNS * _WIDTH:
        document.add_bytes(STORED, data)
        return
    padded = data.ljust(-(-len(data) // _WIDTH) * _WIDTH)
    for name, value in zip(_NAMES, np.frombuffer(padded, "<u8").tolist(), strict=False):
        document.add_unsigned(name, value)


def _stored(searcher: tantivy.Searcher, place: tantivy.DocAddress) -> bytes:
    data = searcher.doc(place).get_first(STORED)
    return bytes(data or b'["", {}]')
