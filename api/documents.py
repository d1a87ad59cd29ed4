"""Documents of an open index: query documents, stored documents, and documents to sign or write."""

import logging
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from shinglefold.contracts.engine import DATE_FORMAT, JSON, Document
from shinglefold.documents import MISSING, RAW_BUDGET, as_text, blocks, get, put, too_long, values_at, weight
from shinglefold.errors import ConfigError, InputError
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
from shinglefold.rerank.hits import moment
from shinglefold.rerank.index_fields import ISO_FORMATS, definition_of, unreadable_dates
from shinglefold.rerank.request.hit_parts import with_doc_values
from shinglefold.rerank.similar import QueryDocument

_MILLISECONDS = re.compile(r"-?[0-9]{1,19}(\.[0-9]{0,19})?")
#: A year, of a month or a day, as formats read them from text and from numbers.
_STRICT = re.compile(r"([0-9]{4}|-[0-9]{4,9})(?:-([0-9]{2}))?(?:-([0-9]{2}))?")
_LENIENT = re.compile(r"(-?[0-9]{1,9})(?:-([0-9]{1,2}))?(?:-([0-9]{1,2}))?")
_DAYS = {
    "strict_date_optional_time": _STRICT,
    "strict_date_optional_time_nanos": _STRICT,
    "date_optional_time": _LENIENT,
    "date": _LENIENT,
}
_log = logging.getLogger("shinglefold.api")


def query_document(
    pipeline: Pipeline,
    recipe: Recipe,
    document: Mapping[str, Any],
    scopes: Sequence[Scope],
    mappings: Mapping[str, JSON],
) -> QueryDocument:
    """Return a document with the fingerprint that it would have; see ``FoldedIndex.query_document``.

    Args:
        mappings: those of the indices by name; they say which values of a document a scope has.
    """
    (outcome,) = pipeline.run([dict(document)])
    if outcome.document is None:
        reason = outcome.failure.reason if outcome.failure else "the pipeline drops it"
        raise InputError(f"the document can't be compared: {reason}")
    stored = values_at(outcome.document, recipe.field)
    fingerprint = Fingerprint.from_field(stored[0]) if stored else None
    if fingerprint is None or not fingerprint.digest:
        raise InputError(f"the document has no text in {', '.join(recipe.fields)}, the fields of the index")
    values = {scope.field: _scope_values(outcome.document, scope, mappings) for scope in scopes}
    shown = without_markup(outcome.document, recipe.fields)
    text = joined_text(shown, recipe.fields, True) or ""
    return QueryDocument(fingerprint, values, text=text)


def _scope_values(document: Document, scope: Scope, mappings: Mapping[str, JSON]) -> list[Any]:
    """Return the values of a scope as the index would store them; none if it can't store them.

    Raises:
        ConfigError: they can't be known before the document is stored.
    """
    from shinglefold.grouping.field_values import Values

    defined = {name: one for name, own in mappings.items() if (one := definition_of(own, scope.field))}
    if not defined:
        return values_at(document, scope.field)
    kinds = {node.get("type") for _, node in defined.values()}
    if kinds == {"date"} or (scope.within is not None and kinds <= {"date", "date_nanos"}):
        return _dates(document, scope, list(defined.values()), list(mappings.values()))
    try:
        values = Values.of_several({name: mappings[name] for name in defined}, [scope.field])
    except ConfigError as error:
        raise ConfigError(f"{error}; or store the document, and give its id") from error
    return values.stored(scope.field, values.read({"_source": document}, scope.field))


def _dates(
    document: Document,
    scope: Scope,
    defined: Sequence[tuple[str, Mapping[str, Any]]],
    mappings: Sequence[JSON],
) -> list[Any]:
    """Return the dates of a scope as the index would store them."""
    formats = {str(node.get("format") or DATE_FORMAT) for _, node in defined}
    unreadable = unreadable_dates(mappings, [scope.field])
    written = {part for one in formats for part in one.split("||")}
    # Engines return dates as the mapping writes them.
    in_milliseconds = {one == "epoch_millis" for one in formats}
    given = values_at(document, defined[0][0])
    values, *others = ([_read_date(value, one) for value in given] for one in formats)
    if scope.within is not None:
        unknown = unreadable and not written <= ISO_FORMATS
    else:
        # Equal dates are equal as engines write them: in the first format.
        lenient = any("optional_time" in part for part in written)
        unknown = len(in_milliseconds) > 1 or (unreadable and (lenient or len(formats | written) > 1))
    if unknown or any(one != values for one in others):
        raise ConfigError(
            f"the scope {scope.field!r} has the format {' and '.join(sorted(formats))}, so that its values "
            "can't be compared before the document is stored: store it, and give its id"
        )
    if unreadable or in_milliseconds == {True} or scope.within is not None:
        return values
    return [date for value in values if (date := _iso_date(value)) is not None]


def _read_date(value: Any, form: str) -> Any:  # noqa: ANN401 - JSON
    """Return a date as engines read it in a format: in most, 2026 is a year and 20261 is milliseconds."""
    text = as_text(value)
    for part in form.split("||"):
        if part == "epoch_millis" and _MILLISECONDS.fullmatch(text):
            return int(float(text)) if "." in text else int(text)
        if (pattern := _DAYS.get(part)) and (found := pattern.fullmatch(text)):
            year, month, day = found.groups("1")
            return f"{year:0>4}-{month:0>2}-{day:0>2}"
    return value


def scope_fields(scopes: Sequence[Scope], mappings: Sequence[JSON]) -> JSON:
    """Return the part of a search that returns the values of scopes as pages compare them."""
    dates = unreadable_dates(mappings, [scope.field for scope in scopes if scope.within is not None])
    names = [scope.field for scope in scopes]
    return {"docvalue_fields": with_doc_values({}, names, dates)} if names else {}


def _iso_date(value: Any) -> str | None:  # noqa: ANN401 - JSON
    """Return a date as engines return doc values; None if it is none, or outside the years 1 to 9999."""
    seconds = moment(value)
    try:
        date = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None if date is None else date.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def named_searches(name: str, bodies: Iterable[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the searches of ``FoldedIndex.msearch``, each with the name of the index."""
    if isinstance(bodies, str | bytes | Mapping) or not isinstance(bodies, Iterable):
        raise expected("bodies", "a list of search requests", bodies)
    return [(name, body) for body in bodies]


def text_watch(pipeline: Pipeline, recipe: Recipe, documents: Iterable[Mapping[str, Any]] = ()) -> FieldWatch:
    """Return a watch that records whether documents have the fields that fingerprints are made of."""
    watch = FieldWatch(raw_fields(pipeline.steps, recipe.field))
    for _ in watch.watch(documents):
        pass
    return watch


def warn_of_unread(watch: FieldWatch, index: str) -> tuple[str, ...]:
    """Log and return the warning that the fields read hold no text, while other fields do."""
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
