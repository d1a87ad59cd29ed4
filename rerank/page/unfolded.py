"""The engine's own page where its hits can't be folded, in the shape of folded pages."""

from collections.abc import Mapping
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.rerank.page.partial_answer import missing
from shinglefold.rerank.page.response import KEY
from shinglefold.rerank.request.arguments import DUPLICATES
from shinglefold.rerank.request.bodies import page_bounds


def unfolded_page(answer: JSON, body: Mapping[str, Any], scheme: str, reason: str) -> JSON:
    """Return an engine's answer with each hit as a group of its own, and the reason in ``dedup``.

    A program that reads folded pages can read this one: no key is missing.
    """
    hits = [_alone(hit) for hit in answer["hits"]["hits"]]
    start, size = page_bounds(body)
    ended = len(hits) < size
    counters = {
        "scheme": scheme,
        "mode": "unfolded",
        "mode_reason": reason,
        "window": None,
        "stopped_by": "end_of_results" if ended else "page_full",
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
    if lacks := missing(answer):
        counters |= {"stopped_by": "partial_answer" if ended else "page_full", "partial": lacks}
    return {**answer, "hits": {**answer["hits"], "hits": hits}, KEY: counters}


def _alone(hit: JSON) -> JSON:
    own = {"total": {"value": 1, "relation": "gte"}, "max_score": hit.get("_score"), "hits": [hit]}
    return {**hit, "inner_hits": {**hit.get("inner_hits", {}), DUPLICATES: {"hits": own}}}
