"""Search templates: rendered by the engine, so that the searches in them can be folded."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.gateway.rest import RestRequest, Steps, path_of, send, write_value

#: Options of a template that are those of the search in it.
_OF_SEARCH = ("explain", "profile")
#: Statuses of a user who may not render templates, and may search by them.
_DENIED = (401, 403)


@dataclass(frozen=True, slots=True)
class Template:
    """A search by a template.

    Attributes:
        bare: the template as engines take it, without ``ext``.
        asked: whether it has an ``ext.dedup`` of its own.
        search: the search in it, with that ``ext.dedup``; None if it was not rendered.
        why: why it could not be rendered.
        error: the engine's refusal of it, as of one of several searches; None if it may still search by it.
    """

    bare: JSON
    asked: bool
    search: JSON | None = None
    why: str = ""
    error: JSON | None = None


def names_options(body: Mapping[str, Any]) -> bool:
    """Return whether a template may say how its search is folded, as far as the request shows."""
    return "ext" in body or "dedup" in str(body.get("source", ""))


def render(request: RestRequest, body: JSON) -> Steps[Template]:
    """Return a template with the search in it, as the engine renders it for the caller of a request."""
    own = body.get("ext")
    asked = isinstance(own, Mapping) and "dedup" in own
    bare = {name: value for name, value in body.items() if name != "ext"} if asked else body
    if isinstance(own, Mapping) and asked and own.keys() - {"dedup"}:
        bare["ext"] = {name: value for name, value in own.items() if name != "dedup"}
    headers = {
        name: one.replace("x-ndjson", "json") if name.lower() == "content-type" else one
        for name, one in request.headers.items()
    }
    wanted = {name: bare[name] for name in ("source", "id", "params") if name in bare}
    rendering = replace(
        request, method="POST", path=path_of("_render", "template"), parameters={}, headers=headers
    )
    answer = yield from send(replace(rendering, body=write_value(wanted)))
    found = None if answer.failed else answer.body.get("template_output")
    if not isinstance(found, dict):
        told = answer.failed and answer.status not in _DENIED and isinstance(answer.body, Mapping)
        error = {**answer.body, "status": answer.status} if told else None
        why = f"the engine does not render the template (status {answer.status})"
        return Template(bare, asked, why=why, error=error)
    search = found | {name: bare[name] for name in _OF_SEARCH if name in bare}
    if asked and isinstance(own, Mapping):
        search["ext"] = {**(search.get("ext") or {}), "dedup": own["dedup"]}
    return Template(bare, asked, search)
