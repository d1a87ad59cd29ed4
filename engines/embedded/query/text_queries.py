"""Queries on analysed text: match, match_phrase, multi_match."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import tantivy

from shinglefold.engines.embedded.query.context import (
    Context,
    Mark,
    any_of,
    best_of,
    boosted,
    leaf,
    minimum,
    no_document,
)
from shinglefold.engines.embedded.query.term_queries import value_query
from shinglefold.engines.embedded.schema.body_options import checked, number, strings, unsupported, whole
from shinglefold.engines.embedded.schema.field_types import Field, FieldKind
from shinglefold.errors import UnsupportedQuery

Query = tantivy.Query
_TYPES = ("best_fields", "most_fields", "phrase")
_OPERATORS = ("or", "and")


def _match(context: Context, body: object) -> Query:
    path, given = leaf("match", body, "query")
    checked("match", given, ("query", "operator", "minimum_should_match", "boost"))
    own = context.field(path, "match")
    return boosted(_words(context, own, given, "match"), given) if own else no_document()


def _match_phrase(context: Context, body: object) -> Query:
    path, given = leaf("match_phrase", body, "query")
    checked("match_phrase", given, ("query", "slop", "boost"))
    own = context.field(path, "match_phrase")
    return boosted(_phrase(context, own, given, "match_phrase"), given) if own else no_document()


def _multi_match(context: Context, body: object) -> Query:
    known = ("query", "fields", "type", "operator", "minimum_should_match", "tie_breaker", "slop", "boost")
    given = checked("multi_match", body, known)
    kind = given.get("type", "best_fields")
    if kind not in _TYPES:
        raise unsupported("type of multi_match", str(kind), _TYPES)
    search = _phrase if kind == "phrase" else _words
    found = []
    for name in strings("multi_match fields", given.get("fields", "*")):
        pattern, _, boost = name.partition("^")
        for own in _fields(context, pattern):
            query = search(context, own, given, "multi_match")
            found.append(boosted(query, {"boost": _boost(name, boost)}))
    if kind == "most_fields":
        return boosted(any_of(found), given)
    return boosted(best_of(found, number("tie_breaker", given.get("tie_breaker", 0.0))), given)


def _words(context: Context, own: Field, given: Mapping[str, Any], what: str) -> Query:
    operator = str(given.get("operator", "or")).lower()
    if operator not in _OPERATORS:
        raise unsupported(f"operator of {what}", operator, _OPERATORS)
    if own.kind is not FieldKind.TEXT:
        return value_query(context, own, _query_value(given, what), what)
    queries = []
    for tokens in context.analysis.readings(_query_text(given, what)):
        clauses = [Query.term_query(context.snapshot.schema, own.column, token) for token in tokens]
        least = minimum(given.get("minimum_should_match", 1), len(clauses))
        queries.append(any_of(clauses, len(clauses) if operator == "and" else max(least, 1)))
        context.marks.extend(Mark(own.path, (token,)) for token in tokens)
    return best_of(queries)


def _phrase(context: Context, own: Field, given: Mapping[str, Any], what: str) -> Query:
    slop = whole(f"slop of {what}", given.get("slop", 0))
    if own.kind is not FieldKind.TEXT:
        return value_query(context, own, _query_value(given, what), what)
    schema = context.snapshot.schema
    queries = []
    for tokens in context.analysis.readings(_query_text(given, what)):
        if len(tokens) == 1:
            queries.append(Query.term_query(schema, own.column, tokens[0]))
        else:
            queries.append(Query.phrase_query(schema, own.column, list(tokens), slop))
        context.marks.append(Mark(own.path, tokens, slop))
    return best_of(queries)


def _fields(context: Context, pattern: str) -> list[Field]:
    if "*" in pattern:
        return context.text_fields(pattern)
    own = context.field(pattern, "multi_match")
    return [own] if own else []


def _boost(name: str, text: str) -> float:
    try:
        return number("boost", float(text or 1))
    except ValueError:
        raise UnsupportedQuery(f"multi_match field {name!r}: expected a number after ^") from None


def _query_value(given: Mapping[str, Any], what: str) -> str | int | float:
    value = given.get("query")
    if not isinstance(value, str | int | float):
        raise UnsupportedQuery(f"{what}: expected the text to look for as query, got {value!r}")
    return value


def _query_text(given: Mapping[str, Any], what: str) -> str:
    return str(_query_value(given, what))


TEXT_QUERIES: Mapping[str, Callable[[Context, Any], Query]] = MappingProxyType(
    {"match": _match, "match_phrase": _match_phrase, "multi_match": _multi_match}
)
