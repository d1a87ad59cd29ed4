"""What the mappings of an index must offer for fingerprints, and what they lack."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from shinglefold.contracts import JSON
from shinglefold.ingest.mapping import recipe_mappings
from shinglefold.ingest.paths import parts
from shinglefold.recipe import META_KEY, PASSAGES, Recipe

#: For each part of a fingerprint the types it may have and what must not be switched off.
_NEEDED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "scheme": (("keyword",), ("index", "doc_values")),
        "lang": (("keyword",), ("doc_values",)),
        "shingles": (("integer", "long"), ("doc_values",)),
        "digest": (("keyword",), ("doc_values",)),
        "supershingles": (("keyword",), ("index",)),
        "signature": (("binary",), ("doc_values",)),
    }
)
#: The same for the number of the group.
_NEEDED_FOR_GROUPS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "group": (("long",), ("index", "doc_values")),
        "leader": (("boolean",), ("index", "doc_values")),
    }
)
_OFF_BY_DEFAULT = (("binary", "doc_values"),)


@dataclass(frozen=True, slots=True)
class Layout:
    """The mappings of an index beside those its scheme asks for.

    ``lacking``: fields that can be added in place, with their definitions; ``wrong``: what can't be mended in
    place, in words; ``stored``: the scheme in ``_meta``, None where there is none.
    """

    lacking: Mapping[str, JSON]
    wrong: tuple[str, ...]
    stored: Mapping[str, Any] | None


def layout(found: Mapping[str, Any], recipe: Recipe) -> Layout:
    """Compare the mappings of an index with what a recipe needs.

    Args:
        found: the mappings.
        recipe: what it is to be made with.
    """
    field = recipe.field
    wanted = properties_at(recipe_mappings(recipe), field)
    there = properties_at(found, field)
    stored = (found.get("_meta") or {}).get(META_KEY)
    return Layout(
        {f"{field}.{name}": definition for name, definition in wanted.items() if name not in there},
        tuple(_wrong(there, recipe)),
        stored if isinstance(stored, Mapping) else None,
    )


def properties_at(found: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    """Return the definitions below a dotted path of mappings; {} where there are none."""
    node: Any = found
    for name in parts(field):
        node = (node.get("properties") or {}).get(name)
        if not isinstance(node, Mapping):
            return {}
    return node.get("properties") or {}


def _wrong(there: Mapping[str, Any], recipe: Recipe) -> Iterator[str]:
    field = recipe.field
    wanted = {**_NEEDED, **(_NEEDED_FOR_GROUPS if recipe.groups else {})}
    if recipe.passages:
        wanted[PASSAGES] = (("keyword",), ("index",))
    for name, (types, needed) in wanted.items():
        definition = there.get(name)
        if definition is None:
            continue
        kind = definition.get("type", "object")
        if kind not in types:
            yield f"{field}.{name} is mapped as {kind}, {types[0]} is needed"
            continue
        for option in needed:
            if not definition.get(option, (kind, option) not in _OFF_BY_DEFAULT):
                yield f"{field}.{name} is mapped without {option}"
