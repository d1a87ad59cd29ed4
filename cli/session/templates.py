"""What the templates of a server say of an index to come, which no guess of ours is to overrule."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from shinglefold.contracts.engine import JSON, Engine, Templates
from shinglefold.errors import PermissionDenied


@dataclass(frozen=True, slots=True)
class Templated:
    """``settings`` by flat names, and ``properties``: fields with their mappings."""

    settings: JSON = field(default_factory=dict)
    properties: JSON = field(default_factory=dict)

    def unsaid(self, properties: Mapping[str, Any]) -> JSON:
        """Return mappings of fields but for those that are said here."""
        return {name: node for name, node in properties.items() if name not in self.properties}


def templated(engine: Engine, index: str) -> Templated:
    """Return what an index of this name is given; nothing where the engine has no templates."""
    if engine.templates is None:
        return Templated()
    try:
        made = list(_applied(engine.templates, index))
    except PermissionDenied:
        # Who may not see templates can't be told what they say.
        return Templated()
    settings: JSON = {}
    properties: JSON = {}
    for one in made:
        settings |= dict(_flat(one.get("settings") or {}))
        properties |= (one.get("mappings") or {}).get("properties") or {}
    return Templated(settings, properties)


def _applied(templates: Templates, index: str) -> Iterator[Mapping[str, Any]]:
    """Yield what applies: one index template, or where there is none all legacy ones, the last word last."""
    fitting = _fitting(templates.index_templates(), index)
    if fitting:
        yield templates.resolved_template(max(fitting, key=lambda name: fitting[name].get("priority") or 0))
        return
    yield from sorted(
        _fitting(templates.legacy_templates(), index).values(), key=lambda body: body.get("order") or 0
    )


def _fitting(bodies: Mapping[str, JSON], index: str) -> dict[str, JSON]:
    return {
        name: body
        for name, body in bodies.items()
        if any(fnmatchcase(index, pattern) for pattern in body.get("index_patterns", ()))
    }


def _flat(settings: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        below = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            yield from _flat(value, below)
        else:
            yield below if below.startswith("index.") else f"index.{below}", value
