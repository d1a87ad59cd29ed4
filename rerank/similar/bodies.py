"""The searches by which copies are found: who shares supershingles, those with most of them first."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shinglefold.contracts import JSON
from shinglefold.model import UNDETERMINED, Fingerprint
from shinglefold.rerank.options import Scope
from shinglefold.rerank.similar.asked import Asked
from shinglefold.scheme import Scheme
from shinglefold.seal import Seal


def candidates_query(
    asked: Asked,
    scheme: Scheme,
    dedup: str,
    min_shared: int,
    *,
    seal: Seal | None = None,
    scopes: Sequence[Scope] = (),
    filters: Sequence[Mapping[str, Any]] = (),
) -> JSON | None:
    """Return the query that finds all that may be copies, None where nothing can be.

    A candidate scores 1 a supershingle in common, and more than for all of them where its text is equal, so
    that what is most alike comes first and one keyword that half of the index has brings nothing up.

    Args:
        min_shared: supershingles a candidate shares, unless its text is equal; at least 1.
        filters: what a candidate must match, too.
    """
    words = list(dict.fromkeys(asked.print.supershingles))
    ways: list[JSON] = [
        {"constant_score": {"filter": {"term": {f"{dedup}.supershingles": word}}}} for word in words
    ]
    texts = stored_digests(asked.print, scheme, seal)
    if min_shared > 1 and ways:
        # With too few keywords engines differ in what they find.
        enough = len(ways) >= min_shared
        ways = [{"bool": {"should": ways, "minimum_should_match": min_shared}}] if enough else []
    if texts:
        equal = {"terms": {f"{dedup}.digest": texts}}
        ways.append({"constant_score": {"filter": equal, "boost": _above_all(scheme)}})
    if not ways:
        return None
    query: JSON = {"bool": {"should": ways, "minimum_should_match": 1}}
    if narrowed := [*filters, *_same_values(asked, scopes)]:
        query["bool"]["filter"] = narrowed
    return query


def shared_of(score: float, scheme: Scheme) -> tuple[int, bool]:
    """Return how many supershingles a candidate shares, and whether its text is equal, by its score."""
    count, above = round(score), _above_all(scheme)
    return (count - above, True) if count >= above else (count, False)


def stored_digests(made: Fingerprint, scheme: Scheme, seal: Seal | None) -> list[str]:
    """Return the digests that an equal text may have in the index.

    A stored digest names the language, which documents may declare. Texts with a signature are nominated by
    their supershingles whatever they declare; the others are looked for under every language.
    """
    if not made.digest:
        return []
    languages = [made.lang]
    if not made.signature:
        languages += [ref.code for ref in scheme.languages] + [UNDETERMINED]
    each = [replace(made, lang=code) for code in dict.fromkeys(languages)]
    if seal is not None:
        each = [seal.sealed(one) for one in each]
    return [one.to_field()["digest"] for one in each]


def window(
    query: Mapping[str, Any], dedup: str, size: int, scopes: Sequence[Scope], *, numbers: bool
) -> JSON:
    """Return the body that reads candidates in the engine's order of their scores.

    Args:
        numbers: whether hits tell the number of their last change.
    """
    wanted = [f"{dedup}.digest", f"{dedup}.signature", f"{dedup}.group", *(scope.field for scope in scopes)]
    body: JSON = {
        "query": query,
        "size": size,
        "_source": False,
        "docvalue_fields": list(dict.fromkeys(wanted)),
        "track_total_hits": False,
    }
    return body | ({"seq_no_primary_term": True} if numbers else {})


def in_total_order(body: JSON, tie: str, after: Sequence[Any] | None) -> JSON:
    """Return the body with ties of the scores settled, beginning after a candidate's sort values."""
    ordered = {**body, "sort": [{"_score": "desc"}, {tie: "asc"}]}
    return ordered | ({} if after is None else {"search_after": list(after)})


def _same_values(asked: Asked, scopes: Sequence[Scope]) -> list[JSON]:
    """Return filters for what scopes ask anyway, so that fewer candidates are read."""
    return [
        {"terms": {scope.field: list(values)}}
        for scope in scopes
        if scope.within is None and (values := asked.values.get(scope.field))
    ]


def _above_all(scheme: Scheme) -> int:
    return scheme.sketch.groups + 1
