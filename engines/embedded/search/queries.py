"""Queries on values (term, terms, range, prefix, exists, ids), and the basic tantivy queries."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

import tantivy

from shinglefold.documents import as_text, well_formed
from shinglefold.engines.embedded.schema.field_types import (
    Field,
    FieldKind,
    Indexed,
    are_short_strings,
    parse_date,
    to_index,
)
from shinglefold.engines.embedded.schema.requests import (
    check_options,
    number_option,
    single_entry,
    strings_option,
)
from shinglefold.engines.embedded.schema.tantivy_schema import NAMES, Analysis
from shinglefold.engines.embedded.store.snapshots import Snapshot
from shinglefold.errors import UnsupportedQuery

Query = tantivy.Query
#: The query that matches everything, with score 1, and the one that matches nothing.
all_documents, no_document = Query.all_query, Query.empty_query


@dataclass(frozen=True, slots=True)
class Mark:
    """Tokens of a query to highlight in a field: a phrase with up to ``slop`` other tokens in it."""

    path: str
    tokens: tuple[str, ...]
    slop: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """The index a query is compiled for; ``marks`` gets the words to highlight."""

    snapshot: Snapshot
    analysis: Analysis
    marks: list[Mark] = field(default_factory=list)

    def without_marks(self) -> "Context":
        """Return a context with other marks, for queries that must not match and are not highlighted."""
        return replace(self, marks=[])

    def field(self, path: str, what: str) -> Field | None:
        """Return a field that can be searched, None if it is not mapped.

        Raises:
            UnsupportedQuery: it is an object, or only stored.
        """
        catalog = self.snapshot.catalog
        found = catalog.fields.get(path)
        if found is None and path in catalog.objects:
            raise UnsupportedQuery(f"{what}: {path!r} is an object; name one of its fields, such as {path}.…")
        if found is not None and not found.column:
            raise UnsupportedQuery(
                f"{what}: {path!r} ({found.type}) is only stored; take another field, or index again "
                "with other mappings"
            )
        return found

    def text_fields(self, pattern: str) -> list[Field]:
        """Return the text and keyword fields that match a pattern with ``*``."""
        fields = self.snapshot.catalog.fields
        return [
            field
            for path, field in sorted(fields.items())
            if field.kind in (FieldKind.TEXT, FieldKind.KEYWORD)
            and field.column
            and path != "_id"
            and fnmatchcase(path, pattern)
        ]


def leaf(what: str, body: object, main: str) -> tuple[str, Mapping[str, Any]]:
    """Return field and options of a query on a field; ``{field: value}`` is short for the option ``main``."""
    path, given = single_entry(what, body)
    return path, given if isinstance(given, Mapping) else {main: given}


def constant(query: Query, score: float = 1.0) -> Query:
    """Return the query with a constant score."""
    return Query.const_score_query(query, score)


def apply_boost(query: Query, given: Mapping[str, Any]) -> Query:
    """Return the query with the boost in its options."""
    boost = number_option("boost", given.get("boost", 1.0))
    return query if boost == 1.0 else Query.boost_query(query, boost)


def any_of(queries: list[Query], wanted: int = 1) -> Query:
    """Return a query of which at least ``wanted`` clauses must match; it sums the scores of those that do."""
    if not queries or wanted > len(queries):
        return no_document()
    if len(queries) == 1:
        return queries[0]
    return Query.boolean_query([(tantivy.Occur.Should, query) for query in queries], max(wanted, 1))


def best_of(queries: list[Query], tie: float = 0.0) -> Query:
    """Return the query whose score is the best of the matching queries, plus ``tie`` times the others."""
    if len(queries) == 1:
        return queries[0]
    return Query.disjunction_max_query(queries, tie) if queries else no_document()


def minimum(given: object, clauses: int) -> int:
    """Return ``minimum_should_match`` as a number of clauses; it may be more than there are.

    Raises:
        UnsupportedQuery: it is neither a number nor a percentage.
    """
    text = str(given).strip()
    if isinstance(given, bool) or not re.fullmatch(r"-?\d{1,6}%?", text):
        raise UnsupportedQuery(
            f'minimum_should_match: expected a number or a percentage ("75%"), got {given!r}'
        )
    # Rounded towards zero as in Lucene, also for negative percentages.
    wanted = int(clauses * int(text[:-1]) / 100) if text.endswith("%") else int(text)
    return max(wanted + clauses if text.startswith("-") else wanted, 0)


#: The most values for which each gets a term query. Keywords without doc values are allowed more, because
#: most of their values do not occur in the index.
_TERM_QUERIES_MOST, _RARE_TERM_QUERIES_MOST = 1_000, 30_000
#: The number of values that are checked together.
_BATCH = 200
_BOUNDS = ("gte", "gt", "lte", "lt")


def value_query(context: Context, field: Field, value: object, what: str) -> Query:
    """Return the query for one value of a field, which is not analysed.

    Raises:
        UnsupportedQuery: the field can't have this value.
    """
    schema = context.snapshot.schema
    if field.kind is FieldKind.DATE:
        return _range(context, field, {"gte": value, "lte": value})
    if field.kind is FieldKind.TEXT:
        return Query.term_query(schema, field.column, well_formed(as_text(value)))
    indexed = _indexed_value(field, value, what)
    if indexed is None:
        return no_document()
    query = Query.term_query(schema, field.column, indexed, "basic")
    return query if field.kind is FieldKind.KEYWORD else constant(query)


def _term(context: Context, body: object) -> Query:
    path, given = leaf("term", body, "value")
    check_options("term", given, ("value", "boost"))
    if not isinstance(given.get("value"), str | int | float):
        raise UnsupportedQuery(f"term on {path!r}: expected one value, got {given.get('value')!r}; see terms")
    field = context.field(path, "term")
    return apply_boost(value_query(context, field, given["value"], "term"), given) if field else no_document()


def _terms(context: Context, body: object) -> Query:
    if not isinstance(body, Mapping) or len(body.keys() - {"boost"}) != 1:
        raise UnsupportedQuery('terms: expected one field and its values, {"field": ["a", "b"]}')
    (path,) = body.keys() - {"boost"}
    values = body[path]
    if not isinstance(values, list | tuple):
        raise UnsupportedQuery(f"terms on {path!r}: expected a list of values; there is no terms lookup")
    field = context.field(path, "terms")
    if field is None or not values:
        return no_document()
    if field.kind is FieldKind.KEYWORD and all(are_short_strings(field, some) for some in _batches(values)):
        most = _RARE_TERM_QUERIES_MOST if field.searched_only else _TERM_QUERIES_MOST
        return apply_boost(_any_value(context, field.column, values, most), body)
    if not all(isinstance(value, str | int | float) for value in values):
        raise UnsupportedQuery(f"terms on {path!r}: expected strings, numbers or booleans; leave null out")
    if field.kind is FieldKind.DATE:
        ranges = [(tantivy.Occur.Should, value_query(context, field, value, "terms")) for value in values]
        return apply_boost(constant(Query.boolean_query(ranges)), body)
    found = [_indexed_value(field, value, "terms") for value in values]
    indexed = [value for value in found if value is not None]
    return apply_boost(_any_value(context, field.column, indexed), body)


def _batches(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield values in batches, because thousands together are longer than a keyword may be."""
    return (values[begin : begin + _BATCH] for begin in range(0, len(values), _BATCH))


