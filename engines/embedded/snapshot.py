"""An index as it was at one moment: what searches see."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tantivy

from shinglefold.engines.embedded.catalog import Catalog
from shinglefold.engines.embedded.fields import well_formed
from shinglefold.engines.embedded.heads import Heads
from shinglefold.engines.embedded.orders import Orders
from shinglefold.engines.embedded.sources import stored_source, stored_sources


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An index as it was at one moment; stays as it is whatever is written or merged afterwards."""

    name: str
    catalog: Catalog
    searcher: tantivy.Searcher
    schema: tantivy.Schema
    heads: Heads
    orders: Orders = field(default_factory=Orders)

    def source(self, id: str) -> dict[str, Any] | None:  # noqa: A002
        """Return a document, None where it is not there."""
        place = self._place(id)
        return stored_source(self.searcher, self.heads, place).load() if place else None

    def sources(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the documents that are there, by id. Columns are opened once for all of them."""
        there = {id_: place for id_ in ids if (place := self._place(id_))}
        found = stored_sources(self.searcher, self.heads, list(there.values()))
        return {id_: source.load() for id_, source in zip(there, found, strict=True)}

    def _place(self, id: str) -> tantivy.DocAddress | None:  # noqa: A002
        """Return where a document is, None where there is none, as there is of an id that is no Unicode."""
        if well_formed(id) != id:
            return None
        query = tantivy.Query.term_query(self.schema, "_id", id)
        hits = self.searcher.search(query, 1, count=False).hits
        return hits[0][1] if hits else None
