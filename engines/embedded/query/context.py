"""The context of compiling a query, and the basic tantivy queries."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import tantivy

from shinglefold.engines.embedded.schema.analysis import Analysis
from shinglefold.engines.embedded.schema.body_options import number_option, single_entry
from shinglefold.engines.embedded.schema.field_types import Field, FieldKind
from shinglefold.engines.embedded.store.snapshots import Snapshot
from shinglefold.errors import UnsupportedQuery


@dataclass(frozen=True, slots=True)
class Mark:
    """Tokens of a query to highlight in a field: a phrase with up to ``slop`` other tokens in it."""

    path: str
    tokens: tuple[str, ...]
    slop: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """The index a query is compiled for; the query adds to ``marks`` what is to be highlighted."""

    snapshot: Snapshot
    analysis: Analysis
    marks: list[Mark] = field(default_factory=list)

    def unmarked(self) -> "Context":
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
            own
            for path, own in sorted(fields.items())
            if own.kind in (FieldKind.TEXT, FieldKind.KEYWORD)
            and own.column
            and path != "_id"
            and fnmatchcase(path, pattern)
        ]


def leaf(what: str, body: object, main: str) -> tuple[str, Mapping[str, Any]]:
    """Return field and options of a query on a field; ``{field: value}`` stands for the option ``main``."""
    path, given = single_entry(what, body)
    return path, given if isinstance(given, Mapping) else {main: given}


def all_documents() -> tantivy.Query:
    """Return the query that matches everything, with score 1."""
    return tantivy.Query.all_query()


def no_document() -> tantivy.Query:
    """Return the query that matches nothing."""
    return tantivy.Query.empty_query()


def constant(query: tantivy.Query, score: float = 1.0) -> tantivy.Query:
    """Return the query with a constant score."""
    return tantivy.Query.const_score_query(query, score)


def boosted(query: tantivy.Query, given: Mapping[str, Any]) -> tantivy.Query:
    """Return the query with the boost in its options."""
    boost = number_option("boost", given.get("boost", 1.0))
    return query if boost == 1.0 else tantivy.Query.boost_query(query, boost)


def any_of(queries: list[tantivy.Query], wanted: int = 1) -> tantivy.Query:
    """Return the query that sums the scores of those that match, of which at least ``wanted`` must."""
    if not queries or wanted > len(queries):
        return no_document()
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries], max(wanted, 1))


def best_of(queries: list[tantivy.Query], tie: float = 0.0) -> tantivy.Query:
    """Return the query with the best score of those that match, plus ``tie`` times the others."""
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.disjunction_max_query(queries, tie) if queries else no_document()


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
