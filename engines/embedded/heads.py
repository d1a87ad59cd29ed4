"""The head of a document: its id and the objects at its top level, readable without the page they belong to.

A window of hits needs a small object of each of some hundred documents. Stored fields are compressed in
blocks together with the pages, so reading them costs what the pages are long (measured: 15 ms for 200 pages
of 14 kB, 3 ms this way). Columns are not, but tantivy gives numbers only: so a head's JSON, padded with
spaces, is cut into eight-byte numbers, one a column. A head too long for the columns is stored after all.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tantivy

#: Columns of eight bytes each; those no document reaches take no space.
COLUMNS = 128
_WIDTH = 8
_BLANK = int.from_bytes(b" " * _WIDTH, "little")


class Head(NamedTuple):
    """The id of a document and the objects at its top level, by name."""

    id: str
    parts: dict[str, Any]


def read_head(data: bytes) -> Head:
    """Return the head that JSON holds."""
    id_, parts = json.loads(data.decode("utf-8", "surrogatepass"))
    return Head(id_, parts)


def column_name(number: int) -> str:
    """Return the name of a head's column."""
    return f"h{number}"


_NAMES = tuple(map(column_name, range(COLUMNS)))


def add_head(document: tantivy.Document, data: bytes, stored_as: str) -> None:
    """Add a head to a document: to the columns, or stored under a name where it is too long for them."""
    if len(data) > COLUMNS * _WIDTH:
        document.add_bytes(stored_as, data)
        return
    padded = data.ljust(-(-len(data) // _WIDTH) * _WIDTH)
    for name, value in zip(_NAMES, np.frombuffer(padded, "<u8").tolist(), strict=False):
        document.add_unsigned(name, value)


def load_heads(
    searcher: tantivy.Searcher, addresses: Sequence[tantivy.DocAddress], stored_as: str
) -> list[bytes]:
    """Return the heads of documents. Cost: about 10 µs each for heads of 500 bytes."""
    places = list(addresses)
    columns: list[list[int]] = []
    while places and len(columns) < COLUMNS:
        values = searcher.fast_field_values(column_name(len(columns)), places)
        if all(value is None for value in values):
            break
        columns.append([_BLANK if value is None else int(value) for value in values])
    if not columns:
        return [_stored(searcher, address, stored_as) for address in places]
    rows = np.ascontiguousarray(np.array(columns, "<u8").T)
    heads = [row.tobytes() for row in rows]
    # No head begins with a blank, so a blank one is not in the columns.
    return [
        _stored(searcher, address, stored_as) if head.isspace() else head
        for head, address in zip(heads, places, strict=True)
    ]


def _stored(searcher: tantivy.Searcher, address: tantivy.DocAddress, stored_as: str) -> bytes:
    data = searcher.doc(address).get_first(stored_as)
    return bytes(data or b'["", {}]')
