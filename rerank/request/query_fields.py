"""The fields that a query names, so that mistyped ones are told: a server finds nothing by them, silently."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

#: Queries of the shape {QUERY: {FIELD: …}}.
_BY_FIELD = frozenset(
    {
        "term", "terms", "terms_set", "match", "match_phrase", "match_phrase_prefix", "match_bool_prefix",
        "prefix", "wildcard", "regexp", "fuzzy", "range", "intervals", "span_term",
    }
)  # fmt: skip
#: What may stand beside the field there.
_BESIDES = frozenset({"boost", "_name"})
#: Queries that name several fields, and the options that name one.
_SEVERAL = frozenset(
    {"multi_match", "query_string", "simple_query_string", "combined_fields", "more_like_this"}
)
_ONE = ("field", "default_field")


def query_fields(query: object) -> Iterator[str]:
    """Yield the names of the fields in a query; kinds of queries that are unknown here are passed over."""
    if isinstance(query, Sequence) and not isinstance(query, str):
        for one in query:
            yield from query_fields(one)
    elif isinstance(query, Mapping):
        for kind, options in query.items():
            yield from _named(str(kind), options)


def _named(kind: str, options: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    if kind in _BY_FIELD and isinstance(options, Mapping):
        yield from (str(name) for name in options if name not in _BESIDES)
    elif kind == "exists" and isinstance(options, Mapping) and isinstance(options.get("field"), str):
        yield options["field"]
    elif kind in _SEVERAL and isinstance(options, Mapping):
        given = options.get("fields", ())
        several = [given] if isinstance(given, str) else given if isinstance(given, Sequence) else ()
        single = [options[name] for name in _ONE if isinstance(options.get(name), str)]
        yield from (str(name).partition("^")[0] for name in (*several, *single))
    elif isinstance(options, Mapping | list | tuple):
        # A query within one: bool, constant_score, nested, function_score …
        yield from query_fields(options)
