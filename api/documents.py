"""Documents of an open index: one to find copies of, and one that is stored."""

from collections.abc import Mapping, Sequence
from typing import Any

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.documents import values_at
from shinglefold.errors import InputError
from shinglefold.ingest import Pipeline
from shinglefold.ingest.processors.texts import joined_text, without_markup
from shinglefold.model.recipe import Recipe
from shinglefold.model.values import Fingerprint
from shinglefold.rerank import Scope
from shinglefold.rerank.similar import QueryDocument

#: The most documents of one id that are fetched.
_SAME_ID = 10


def query_document(
    pipeline: Pipeline, recipe: Recipe, document: Mapping[str, Any], scopes: Sequence[Scope]
) -> QueryDocument:
    """Return a document with the fingerprint that it would have; see ``FoldedIndex.query_document``."""
    (outcome,) = pipeline.run([dict(document)])
    if outcome.document is None:
        reason = outcome.failure.reason if outcome.failure else "the pipeline drops it"
        raise InputError(f"the document can't be compared: {reason}")
    stored = values_at(outcome.document, recipe.field)
    fingerprint = Fingerprint.from_field(stored[0]) if stored else None
    if fingerprint is None or not fingerprint.digest:
        raise InputError(f"the document has no text in {', '.join(recipe.fields)}, the fields of the index")
    values = {scope.field: values_at(outcome.document, scope.field) for scope in scopes}
    shown = without_markup(outcome.document, recipe.fields)
    text = joined_text(shown, recipe.fields, True) or ""
    return QueryDocument(fingerprint, values, text=text)


def stored_hit(engine: Engine, name: str, wanted: str | tuple[str, str]) -> JSON:
    """Return the hit of a stored document of an index; see ``FoldedIndex.stored_hit``."""
    index, id_ = (None, wanted) if isinstance(wanted, str) else wanted
    body = {"query": {"ids": {"values": [id_]}}, "size": _SAME_ID}
    hits: list[JSON] = engine.search(name, body)["hits"]["hits"]
    found = [hit for hit in hits if index is None or hit["_index"] == index]
    if not found:
        raise InputError(f"no document {id_!r} in the index {index or name!r}")
    if len(found) > 1:
        names = ", ".join(sorted({hit["_index"] for hit in found}))
        raise InputError(f"there are several documents {id_!r} (in {names}); name one by (index, id)")
    return found[0]
