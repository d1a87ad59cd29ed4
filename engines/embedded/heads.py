"""The head of a document: its id and the objects at its top level, readable without the page they belong to.

A window of hits needs a small object of each of some hundred documents. Stored fields are compressed in
blocks together with the pages, so reading them costs what the pages are long (measured: 15 ms for 200 pages
of 14 kB). Columns are not, but tantivy gives numbers only. So heads are records in files of our own, and one
column has their addresses: reading 200 of 600 bytes takes 0.3 ms.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import tantivy

from shinglefold.engines.embedded.volumes import Volumes

#: The column of addresses, and the folder of the files they mean, beside tantivy's.
ADDRESS, FOLDER = "at", "heads"


class Head(NamedTuple):
    """The id of a document and the objects at its top level, by name."""

    id: str
    parts: dict[str, Any]


def read_head(data: bytes) -> Head:
    """Return the head that JSON holds."""
    id_, parts = json.loads(data.decode("utf-8", "surrogatepass"))
    return Head(id_, parts)


class Heads:
    """The heads of an index. Cost: about 1.5 µs each."""

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
