"""A backend of django-modelsearch with folded searches. MODELSEARCH_BACKENDS names it.

A slice of at most 100 results has one object of each group of copies; its ``copies`` are the keys of the
others. ``count()``, and results read without a slice, are the engine's own.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from modelsearch.backends.opensearch3 import (
    OpenSearch3Index,
    OpenSearch3SearchBackend,
    OpenSearch3SearchResults,
)

from shinglefold import fold, setup


class FoldedIndex(OpenSearch3Index):
    """Sets up each index: every rebuild makes a new one, and adds its models before their objects."""

    def __init__(self, backend: OpenSearch3SearchBackend, name: str) -> None:
        super().__init__(backend, name)
        self.text: set[str] = set()

    def add_model(self, model: Any) -> None:  # noqa: ANN401
        """Add the fields of a model; those that are searched are compared."""
        super().add_model(model)
        mapping = self.mapping_class(model)
        self.text |= {mapping.get_field_column_name(field) for field in model.get_searchable_search_fields()}
        setup(self.es, self.name, text=sorted(self.text))


class FoldedResults(OpenSearch3SearchResults):
    """Notes the copies of each object."""

    def _get_results_from_hits(self, hits: Iterable[dict[str, Any]]) -> Iterator[Any]:
        groups = {
            hit["_id"]: hit["inner_hits"]["duplicates"]["hits"]["hits"] for hit in hits if "inner_hits" in hit
        }
        for found in super()._get_results_from_hits(hits):
            found.copies = [member["_id"] for member in groups.get(str(found.pk), [])[1:]]
            yield found


class SearchBackend(OpenSearch3SearchBackend):
    """The backend for OpenSearch 3; for other servers derive from their classes."""

    index_class = FoldedIndex
    results_class = FoldedResults

    def __init__(self, params: dict[str, Any]) -> None:
        super().__init__(params)
        self.es = fold(self.es, always=True)
