"""What searches say about folding, and the warnings about pages that differ from the request.

Pages have the reason why they are unfolded, and a total that tells where they end.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.engines.http.responses import HITS, read_answer, search_answer
from shinglefold.gateway.rest import (
    ENGINE,
    RestRequest,
    ends_with_newline,
    names_twice,
    read_lines,
    read_object,
    read_searches,
    write_value,
)
from shinglefold.rerank.page.native import unfolded_page
from shinglefold.rerank.page.response import KEY


def with_reachable_total(page: JSON, body: Mapping[str, Any], parameters: Mapping[str, Any]) -> JSON:
    """Return a folded page whose ``hits.total`` is at most the number of hits that its pages show.

    A program that did not ask for folding may request pages until it has ``hits.total`` hits, even after an
    empty page. While more pages follow and groups are not all counted, the total stays the engine's. A total
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


def unfolded_answer(answer: JSON, body: JSON | None, parameters: Mapping[str, Any], reason: str) -> JSON:
    """Return the engine's own page, in the shape of folded ones, with the reason in ``dedup``.

    Args:
        body: of the search; None if it is not known, as that in a template.

    Raises:
        EngineUnavailable: it has no hits, so that something else answers than the engine.
    """
    filtered = "filter_path" in parameters
    answer = read_answer(answer, ENGINE, HITS, dict if filtered else search_answer)
    if filtered:
        return {**answer, "dedup": {"mode": "unfolded", "mode_reason": reason}}
    bounds = {name: parameters[name] for name in ("from", "size") if name in parameters}
    known = None if body is None else {**body, **bounds}
    return answer if str((known or {}).get("size")) == "0" else unfolded_page(answer, known, "", reason)


def with_body(request: RestRequest) -> RestRequest:
    """Return a request whose body is in the parameter ``source`` as one with a body.

    The parameter stays where the engine refuses it, or only the engine can read it.
    """
    given = request.parameters
    if request.body or "source" not in given or "json" not in str(given.get("source_content_type")):
        return request
    rest = {name: given[name] for name in given if name not in ("source", "source_content_type")}
    kept = {name: value for name, value in request.headers.items() if name.lower() != "content-type"}
    headers = {**kept, "content-type": str(given["source_content_type"])}
    return replace(request, parameters=rest, headers=headers, body=str(given["source"]))


def with_folding(operation: str, given: RestRequest, *, fold: bool | None) -> RestRequest:
    """Return a search with ``dedup`` set to false (False), or without folding options (None)."""
    request = with_body(given)
    if "source" in request.parameters or any(map(names_twice, read_lines(request.body or b""))):
        # The engine refuses duplicate keys with the reason, which a changed body would hide.
        return given
    try:
        if operation in ("search", "search_template"):
            body = read_object(request.body)
            wished = None if body is None else with_dedup(body, fold)
            return given if wished is body else replace(request, body=wished)
        searches = read_searches(request.body or b"")
    except (ValueError, RecursionError):
        return given
    changed = [(header, with_dedup(body, fold)) for header, body in searches]
    same = all(one[1] is other[1] for one, other in zip(searches, changed, strict=True))
    if same or not ends_with_newline(request.body):
        return given
    lines = (write_value(line) + b"\n" for search in changed for line in search)
    return replace(request, body=b"".join(lines))


def mark_unfolded(operation: str, request: RestRequest, answer: JSON, reason: str) -> JSON:
    """Return the engine's own answer with the reason in ``dedup``, in the shape of folded pages."""
    request, is_template = with_body(request), operation.endswith("template")
    try:
        bodies = (
            [read_object(request.body)]
            if operation in ("search", "search_template")
            else [body for _, body in read_searches(request.body or b"")]
        )
    except (ValueError, RecursionError):
        bodies = []
    pages = answer.get("responses", [answer])
    made = [
        unfolded_answer(page, None if is_template else body, request.parameters, reason)
        if isinstance(page, dict) and "hits" in page.get("hits", ())
        else page
        for page, body in zip_longest(pages, bodies[: len(pages)])
    ]
    return {**answer, "responses": made} if "responses" in answer else made[0]


def with_dedup(body: Any, fold: bool | None = None) -> Any:  # noqa: ANN401 - JSON
    """Return a search with ``ext.dedup`` set to a flag, or without it, and nothing else changed."""
    if not isinstance(body, Mapping):
        return body
    ext = body.get("ext", {})
    if not isinstance(ext, Mapping) or (fold is None and "dedup" not in ext):
        # The engine itself refuses a body that is no object.
        return body
    others = {name: value for name, value in ext.items() if name != "dedup"}
    wished = others if fold is None else {**others, "dedup": fold}
    rest = {name: value for name, value in body.items() if name != "ext"}
    return {**rest, "ext": wished} if wished else rest
