"""Documents of an open index: those to find copies of, those that are stored, those to sign or write."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from shinglefold.contracts.engine import JSON, Document, Engine
from shinglefold.documents import MISSING, RAW_BUDGET, blocks, get, put, too_long, values_at, weight
from shinglefold.errors import InputError
from shinglefold.ingest import Pipeline
from shinglefold.ingest.field_statistics import FieldWatch
from shinglefold.ingest.pipeline.steps import raw_fields
from shinglefold.ingest.processors.texts import joined_text, without_markup
from shinglefold.ingest.writing.worker_pool import process_blocks
from shinglefold.model.recipe import Recipe
from shinglefold.model.stored_fingerprint import overwrite_refusal, without_fingerprint
from shinglefold.model.values import Fingerprint
from shinglefold.options.validation import expected
from shinglefold.rerank import Scope
from shinglefold.rerank.similar import QueryDocument

_log = logging.getLogger("shinglefold.api")
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
    named = (None, wanted) if isinstance(wanted, str) else wanted
    if not isinstance(named, tuple) or len(named) != 2 or not isinstance(named[1], str):
        raise expected("wanted", "an id as text, or (index, id)", wanted)
    index, id_ = named
    body = {"query": {"ids": {"values": [id_]}}, "size": _SAME_ID}
    hits: list[JSON] = engine.search(name, body)["hits"]["hits"]
    found = [hit for hit in hits if index is None or hit["_index"] == index]
    if not found:
        raise InputError(f"no document {id_!r} in the index {index or name!r}")
    if len(found) > 1:
        names = ", ".join(sorted({hit["_index"] for hit in found}))
        raise InputError(f"there are several documents {id_!r} (in {names}); name one by (index, id)")
    return found[0]


def named_searches(name: str, bodies: Iterable[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the searches of ``FoldedIndex.msearch``, each with the name of the index."""
    if isinstance(bodies, str | Mapping):
        raise expected("bodies", "a list of search requests", bodies)
    return [(name, body) for body in bodies]


def text_watch(pipeline: Pipeline, recipe: Recipe, documents: Iterable[Mapping[str, Any]] = ()) -> FieldWatch:
    """Return a watch that records whether documents have the fields that fingerprints are made of."""
    watch = FieldWatch(raw_fields(pipeline.steps, recipe.field))
    for _ in watch.watch(documents):
        pass
    return watch


def warn_of_unread(watch: FieldWatch, index: str) -> tuple[str, ...]:
    """Log and return the warning that no document has text that is read, and others hold some."""
    other = watch.elsewhere() if watch.textless else ()
    if not other:
        return ()
    note = (
        f"no document has text in {', '.join(watch.fields)}, so that none of them folds; there is text in "
        f"{', '.join(other)}; to take it from there: "
        f"shinglefold.setup(…, {index!r}, text={list(other)}), then backfill() of the index opened again"
    )
    _log.warning("index %s: %s", index, note)
    return (note,)


def sign_documents(
    pipeline: Pipeline,
    field: str,
    documents: Iterable[Mapping[str, Any]],
    workers: int,
    check: Callable[[], None],
) -> Iterator[Document]:
    """Yield documents with the fingerprints that a pipeline makes of them; see ``FoldedIndex.sign``.

    Args:
        check: called before each block; an exception ends the run.
    """
    if isinstance(documents, str | bytes | Mapping) or not isinstance(documents, Iterable):
        raise expected("documents", "a list of documents, each an object of its fields", documents)
    waiting: deque[list[tuple[Document, str]]] = deque()

    def readable_blocks() -> Iterator[list[Document]]:
        for block in blocks(map(_fields, documents), weight, RAW_BUDGET):
            check()
            reasons = [too_long(one) or overwrite_refusal(one, field) for one in block]
            bare = [without_fingerprint(one, field) for one in block]
            waiting.append(list(zip(bare, reasons, strict=True)))
            yield [one for one, reason in waiting[-1] if not reason]

    number = 0
    with closing(process_blocks(pipeline, readable_blocks(), workers)) as answers:
        for answer in answers:
            outcomes = iter(answer.outcomes)
            for document, reason in waiting.popleft():
                outcome = None if reason else next(outcomes)
                made = (
                    MISSING if outcome is None or outcome.document is None else get(outcome.document, field)
                )
                if made is MISSING:
                    failure = None if outcome is None else outcome.failure
                    why = reason or str(failure or "the pipeline of the index drops it")
                    name = f", {document['_id']!r:.80}," if "_id" in document else ""
                    raise InputError(f"documents[{number}]{name} can't be signed: {why}")
                yield put(document, field, made)
                number += 1


def _fields(document: object) -> Document:
    if not isinstance(document, Mapping):
        raise expected("document", "an object of its fields", document)
    return dict(document)
