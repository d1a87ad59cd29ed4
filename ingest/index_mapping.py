"""The mapping of the fingerprint field, and checks that an index and its documents fit it."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.errors import ConfigError, IndexExists, PermissionDenied, suggest
from shinglefold.model.recipe import (
    FIELD,
    META_KEY,
    PASSAGES,
    TEXTS,
    Recipe,
    comparable,
    has_recipe,
    missing_recipe,
)
from shinglefold.model.scheme import Scheme, checked_scheme
from shinglefold.options.validation import check_type

_REMEDY = (
    "Change the index (setup, then backfill), use what it was made with, or index all documents again into a "
    "new one."
)
#: Passages are only searched. Norms make ``exists`` queries possible, as for supershingles.
_PASSAGES = {"type": "keyword", "doc_values": False, "norms": True}


#: Types of usual fields; dynamic mapping would map keywords as running text.
USUAL_PROPERTIES: Mapping[str, JSON] = MappingProxyType(
    {
        # Dynamic mapping would make it a number, and refuse the first id with letters.
        "id": {"type": "keyword"},
        "title": {"type": "text"},
        "body": {"type": "text"},
        "url": {"type": "keyword"},
        "host": {"type": "keyword"},
        "lang": {"type": "keyword"},
        "format": {"type": "keyword"},
    }
)


def default_recipe(scheme: Scheme, field: str = FIELD, fields: Sequence[str] = TEXTS) -> Recipe:
    """Return the recipe of the default pipeline.

    Args:
        field: the fingerprint field; may be a dotted path.
        fields: the fields whose texts are fingerprinted.
    """
    # Imported here: statistics and deletions read mappings, and make no pipeline.
    from shinglefold.ingest.pipeline.pipeline import default_definition

    definition = comparable(default_definition(field, fields))
    return Recipe(checked_scheme(scheme), definition, field, tuple(fields))


def mappings(scheme: Scheme, field: str = FIELD, fields: Sequence[str] = TEXTS) -> JSON:
    """Return the mappings of an index for the default pipeline; see ``default_recipe``."""
    return recipe_mappings(default_recipe(scheme, field, fields))


def recipe_mappings(recipe: Recipe) -> JSON:
    """Return the mappings of an index with fingerprints: their field, and the recipe in ``_meta``."""
    check_type("recipe", recipe, Recipe, "pipeline.recipe()")
    properties: JSON = {
        "scheme": {"type": "keyword"},
        # Kept in the source only: an index would let every query without fields find it by its code.
        "lang": {"type": "keyword", "index": False, "doc_values": False},
        # Read for windows of hits, never searched: doc values without an index.
        "shingles": {"type": "integer", "index": False},
        "signature": {"type": "binary", "doc_values": True},
        "digest": {"type": "keyword"},
        # Searched, rarely read: an index without doc values (the cost of each:
        # bench/runs/2026-11-26-storage.json). With neither doc values nor norms, servers would record for
        # each value that the field exists.
        "supershingles": {"type": "keyword", "doc_values": False, "norms": True},
    }
    if recipe.passages:
        properties[PASSAGES] = dict(_PASSAGES)
    if recipe.groups:
        # Engines collapse by one number per document faster than by a keyword.
        properties["group"] = {"type": "long"}
        properties["leader"] = {"type": "boolean"}
    return {"_meta": {META_KEY: recipe.to_json()}, **nest(recipe.field, properties)}


def nest(field: str, properties: JSON) -> JSON:
    """Return mappings with properties below a field, whose name may be a dotted path."""
    for name in reversed(field.split(".")):
        properties = {name: {"properties": properties}}
    return {"properties": properties}


def usual_properties(recipe: Recipe) -> JSON:
    """Return the types of usual fields, and of the text fields of a recipe."""
    texts = {name: {"type": "text"} for name in recipe.fields if "." not in name}
    return {**texts, **USUAL_PROPERTIES}


def new_mappings(recipe: Recipe, properties: Mapping[str, Any] | None = None) -> JSON:
    """Return the mappings of a new index, with further fields."""
    mappings = recipe_mappings(recipe)
    mappings["properties"] = {**(properties or {}), **mappings["properties"]}
    return mappings


def ensure_index(
    engine: Engine,
    index: str,
    recipe: Recipe,
    *,
    properties: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> bool:
    """Create the index, or check that the existing one was made with this recipe.

    Args:
        properties: mappings of further fields.

    Returns:
        Whether it was created.

    Raises:
        SchemeMismatch: it was made with another scheme.
        RecipeMismatch: it was made with another pipeline, or stores fingerprints in another field.
        ConfigError: it was not made for fingerprints, or is an alias without an index for new documents.
    """
    if not engine.index_exists(index):
        try:
            engine.create_index(index, new_mappings(recipe, properties), settings or {})
        except IndexExists:
            # Another client was faster: its index must fit like any other.
            pass
        else:
            return True
    check_write_index(engine, index)
    check_index(engine.mappings(index), index, recipe)
    return False


def check_write_index(engine: Engine, index: str) -> str | None:
    """Check that a name is not an alias without a write index; return the routing that it gives to documents.

    Raises:
        ConfigError: it is one, so that every document would fail.
    """
    if engine.templates is None:
        return None
    try:
        indices, write_index, routing = engine.templates.writes_to(index)
    except PermissionDenied:
        # The client may not read mappings. If they do not fit, the first document fails.
        return None
    if not write_index:
        add = {"index": indices[-1], "alias": index, "is_write_index": True}
        request = json.dumps({"actions": [{"add": add}]}, ensure_ascii=False)
        raise ConfigError(
            f"{index!r} is an alias of {', '.join(indices)} without a write index: index into one of them, "
            f"or make one the write index: POST /_aliases {request}"
        )
    return routing


def write_index_of(engine: Engine, index: str) -> tuple[str, str | None]:
    """Return the write index of an alias and its routing; the name itself if it is none, or is hidden."""
    if engine.templates is None:
        return index, None
    try:
        _, write_index, routing = engine.templates.writes_to(index)
    except PermissionDenied:
        return index, None
    return write_index or index, routing


def is_append_only(engine: Engine, index: str) -> bool:
    """Return whether a name is a data stream; False if the client lacks the permission to find out."""
    if engine.templates is None:
        return False
    try:
        return index in engine.templates.data_streams(index)
    except PermissionDenied:
        return False


def check_index(found: Mapping[str, Any], index: str, recipe: Recipe, remedy: str = _REMEDY) -> None:
    """Check the mappings of an index against the recipe in use.

    Raises:
        SchemeMismatch: it was made with another scheme.
        RecipeMismatch: it was made with another pipeline, or stores fingerprints in another field.
        ConfigError: it was not made for fingerprints.
    """
    if not has_recipe(found):
        raise ConfigError(missing_recipe(found, index))
    Recipe.of(found, index).check(recipe, index, remedy)
    properties: Any = found
    for name in recipe.field.split("."):
        properties = (properties.get("properties") or {}).get(name)
        if not isinstance(properties, Mapping):
            raise ConfigError(
                f"index {index!r} has no field {recipe.field!r}; set it up first: "
                f"{suggest('setup', index, dedup_field=recipe.field)}"
            )
