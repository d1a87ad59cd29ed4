"""Compile the query DSL to tantivy queries: the entry point, text queries and compound queries."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import tantivy

from shinglefold.documents import as_text
from shinglefold.engines.embedded.schema.field_types import Field, FieldKind
from shinglefold.engines.embedded.schema.requests import (
    check_options,
    int_option,
    number_option,
    single_entry,
    strings_option,
    unsupported_error,
)
from shinglefold.engines.embedded.search.queries import (
    TERM_QUERIES,
    Context,
    Mark,
    all_documents,
    any_of,
    apply_boost,
    best_of,
    constant,
    leaf,
    minimum,
    no_document,
    value_query,
)
from shinglefold.errors import UnsupportedQuery

Query = tantivy.Query
_TYPES = ("best_fields", "most_fields", "phrase")
_OPERATORS = ("or", "and")


def _match(context: Context, body: object) -> Query:
    path, given = leaf("match", body, "query")
    check_options("match", given, ("query", "operator", "minimum_should_match", "boost"))
    field = context.field(path, "match")
    return apply_boost(_match_query(context, field, given, "match"), given) if field else no_document()


def _match_phrase(context: Context, body: object) -> Query:
    path, given = leaf("match_phrase", body, "query")
    check_options("match_phrase", given, ("query", "slop", "boost"))
    field = context.field(path, "match_phrase")
    return (
        apply_boost(_phrase_query(context, field, given, "match_phrase"), given) if field else no_document()
    )


def _multi_match(context: Context, body: object) -> Query:
    known = ("query", "fields", "type", "operator", "minimum_should_match", "tie_breaker", "slop", "boost")
    given = check_options("multi_match", body, known)
    kind = given.get("type", "best_fields")
    if kind not in _TYPES:
        raise unsupported_error("type of multi_match", str(kind), _TYPES)
    search = _phrase_query if kind == "phrase" else _match_query
    found = []
    for name in strings_option("multi_match fields", given.get("fields", "*")):
        pattern, _, boost = name.partition("^")
        for field in _fields(context, pattern):
            query = search(context, field, given, "multi_match")
            found.append(apply_boost(query, {"boost": _boost(name, boost)}))
    if kind == "most_fields":
        return apply_boost(any_of(found), given)
    return apply_boost(best_of(found, number_option("tie_breaker", given.get("tie_breaker", 0.0))), given)


def _match_query(context: Context, field: Field, given: Mapping[str, Any], what: str) -> Query:
    operator = str(given.get("operator", "or")).lower()
    if operator not in _OPERATORS:
        raise unsupported_error(f"operator of {what}", operator, _OPERATORS)
    if field.kind is not FieldKind.TEXT:
        return value_query(context, field, _query_value(given, what), what)
    queries = []
    for tokens in context.analysis.readings(_query_text(given, what)):
        clauses = [Query.term_query(context.snapshot.schema, field.column, token) for token in tokens]
        least = minimum(given.get("minimum_should_match", 1), len(clauses))
        queries.append(any_of(clauses, len(clauses) if operator == "and" else max(least, 1)))
        context.marks.extend(Mark(field.path, (token,)) for token in tokens)
    return best_of(queries)


def _phrase_query(context: Context, field: Field, given: Mapping[str, Any], what: str) -> Query:
    slop = int_option(f"slop of {what}", given.get("slop", 0))
    if field.kind is not FieldKind.TEXT:
        return value_query(context, field, _query_value(given, what), what)
    schema = context.snapshot.schema
    queries = []
    for tokens in context.analysis.readings(_query_text(given, what)):
        if len(tokens) == 1:
            queries.append(Query.term_query(schema, field.column, tokens[0]))
        else:
            queries.append(Query.phrase_query(schema, field.column, list(tokens), slop))
        context.marks.append(Mark(field.path, tokens, slop))
    return best_of(queries)


def _fields(context: Context, pattern: str) -> list[Field]:
    if "*" in pattern:
        return context.text_fields(pattern)
    field = context.field(pattern, "multi_match")
    return [field] if field else []


def _boost(name: str, text: str) -> float:
    try:
        return number_option("boost", float(text or 1))
    except ValueError:
        raise UnsupportedQuery(f"multi_match field {name!r}: expected a number after ^") from None


def _query_value(given: Mapping[str, Any], what: str) -> str | int | float:
    value = given.get("query")
    if not isinstance(value, str | int | float):
        raise UnsupportedQuery(f"{what}: expected the text to look for as query, got {value!r}")
    return value


def _query_text(given: Mapping[str, Any], what: str) -> str:
    return as_text(_query_value(given, what))


TEXT_QUERIES: Mapping[str, Callable[[Context, Any], Query]] = MappingProxyType(
    {"match": _match, "match_phrase": _match_phrase, "multi_match": _multi_match}
)

_DEEPEST = 30


def compile_query(context: Context, query: object, depth: int = 0) -> Query:
    """Return the tantivy query for a query of the DSL.

    Raises:
        UnsupportedQuery: the query or an option is not supported, or not valid.
    """
    if depth > _DEEPEST:
        raise UnsupportedQuery(f"queries nested deeper than {_DEEPEST}; nest them less")
    name, body = single_entry("query", query)
    if name in _LEAVES:
        return _LEAVES[name](context, body)
    if name not in _COMPOUND:
        raise unsupported_error("query", name, (*_LEAVES, *_COMPOUND))
    return _COMPOUND[name](context, body, depth + 1)


def _bool(context: Context, body: object, depth: int) -> Query:
    given = check_options(
        "bool", body, ("must", "filter", "should", "must_not", "minimum_should_match", "boost")
    )
    clauses = {
        name: _clauses(context if name != "must_not" else context.without_marks(), given.get(name), depth)
        for name in ("must", "filter", "should", "must_not")
    }
    if not any(clauses.values()):
        return apply_boost(all_documents(), given)
    if not clauses["should"]:
        wanted = 0
    else:
        otherwise = 0 if clauses["must"] or clauses["filter"] else 1
        wanted = minimum(given.get("minimum_should_match", otherwise), len(clauses["should"]))
    if wanted > len(clauses["should"]):
        return no_document()
    occurs = [(tantivy.Occur.Must, clause) for clause in clauses["must"]]
    occurs += [(tantivy.Occur.Must, constant(clause, 0.0)) for clause in clauses["filter"]]
    if not occurs and not wanted:
        # Without required clauses tantivy would require one of the optional ones.
        occurs.append((tantivy.Occur.Must, constant(all_documents(), 0.0)))
    occurs += [(tantivy.Occur.Should, clause) for clause in clauses["should"]]
    occurs += [(tantivy.Occur.MustNot, clause) for clause in clauses["must_not"]]
    return apply_boost(Query.boolean_query(occurs, wanted or None), given)


def _clauses(context: Context, given: object, depth: int) -> list[Query]:
    if given is None:
        return []
    queries = given if isinstance(given, list) else [given]
    return [compile_query(context, query, depth) for query in queries]


def _constant_score(context: Context, body: object, depth: int) -> Query:
    given = check_options("constant_score", body, ("filter", "boost"))
    inner = compile_query(context, given.get("filter"), depth)
    return constant(inner, number_option("boost", given.get("boost", 1.0)))


def _dis_max(context: Context, body: object, depth: int) -> Query:
    given = check_options("dis_max", body, ("queries", "tie_breaker", "boost"))
    queries = _clauses(context, given.get("queries"), depth)
    if not queries:
        raise UnsupportedQuery("dis_max: queries is missing or empty")
    tie = number_option("tie_breaker", given.get("tie_breaker", 0.0))
    return apply_boost(Query.disjunction_max_query(queries, tie), given)


_LEAVES: Mapping[str, Callable[[Context, Any], Query]] = MappingProxyType({**TERM_QUERIES, **TEXT_QUERIES})
_COMPOUND: Mapping[str, Callable[[Context, Any, int], Query]] = MappingProxyType(
    {"bool": _bool, "constant_score": _constant_score, "dis_max": _dis_max}
)
