"""The engine's own page where its hits can't be folded, in the shape of folded pages."""

from collections.abc import Mapping
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.rerank.hits import CUT, lost_hits, missing
from shinglefold.rerank.page.response import KEY
from shinglefold.rerank.page.window import StoppedBy
from shinglefold.rerank.request.arguments import DUPLICATES
from shinglefold.rerank.request.bodies import limit_of, narrowable, rank_window


def unfolded_page(answer: JSON, body: Mapping[str, Any] | None, scheme: str, reason: str) -> JSON:
    """Return an engine's answer with each hit as a group of its own, and the reason in ``dedup``.

    A program that reads folded pages can read this one: no key is missing.

    Args:
        body: of the request, with ``from`` and ``size`` of its URL; None if it is not known.
    """
    hits = [_alone(hit) for hit in answer["hits"]["hits"]]
    start, size = 0, len(hits)
    if body is not None:
        # The engine took them, also as texts and fractions.
        start, size = int(float(body.get("from", 0))), int(float(body.get("size", 10)))
    cut = 0 if body is None else _cut(answer, body, start, size)
    lacks = missing(answer) | ({CUT: cut} if cut else {})
    counters = {
        "scheme": scheme,
        "mode": "unfolded",
        "mode_reason": reason,
        "window": None,
        "stopped_by": _stopped_by(answer, body, start, size, lacks),
        "order": "engine",
        "groups": len(hits),
        # How many groups there are is unknown: all hits may be near-duplicates.
        "groups_total": {"value": min(1, start + len(hits)), "relation": "gte"},
        "folded": 0,
        "unsigned": None,
        "unreadable": None,
        "other_schemes": {},
        "languages": {},
        "vanished": 0,
    }
    if lacks:
        counters["partial"] = lacks
    return {**answer, "hits": {**answer["hits"], "hits": hits}, KEY: counters}


def _stopped_by(
    answer: JSON, body: Mapping[str, Any] | None, start: int, size: int, lacks: JSON
) -> StoppedBy:
    """Return why a page has no more hits; a page of unknown size is full, unless it shows all hits."""
    count, total = len(answer["hits"]["hits"]), answer["hits"].get("total")
    if body is None and total == {"value": count, "relation": "eq"} and not lacks:
        return "end_of_results"
    if count >= size:
        return "page_full"
    if lacks:
        return "partial_answer"
    if body is not None and limit_of(body) == "k":
        return "k_reached"
    window = None if body is None else rank_window(body)
    return "end_of_results" if window is None or start + count < window else "rank_window_reached"


def _cut(answer: JSON, body: Mapping[str, Any], start: int, size: int) -> int:
    """Return the least number of hits that were counted, and are missing."""
    if "search_after" in body or "collapse" in body or not narrowable(body):
        # Totals do not bound the hits.
        return 0
    return lost_hits(answer, size, answer["hits"].get("total"), start)


def _alone(hit: JSON) -> JSON:
    own = {"total": {"value": 1, "relation": "gte"}, "max_score": hit.get("_score"), "hits": [hit]}
    return {**hit, "inner_hits": {**hit.get("inner_hits", {}), DUPLICATES: {"hits": own}}}
