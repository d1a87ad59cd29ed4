"""Change the folding options in the body of a search."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.gateway.rest import (
    RestRequest,
    ends_with_newline,
    names_twice,
    read_lines,
    read_object,
    read_searches,
    write_value,
)
from shinglefold.gateway.search_answers import marked


def with_folding(operation: str, request: RestRequest, *, fold: bool | None) -> RestRequest:
    """Return a search with ``dedup`` set to false (False), or without folding options (None)."""
    if any(map(names_twice, read_lines(request.body or b""))):
        # The engine refuses it, and what is made of it here would not show why.
        return request
    try:
        if operation in ("search", "search_template"):
            body = read_object(request.body)
            wished = None if body is None else _changed(body, fold)
            return request if wished is body else replace(request, body=wished)
        searches = read_searches(request.body or b"")
    except (ValueError, RecursionError):
        return request
    changed = [(header, _changed(body, fold)) for header, body in searches]
    same = all(one[1] is other[1] for one, other in zip(searches, changed, strict=True))
    if same or not ends_with_newline(request.body):
        return request
    lines = (write_value(line) + b"\n" for search in changed for line in search)
    return replace(request, body=b"".join(lines))


def mark_unfolded(operation: str, request: RestRequest, answer: JSON, reason: str) -> JSON:
    """Return the engine's own answer with the reason in ``dedup``, in the shape of folded pages."""
    is_template = operation.endswith("template")
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
        marked(page, None if is_template else body, request.parameters, reason)
        if isinstance(page, dict) and "hits" in page.get("hits", ())
        else page
        for page, body in zip_longest(pages, bodies[: len(pages)])
    ]
    return {**answer, "responses": made} if "responses" in answer else made[0]


def _changed(body: Any, fold: bool | None) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(body, Mapping):
        return body
    ext = body.get("ext", {})
    if not isinstance(ext, Mapping) or (fold is None and "dedup" not in ext):
        # The engine refuses what is no object in its own words.
        return body
    others = {name: value for name, value in ext.items() if name != "dedup"}
    wished = others if fold is None else {**others, "dedup": fold}
    rest = {name: value for name, value in body.items() if name != "ext"}
    return {**rest, "ext": wished} if wished else rest