def _ids(context: Context, body: object) -> Query:
    given = check_options("ids", body, ("values", "boost"))
    ids = strings_option("ids values", given.get("values"))
    if not ids:
        return no_document()
    return apply_boost(_any_value(context, "_id", [well_formed(id_) for id_ in ids]), given)


def _any_value(
    context: Context, column: str, values: Sequence[Indexed], most: int = _TERM_QUERIES_MOST
) -> Query:
    """Return the query for documents that have one of the values.

    Up to ``most`` values get a term query each. More become one term set query, which goes through all terms
    of the column. That is slower for few values: 2.5 against 0.19 ms for 21 keywords in 100,000 documents,
    128 against 33 ms for 5,200 mostly absent ones in 560,000. For 2,000 present ids it is faster (0.6 times).
    """
    if not values:
        return no_document()
    schema = context.snapshot.schema
    if len(values) > most:
        return constant(Query.term_set_query(schema, column, list(values)))
    each = [Query.term_query(schema, column, value, "basic") for value in dict.fromkeys(values)]
    return constant(any_of(each))


def _exists(context: Context, body: object) -> Query:
    given = check_options("exists", body, ("field", "boost"))
    path = given.get("field")
    if not isinstance(path, str):
        raise UnsupportedQuery(f"exists: expected the name of a field, got {path!r}")
    if path == "_id":
        return apply_boost(all_documents(), given)
    paths = [path]
    if "*" in path:
        catalog = context.snapshot.catalog
        paths = [one for one in (*catalog.fields, *catalog.objects) if fnmatchcase(one, path)]
    return apply_boost(_any_value(context, NAMES, [well_formed(one) for one in paths]), given)


def _prefix(context: Context, body: object) -> Query:
    path, given = leaf("prefix", body, "value")
    check_options("prefix", given, ("value", "boost"))
    field = context.field(path, "prefix")
    if field is None:
        return no_document()
    value = given.get("value")
    if field.kind not in (FieldKind.KEYWORD, FieldKind.TEXT) or not isinstance(value, str):
        raise UnsupportedQuery(f"prefix on {path!r}: works on strings in keyword and text fields only")
    return apply_boost(_terms_where(context, field, well_formed(value), lambda _: True), given)


def _range_query(context: Context, body: object) -> Query:
    path, given = leaf("range", body, "gte")
    check_options("range", given, (*_BOUNDS, "boost"))
    field = context.field(path, "range")
    return apply_boost(_range(context, field, given), given) if field else no_document()


