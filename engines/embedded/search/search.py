"""Run a search: compile the query, rank the hits, load them, and return the servers' response."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import tantivy

from shinglefold.documents import values_at
from shinglefold.engines.embedded.schema.catalog import Catalog
from shinglefold.engines.embedded.schema.field_types import (
    Field,
    FieldKind,
    format_date,
    is_ignored,
    parse_date,
    to_index,
)
from shinglefold.engines.embedded.schema.tantivy_schema import Analysis, hit_count, search_top
from shinglefold.engines.embedded.search.aggregations import (
    aggregate,
    collapse_field,
    column_values,
    first_of_each,
    group_query,
)
from shinglefold.engines.embedded.search.compiler import compile_query
from shinglefold.engines.embedded.search.highlight import HighlightOptions, Style, highlight
from shinglefold.engines.embedded.search.queries import Context, Mark, constant
from shinglefold.engines.embedded.search.request import (
    Collapse,
    Request,
    address_at,
    field_value,
    make_column,
    missing_value,
    place,
    places,
    read_request,
    tantivy_orders,
)
from shinglefold.engines.embedded.store.document_encoder import parse_source, stored_main
from shinglefold.engines.embedded.store.record_files import Head, read_head
from shinglefold.engines.embedded.store.snapshots import Order, Snapshot
from shinglefold.errors import UnsupportedQuery


@dataclass(frozen=True, slots=True)
class Selection:
    """The fields of ``docvalue_fields``; those within top-level objects can be read without the rest."""

    in_parts: tuple[Field, ...]
    in_main: tuple[Field, ...]

    def read(self, parts: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return the values of a document by path; paths without a value are left out.

        Args:
            parts: the objects at its top level.
            source: the whole document; without fields in ``in_main`` an empty one suffices.
        """
        found: dict[str, list[Any]] = {}
        _add_values(self.in_parts, parts, found)
        _add_values(self.in_main, source, found)
        return found


def select(catalog: Catalog, names: Sequence[str]) -> Selection:
    """Return the fields that names and patterns with ``*`` match.

    Raises:
        UnsupportedQuery: a field that is named in full has no doc values.
    """
    chosen: dict[str, Field] = {}
    for name in names:
        if "*" in name:
            chosen |= {
                path: field
                for path, field in catalog.fields.items()
                if field.doc_values and fnmatchcase(path, name)
            }
        elif name in catalog.fields:
            chosen[name] = _check_doc_values(catalog.fields[name])
    in_objects = [path for path, field in chosen.items() if field.source.partition(".")[0] in catalog.objects]
    return Selection(
        tuple(chosen[path] for path in in_objects),
        tuple(field for path, field in chosen.items() if path not in in_objects),
    )


def _check_doc_values(field: Field) -> Field:
    if not field.doc_values:
        raise UnsupportedQuery(
            f"docvalue_fields: {field.path!r} ({field.type}) has no doc values; take it from _source, or map "
            "it with doc_values: true"
        )
    return field


def _add_values(fields: Sequence[Field], source: Mapping[str, Any], found: dict[str, list[Any]]) -> None:
    for field in fields:
        values = values_at(source, field.source)
        if values and (shown := _doc_values(field, values)):
            found[field.path] = shown


def _doc_values(field: Field, values: list[Any]) -> list[Any]:
    """Return values as servers return doc values: sorted, and keywords without duplicates."""
    if field.kind is FieldKind.BINARY:
        return values
    if field.kind is FieldKind.KEYWORD:
        texts = {value if type(value) is str else json.dumps(value) for value in values}
        return sorted(text for text in texts if not is_ignored(field, text))
    if field.kind is FieldKind.DATE:
        moments = sorted(parse_date(value, field.format).first for value in values)
        return [str(moment) if field.format == "epoch_millis" else format_date(moment) for moment in moments]
    numbers = sorted(number for value in values if (number := to_index(field, value)) is not None)
    return [number == 1 for number in numbers] if field.kind is FieldKind.BOOLEAN else numbers


#: The most characters of a text that are searched for highlights, as on servers.
_HIGHLIGHTED = 1_000_000
#: tantivy sorts pages up to this hit; for a later page, all hits are sorted once and cached.
_NATIVE = 10_000


class _Ranked(NamedTuple):
    """A hit of the page: score, address and sort values."""

    score: float
    address: tantivy.DocAddress
    sort: list[Any]


