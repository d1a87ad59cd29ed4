"""The query DSL: which queries there are, and the compound ones."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import tantivy

from shinglefold.engines.embedded.query.context import (
    Context,
    all_documents,
    boosted,
    constant,
    minimum,
    no_document,
)
from shinglefold.engines.embedded.query.term_queries import TERM_QUERIES
from shinglefold.engines.embedded.query.text_queries import TEXT_QUERIES
from shinglefold.engines.embedded.schema.body_options import checked, number, single, unsupported
from shinglefold.errors import UnsupportedQuery

Query = tantivy.Query
_DEEPEST = 30


def compile_query(context: Context, query: object, depth: int = 0) -> Query:
    """Return the tantivy query of a query of the DSL.

    Raises:
        UnsupportedQuery: there is no such query or option here, or it is not valid.
    """
    if depth > _DEEPEST:
        raise UnsupportedQuery(f"queries nested deeper than {_DEEPEST}; nest them less")
    name, body = single("query", query)
    if name in _LEAVES:
        return _LEAVES[name](context, body)
    if name not in _COMPOUND:
        raise unsupported("query", name, (*_LEAVES, *_COMPOUND))
    return _COMPOUND[name](context, body, depth + 1)


def _bool(context: Context, body: object, depth: int) -> Query:
    given = checked("bool", body, ("must", "filter", "should", "must_not", "minimum_should_match", "boost"))
    clauses = {
        name: _clauses(context if name != "must_not" else context.unmarked(), given.get(name), depth)
        for name in ("must", "filter", "should", "must_not")
    }
    if not any(clauses.values()):
        return boosted(all_documents(), given)
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
        # Without anything required tantivy would want one of the optional ones.
        occurs.append((tantivy.Occur.Must, constant(all_documents(), 0.0)))
    occurs += [(tantivy.Occur.Should, clause) for clause in clauses["should"]]
    occurs += [(tantivy.Occur.MustNot, clause) for clause in clauses["must_not"]]
    return boosted(Query.boolean_query(occurs, wanted or None), given)


def _clauses(context: Context, given: object, depth: int) -> list[Query]:
    if given is None:
        return []
    queries = given if isinstance(given, list) else [given]
    return [compile_query(context, query, depth) for query in queries]


def _constant_score(context: Context, body: object, depth: int) -> Query:
    given = checked("constant_score", body, ("filter", "boost"))
    inner = compile_query(context, given.get("filter"), depth)
    return constant(inner, number("boost", given.get("boost", 1.0)))


def _dis_max(context: Context, body: object, depth: int) -> Query:
    given = checked("dis_max", body, ("queries", "tie_breaker", "boost"))
    queries = _clauses(context, given.get("queries"), depth)
    if not queries:
        raise UnsupportedQuery("dis_max: queries is missing or empty")
    tie = number("tie_breaker", given.get("tie_breaker", 0.0))
    return boosted(Query.disjunction_max_query(queries, tie), given)


_LEAVES: Mapping[str, Callable[[Context, Any], Query]] = MappingProxyType({**TERM_QUERIES, **TEXT_QUERIES})
_COMPOUND: Mapping[str, Callable[[Context, Any, int], Query]] = MappingProxyType(
    {"bool": _bool, "constant_score": _constant_score, "dis_max": _dis_max}
)