def _range(context: Context, field: Field, given: Mapping[str, Any]) -> Query:
    bounds = {name: given[name] for name in _BOUNDS if given.get(name) is not None}
    if len(bounds.keys() & {"gte", "gt"}) > 1 or len(bounds.keys() & {"lte", "lt"}) > 1:
        raise UnsupportedQuery(f"range on {field.path!r}: give one lower and one upper bound at most")
    if field.kind is FieldKind.TEXT:
        raise UnsupportedQuery(
            f"range on the text field {field.path!r}: name a keyword, number or date field"
        )
    if not bounds:
        return _exists(context, {"field": field.path})
    if field.kind is FieldKind.KEYWORD:
        strings_option("range bounds", list(bounds.values()))
        return _terms_where(context, field, "", lambda term: _is_within(term, bounds))
    if field.kind is FieldKind.DOUBLE:
        return _double_range(context, field, bounds)
    return _long_range(context, field, bounds)


def _double_range(context: Context, field: Field, bounds: Mapping[str, Any]) -> Query:
    values = {name: _indexed_value(field, value, "range") for name, value in bounds.items()}
    if field.type == "half_float":
        # Servers round a value to 16 bits, and a bound to 32.
        values = {name: to_index(replace(field, type="float"), value) for name, value in bounds.items()}
    low, high = values.get("gte", values.get("gt")), values.get("lte", values.get("lt"))
    return constant(
        Query.range_query(
            context.snapshot.schema, field.column, tantivy.FieldType.Float, low, high,
            include_lower="gt" not in values, include_upper="lt" not in values,
        )
    )  # fmt: skip


def _long_range(context: Context, field: Field, bounds: Mapping[str, Any]) -> Query:
    """Return the query for a range of integers, with both ends made inclusive."""
    ends = {name: _integer_bound(field, name, value) for name, value in bounds.items()}
    low = max(ends.get("gte", ends.get("gt", -(2**63))), -(2**63))
    high = min(ends.get("lte", ends.get("lt", 2**63 - 1)), 2**63 - 1)
    if low > high:
        return no_document()
    found = Query.range_query(context.snapshot.schema, field.column, tantivy.FieldType.Integer, low, high)
    return constant(found)


def _integer_bound(field: Field, name: str, value: object) -> int:
    try:
        if field.kind is FieldKind.DATE:
            span = parse_date(value, field.format)
            return {"gte": span.first, "gt": span.last + 1, "lte": span.last, "lt": span.first - 1}[name]
        if field.kind is FieldKind.BOOLEAN:
            value = _indexed_value(field, value, "range")
        exact = (
            value if isinstance(value, int | float) and not isinstance(value, bool) else _exact(str(value))
        )
        whole = math.ceil(exact) if name in ("gte", "lt") else math.floor(exact)
        return whole + {"gte": 0, "gt": 1, "lte": 0, "lt": -1}[name]
    except (ValueError, OverflowError) as error:
        raise UnsupportedQuery(f"range on {field.path!r} ({field.type}): {error}") from error


def _exact(text: str) -> int | float:
    """Return a number in a text; whole ones are not rounded as floats are."""
    return int(text) if re.fullmatch("-?[0-9]{1,40}", text) else float(text)


def _terms_where(context: Context, field: Field, prefix: str, wanted: Callable[[str], bool]) -> Query:
    """Return the query for all terms of a field that have a prefix and pass a filter.

    Cost: proportional to the distinct terms with the prefix; tantivy has no range query on strings.
    """
    listed = context.snapshot.searcher.terms_with_prefix(field.column, prefix)
    terms = [term for term, _ in listed if wanted(term)]
    if not terms:
        return no_document()
    return constant(Query.term_set_query(context.snapshot.schema, field.column, terms))


def _is_within(term: str, bounds: Mapping[str, str]) -> bool:
    return (
        bounds.get("gte", "") <= term
        and ("gt" not in bounds or bounds["gt"] < term)
        and ("lte" not in bounds or term <= bounds["lte"])
        and ("lt" not in bounds or term < bounds["lt"])
    )


def _indexed_value(field: Field, value: object, what: str) -> Indexed | None:
    """Return the indexed form of a value in a query, None if no document has it."""
    try:
        if value == "" and field.kind in (FieldKind.LONG, FieldKind.DOUBLE, FieldKind.BOOLEAN):
            raise ValueError("the value is empty")
        # Servers search these for any integer, which no document has.
        wide = replace(field, type="integer") if field.type in ("byte", "short") else field
        indexed = to_index(wide, value)
    except ValueError as error:
        raise UnsupportedQuery(f"{what} on {field.path!r} ({field.type}): {error}") from error
    # A document's 1.5 is stored as 1, but a query for 1.5 does not match 1.
    return None if field.kind is FieldKind.LONG and _exact(str(value)) != indexed else indexed


def _match_all(_: Context, body: object) -> Query:
    return apply_boost(all_documents(), check_options("match_all", body, ("boost",)))


def _match_none(_: Context, body: object) -> Query:
    check_options("match_none", body, ())
    return no_document()


TERM_QUERIES: Mapping[str, Callable[[Context, Any], Query]] = MappingProxyType(
    {
        "exists": _exists,
        "ids": _ids,
        "match_all": _match_all,
        "match_none": _match_none,
        "prefix": _prefix,
        "range": _range_query,
        "term": _term,
        "terms": _terms,
    }
)