@dataclass(frozen=True, slots=True)
class _Loader:
    """Loads the hits of a page, and reads no more of the documents than the request needs."""

    snapshot: Snapshot
    request: Request
    analysis: Analysis
    marks: Sequence[Mark]
    selection: Selection

    def hits(self, page: Sequence[_Ranked]) -> list[dict[str, Any]]:
        """Return the hits of the response."""
        request = self.request
        pages = bool(request.source.wanted or request.highlight or self.selection.in_main)
        if not pages and not self.selection.in_parts and request.bare:
            return [self._bare_hit(ranked) for ranked in page]
        heads = self.snapshot.heads.load(self.snapshot.searcher, [ranked.address for ranked in page])
        return [self._hit(ranked, read_head(head)) for ranked, head in zip(page, heads, strict=True)]

    def _hit(self, ranked: _Ranked, head: Head) -> dict[str, Any]:
        hit = self._bare_hit(ranked, "" if self.request.bare else head.id)
        source = head.parts
        if self._needs_source(head):
            main = stored_main(self.snapshot.searcher, self.snapshot.heads, ranked.address)
            source = parse_source(main) | head.parts
        if self.request.source.wanted:
            hit["_source"] = self.request.source.apply(source)
        if fields := self.selection.read(head.parts, source):
            hit["fields"] = fields
        if self.request.highlight and (marked := self._highlight(self.request.highlight, source)):
            hit["highlight"] = marked
        return hit

    def _needs_source(self, head: Head) -> bool:
        """Return whether more than the head of a document is needed; the rest must be decompressed."""
        request = self.request
        beyond = request.source.wanted and not request.source.within(head.parts)
        return bool(beyond or request.highlight or self.selection.in_main)

    def _bare_hit(self, ranked: _Ranked, id_: str = "") -> dict[str, Any]:
        frame: dict[str, Any] = {"_index": self.snapshot.name}
        if id_:
            frame["_id"] = id_
        frame["_score"] = ranked.score if self.request.scored else None
        if self.request.sort:
            frame["sort"] = ranked.sort
        return frame

    def _highlight(self, options: HighlightOptions, source: Mapping[str, Any]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for pattern, style in options.fields:
            for field in self._highlight_fields(pattern):
                fragments = self._fragments(field, style, source)
                if fragments:
                    found[field.path] = fragments[: style.fragments or None]
        return found

    def _highlight_fields(self, pattern: str) -> list[Field]:
        fields = self.snapshot.catalog.fields.values()
        return [
            field for field in fields if field.kind is FieldKind.TEXT and fnmatchcase(field.path, pattern)
        ]

    def _fragments(self, field: Field, style: Style, source: Mapping[str, Any]) -> list[str]:
        marks = [mark for mark in self.marks if mark.path == field.path or not style.own_terms_only]
        fragments: list[str] = []
        if marks or style.no_match_size:
            for value in values_at(source, field.source):
                text = str(value)[:_HIGHLIGHTED]
                fragments += highlight(text, self.analysis.tokens(text), marks, style)
        return fragments


def run_search(snapshot: Snapshot, analysis: Analysis, request: Request) -> dict[str, Any]:
    """Return the response to a search.

    Raises:
        UnsupportedQuery: the query, a sort or an aggregation is not supported.
    """
    began = time.perf_counter()
    context = Context(snapshot, analysis)
    query = compile_query(context, request.query)
    loader = _Loader(snapshot, request, analysis, context.marks, select(snapshot.catalog, request.docvalues))
    if request.collapse is None:
        count, best, page = _rank_hits(snapshot, query, request)
        shown = loader.hits(page)
    else:
        count, best, shown = _collapse_hits(loader, query, request.collapse)
    hits: dict[str, Any] = {"max_score": best if request.scored else None}
    if request.total is not False:
        hits = {"total": _total(count, request.total), **hits}
    hits["hits"] = shown
    response: dict[str, Any] = {
        "took": round((time.perf_counter() - began) * 1000),
        "timed_out": False,
        "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
        "hits": hits,
    }
    if request.aggregations:
        response["aggregations"] = aggregate(snapshot, query, request.aggregations)
    return response


def _rank_hits(
    snapshot: Snapshot, query: tantivy.Query, request: Request
) -> tuple[int, float | None, list[_Ranked]]:
    """Return the number of hits, the best score, and the hits of the page."""
    wanted = request.start + request.size
    if request.by_rank and request.after is None:
        # At least one, for the best score.
        count, found = search_top(snapshot.searcher, query, max(wanted, 1))
        best = found[0][0] if found else None
        return count, best, [_by_rank(request, *hit) for hit in found[request.start : wanted]]
    order = snapshot.sort_cache.get(key := _order_key(request))
    if order is None and request.after is None and not request.scored:
        native = tantivy_orders(request.sort, snapshot)
        if native is not None and wanted <= _NATIVE:
            sorted_page = _sorted_by_tantivy(snapshot, query, request, *native)
            if sorted_page is not None:
                return sorted_page
    if order is None:
        order = _order(snapshot, query, request)
        snapshot.sort_cache.keep(key, order)
    start = request.start if request.after is None else order.after(request.after)
    rows = range(start, min(start + request.size, order.places.size))
    page = [
        _Ranked(float(order.scores[row]), address_at(int(order.places[row])), order.sort_values(row))
        for row in rows
    ]
    return order.places.size, order.best, page


def _collapse_hits(
    loader: _Loader, query: tantivy.Query, collapse: Collapse
) -> tuple[int, float | None, list[dict[str, Any]]]:
    """Return the number of hits, the best score, and the first hit of each group of the page."""
    snapshot, request = loader.snapshot, loader.request
    field = collapse_field(snapshot, collapse.path)
    count, best, firsts = first_of_each(
        lambda size: _rank_hits(snapshot, query, replace(request, start=0, size=size)),
        lambda page: column_values(snapshot, field, [ranked.address for ranked in page]),
        request.start + request.size,
    )
    firsts = firsts[request.start :]
    shown = loader.hits([ranked for ranked, _ in firsts])
    for hit, (_, value) in zip(shown, firsts, strict=True):
        if value is not None:
            hit["fields"] = {**hit.get("fields", {}), collapse.path: [value]}
        if collapse.inner:
            hit["inner_hits"] = _inner_hits(loader, collapse, value)
    return count, best, shown


def _inner_hits(loader: _Loader, collapse: Collapse, value: int | None) -> dict[str, Any]:
    query = group_query(loader.request.query, collapse.path, value)
    found = {}
    for name, one in zip(collapse.names, collapse.inner, strict=True):
        body = {key: given for key, given in one.items() if key != "name"}
        request = read_request({"size": 3, **body, "query": query}, under_pit=False)
        found[name] = {"hits": run_search(loader.snapshot, loader.analysis, request)["hits"]}
    return found


def _order_key(request: Request) -> str:
    return json.dumps([request.query, [astuple(key) for key in request.sort]], sort_keys=True, default=repr)


def _order(snapshot: Snapshot, query: tantivy.Query, request: Request) -> Order:
    """Return all hits in order. Cost: about 2 µs a hit and key."""
    count, _ = search_top(snapshot.searcher, query, 1)
    # All at once, because tantivy sorts neither by several fields nor after a cursor.
    _, found = search_top(snapshot.searcher, query, count)
    columns = [make_column(key, snapshot, query, found) for key in request.sort]
    scores = np.fromiter((score for score, _ in found), np.float32, len(found))
    return Order.of(places(found), scores, columns)


def _sorted_by_tantivy(
    snapshot: Snapshot, query: tantivy.Query, request: Request, field: Field | None, descending: bool
) -> tuple[int, None, list[_Ranked]] | None:
    """Return a page near the top in the order of tantivy's own sort.

    None if a document has the sort value of documents without a value: tantivy sorts these last.
    """
    wanted = max(request.start + request.size, 1)
    if field is None:
        count, found = search_top(snapshot.searcher, constant(query), wanted)
        keyed: Sequence[tuple[Any, tantivy.DocAddress]] = [(place(address), address) for _, address in found]
    else:
        order = tantivy.Order.Desc if descending else tantivy.Order.Asc
        result = snapshot.searcher.search(query, wanted, order_by_field=field.column, order=order)
        instead = missing_value(request.sort[0], field)
        if instead is not None and any(value == instead for value, _ in result.hits):
            return None
        count = hit_count(result)
        keyed = [
            (field_value(instead if value is None else value, field), address)
            for value, address in result.hits
        ]
    # Any further sort keys are the position in the index.
    rest = len(request.sort) - 1
    chosen = keyed[request.start : request.start + request.size]
    return (
        count,
        None,
        [_Ranked(0.0, address, [value, *[place(address)] * rest]) for value, address in chosen],
    )


def _by_rank(request: Request, score: float, address: tantivy.DocAddress) -> _Ranked:
    return _Ranked(score, address, [score, place(address)][: len(request.sort)])


def _total(count: int, wanted: bool | int) -> dict[str, Any]:
    if wanted is True or count <= wanted:
        return {"value": count, "relation": "eq"}
    return {"value": int(wanted), "relation": "gte"}
