"""The queries that nominate candidates: documents that share supershingles."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from shinglefold.contracts.engine import JSON
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.model.values import UNDETERMINED, Fingerprint
from shinglefold.rerank.request.fold_options import Scope
from shinglefold.rerank.similar.query_document import QueryDocument


class CandidateQueries(NamedTuple):
    """The queries that find all candidates.

    ``quick`` finds them in any order; usually they are few. ``ordered`` adds 1 to the score for each value in
    common, so the most similar come first and a value that half of the index has does not dominate. With
    10⁶ documents it takes twice as long.
    """

    quick: JSON
    ordered: JSON

    @classmethod
    def sharing(
        cls, field: str, values: Sequence[str], least: int, filters: Sequence[Mapping[str, Any]]
    ) -> "CandidateQueries":
        """Return the queries for documents that have at least so many of these values in a field."""
        ordered: JSON = {
            "should": [{"constant_score": {"filter": {"term": {field: value}}}} for value in values],
            "minimum_should_match": least,
        }
        if filters:
            ordered["filter"] = list(filters)
        quick = {"filter": [{"terms": {field: list(values)}}, *filters]}
        return cls({"bool": ordered if least > 1 else quick}, {"bool": ordered})


def candidate_queries(
    asked: QueryDocument,
    scheme: Scheme,
    dedup: str,
    min_shared: int,
    *,
    seal: Seal | None = None,
    scopes: Sequence[Scope] = (),
    filters: Sequence[Mapping[str, Any]] = (),
) -> CandidateQueries | None:
    """Return the queries for the candidates of a document; None where it can have no copy.

    Equal texts have equal supershingles; those too short for a signature are found by their digest.

    Args:
        min_shared: supershingles that a candidate shares unless its text is equal; at least 1.
        filters: queries that a candidate must match, too.
    """
    words = list(dict.fromkeys(asked.print.supershingles))
    field = f"{dedup}.supershingles" if words else f"{dedup}.digest"
    values = words or stored_digests(asked.print, scheme, seal)
    if not values:
        return None
    narrowed = [*filters, *_same_values(asked, scopes)]
    # A document with fewer keywords than must be shared has copies only where the text is equal.
    return CandidateQueries.sharing(field, values, min(min_shared, len(words)) if words else 1, narrowed)


def stored_digests(made: Fingerprint, scheme: Scheme, seal: Seal | None) -> list[str]:
    """Return the digests that an equal text may have in the index.

    A stored digest includes the language, which documents may declare. Texts with a signature are nominated
    by supershingles in any language; for the others all languages are searched.
    """
    if not made.digest:
        return []
    languages = [made.lang]
    if not made.signature:
        languages += [ref.code for ref in scheme.languages] + [UNDETERMINED]
    each = [made if code == made.lang else replace(made, lang=code) for code in dict.fromkeys(languages)]
    if seal is not None:
        each = [seal.sealed(one) for one in each]
    return [one.stored_digest for one in each]


def decisive_fields(dedup: str, scopes: Sequence[Scope]) -> list[str]:
    """Return the doc values that a candidate is decided by, its group number among them."""
    parts = [f"{dedup}.digest", f"{dedup}.signature", f"{dedup}.group", *(scope.field for scope in scopes)]
    return list(dict.fromkeys(parts))


def in_total_order(body: Mapping[str, Any], tie: str, after: Sequence[Any] | None) -> JSON:
    """Return the body in total order, beginning after a candidate's sort values."""
    ordered = {**body, "sort": [{"_score": "desc"}, {tie: "asc"}]}
    return ordered | ({} if after is None else {"search_after": list(after)})


def _same_values(asked: QueryDocument, scopes: Sequence[Scope]) -> list[JSON]:
    """Return filters for the scopes, so that fewer candidates are read."""
    return [
        {"terms": {scope.field: list(values)}}
        for scope in scopes
        if scope.within is None and (values := asked.values.get(scope.field))
    ]
