"""What callers are told of pages that are not as they asked: why one is unfolded, and where pages end."""

from collections.abc import Mapping
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.rerank.page.native import unfolded_page
from shinglefold.rerank.page.response import KEY


def with_reachable_total(page: JSON, body: Mapping[str, Any], parameters: Mapping[str, Any]) -> JSON:
    """Return a folded page whose ``hits.total`` is at most the number of hits that its pages show.

    Who did not ask for folding may ask for pages until ``hits.total`` hits came, and an empty page does not
    end that. While more pages follow and groups are not all counted, the total stays the engine's. A total
    that changes is kept in ``dedup.hits_total``.
    """
    told, total = page.get(KEY), page["hits"].get("total")
    if told is None or total is None or told["mode"] == "unfolded" or "search_after" in body:
        return page
    if told["groups_total"]["relation"] == "eq":
        shown = {"value": told["groups_total"]["value"], "relation": "eq"}
    elif told["stopped_by"] == "page_full":
        return page
    else:
        start = int(float(parameters.get("from", body.get("from", 0))))
        last = start + len(page["hits"]["hits"])
        # A page beyond the last one knows how many hits those before it have, but for ``native``.
        shown = {"value": last if told["mode"] == "native" else told["groups"], "relation": "gte"}
    counted = total if isinstance(total, int) else total["value"]
    if shown["value"] >= counted:
        return page
    hits = {**page["hits"], "total": shown["value"] if isinstance(total, int) else shown}
    return {**page, "hits": hits, KEY: {**told, "hits_total": total}}


def marked(answer: JSON, body: JSON | None, parameters: Mapping[str, Any], reason: str) -> JSON:
    """Return the engine's own page, in the shape of folded ones, with the reason in ``dedup``.

    Args:
        body: of the search; None if it is not known, as that in a template.
    """
    if "filter_path" in parameters:
        return {**answer, "dedup": {"mode": "unfolded", "mode_reason": reason}}
    bounds = {name: parameters[name] for name in ("from", "size") if name in parameters}
    known = None if body is None else {**body, **bounds}
    return answer if str((known or {}).get("size")) == "0" else unfolded_page(answer, known, "", reason)
