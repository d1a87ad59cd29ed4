"""The body of a search with another wish about folding."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shinglefold.gateway.rest import RestRequest, read_lines, read_value, write_value


def with_folding(operation: str, request: RestRequest, *, fold: bool | None) -> RestRequest:
    """Return a search that asks for the engine's own answer (False), or says nothing about folding (None)."""
    try:
        if operation in ("search", "search_template"):
            return replace(request, body=_changed(read_value(request.body) or {}, fold))
        lines = [read_value(line) for line in read_lines(request.body or b"")]
    except (ValueError, RecursionError):
        return request
    changed = [_changed(line, fold) if place % 2 else line for place, line in enumerate(lines)]
    return replace(request, body=b"".join(write_value(line) + b"\n" for line in changed))


def _changed(body: Any, fold: bool | None) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(body, Mapping):
        return body
    ext = body.get("ext")
    if ext and not isinstance(ext, Mapping):
        # The engine refuses it in its own words.
        return body
    others = {name: value for name, value in (ext or {}).items() if name != "dedup"}
    wished = others if fold is None else {**others, "dedup": fold}
    rest = {name: value for name, value in body.items() if name != "ext"}
    return {**rest, "ext": wished} if wished else rest
