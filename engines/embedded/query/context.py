"""What compiling a query needs to know, and the few tantivy queries everything is made of."""

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
    """Tokens of a query to highlight in a field: side by side, or up to ``slop`` places apart."""

    path: str
    tokens: tuple[str, ...]
    slop: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """The index a query is compiled for; ``marks`` gathers what it makes worth highlighting."""

    snapshot: Snapshot
    analysis: Analysis
    marks: list[Mark] = field(default_factory=list)

    def unmarked(self) -> "Context":
        """Return a context whose marks are nobody's: what must not match is not highlighted."""
        return replace(self, marks=[])

    def field(self, path: str, what: str) -> Field | None:
        """Return a field that can be searched, or None where the mappings do not know it.

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
        """Return the text and keyword fields a pattern with ``*`` names."""
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
    """Return field and options of a query on one field; its short form ``{field: value}`` means ``main``."""
    path, given = single_entry(what, body)
    return path, given if isinstance(given, Mapping) else {main: given}


def all_documents() -> tantivy.Query:
    """Return the query that finds everything, with score 1."""
    return tantivy.Query.all_query()


def no_document() -> tantivy.Query:
    """Return the query that finds nothing."""
    return tantivy.Query.empty_query()


def constant(query: tantivy.Query, score: float = 1.0) -> tantivy.Query:
    """Return the query with one score for all it finds."""
    return tantivy.Query.const_score_query(query, score)


def boosted(query: tantivy.Query, given: Mapping[str, Any]) -> tantivy.Query:
    """Return the query with the boost its options ask for."""
    boost = number_option("boost", given.get("boost", 1.0))
    return query if boost == 1.0 else tantivy.Query.boost_query(query, boost)


def any_of(queries: list[tantivy.Query], wanted: int = 1) -> tantivy.Query:
    """Return the query that adds up the scores of those found, of which ``wanted`` must be."""
    if not queries or wanted > len(queries):
        return no_document()
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries], max(wanted, 1))


def best_of(queries: list[tantivy.Query], tie: float = 0.0) -> tantivy.Query:
    """Return the query whose score is the best of those found, plus ``tie`` times the others."""
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.disjunction_max_query(queries, tie) if queries else no_document()


def minimum(given: object, clauses: int) -> int:
    """Return how many of some optional clauses must match; more than there are means none can.

    Raises:
        UnsupportedQuery: it is neither a number nor a percentage.
    """
    text = str(given).strip()
    if isinstance(given, bool) or not re.fullmatch(r"-?\d{1,6}%?", text):
        raise UnsupportedQuery(
            f'minimum_should_match: expected a number or a percentage ("75%"), got {given!r}'
        )
    # Rounded towards zero, as Lucene does, also for what may be missing.
    wanted = int(clauses * int(text[:-1]) / 100) if text.endswith("%") else int(text)
    return max(wanted + clauses if text.startswith("-") else wanted, 0)
