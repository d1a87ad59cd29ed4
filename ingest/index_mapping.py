"""The mapping of the stored fingerprint, and the check that an index was made with the recipe in use."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.errors import ConfigError, IndexExists, PermissionDenied, suggest
from shinglefold.ingest.field_paths import MISSING, get, json_type
from shinglefold.ingest.pipeline.pipeline import default_definition
from shinglefold.model.recipe import FIELD, META_KEY, PASSAGES, TEXTS, Recipe, comparable, has_recipe
from shinglefold.model.scheme import Scheme, checked_scheme
from shinglefold.model.stored_fingerprint import ATTEMPT, PENDING, stored_parts
from shinglefold.options.validation import check_type

_REMEDY = (
    "Change the index (setup, then backfill), use what it was made with, or index all documents again into a "
    "new one."
)
#: Searched only; with norms whether a document has any can be asked, as of supershingles.
_PASSAGES = {"type": "keyword", "doc_values": False, "norms": True}


#: Types of usual fields; dynamic mapping would take keywords for running text.
USUAL_PROPERTIES: Mapping[str, JSON] = MappingProxyType(
    {
        # Numbers at first and letters later are both ids.
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
    """Return the recipe of an index that the default pipeline feeds.

    Args:
        field: where fingerprints go; may be a dotted path.
        fields: whose texts they are of.
    """
    definition = comparable(default_definition(field, fields))
    return Recipe(checked_scheme(scheme), definition, field, tuple(fields))


def mappings(scheme: Scheme, field: str = FIELD, fields: Sequence[str] = TEXTS) -> JSON:
    """Return the mappings of an index that the default pipeline feeds; see ``default_recipe``."""
    return recipe_mappings(default_recipe(scheme, field, fields))


def recipe_mappings(recipe: Recipe) -> JSON:
    """Return the mappings of an index that stores fingerprints: their field, and the recipe in ``_meta``."""
    check_type("recipe", recipe, Recipe, "pipeline.recipe()")
    properties: JSON = {
        "scheme": {"type": "keyword"},
        "lang": {"type": "keyword"},
        # Read for whole windows of hits, never searched: doc values without an index.
        "shingles": {"type": "integer", "index": False},
        "signature": {"type": "binary", "doc_values": True},
        "digest": {"type": "keyword"},
        # Searched, hardly ever read: an index without doc values (bench/storage.py has what each costs). With
        # neither doc values nor norms a server would note for each of the values that there is one.
        "supershingles": {"type": "keyword", "doc_values": False, "norms": True},
    }
    if recipe.passages:
        properties[PASSAGES] = dict(_PASSAGES)
    if recipe.groups:
        # A number, not a keyword, and one a document: what engines collapse by at their own speed.
        properties["group"] = {"type": "long"}
        properties["leader"] = {"type": "boolean"}
    for name in reversed(recipe.field.split(".")):
        properties = {name: {"properties": properties}}
    return {"_meta": {META_KEY: recipe.to_json()}, "properties": properties}


def usual_properties(recipe: Recipe) -> JSON:
    """Return the types of the usual fields of a new index, and of the texts of a recipe."""
    texts = {name: {"type": "text"} for name in recipe.fields if "." not in name}
    return {**texts, **USUAL_PROPERTIES}


def new_mappings(recipe: Recipe, properties: Mapping[str, Any] | None = None) -> JSON:
    """Return the mappings of a new index, with further fields."""
    wanted = recipe_mappings(recipe)
    wanted["properties"] = {**(properties or {}), **wanted["properties"]}
    return wanted


def ensure_index(
    engine: Engine,
    index: str,
    recipe: Recipe,
    *,
    properties: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> bool:
    """Create the index, or check that the one that is there was made with this recipe.

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
            # Somebody else was faster: theirs must fit as any other.
            pass
        else:
            return True
    check_write_index(engine, index)
    check_index(engine.mappings(index), index, recipe)
    return False


def check_write_index(engine: Engine, index: str) -> None:
    """Refuse an alias that no new document could go to, before the first one is tried.

    Raises:
        ConfigError: it is one.
    """
    if engine.templates is None:
        return
    try:
        several, write_index_of = engine.templates.writes_to(index)
    except PermissionDenied:
        # Whoever may write and not look learns of it at the first document.
        return
    if not write_index_of:
        add = {"index": several[-1], "alias": index, "is_write_index": True}
        request = json.dumps({"actions": [{"add": add}]}, ensure_ascii=False)
        raise ConfigError(
            f"{index!r} is an alias of {', '.join(several)}, none of which takes its new documents: index "
            f"into one of them, or say which it is: POST /_aliases {request}"
        )


def write_index_of(engine: Engine, index: str) -> str:
    """Return the index that takes the new documents of a name; the name itself for who may not look."""
    if engine.templates is None:
        return index
    try:
        return engine.templates.writes_to(index)[1] or index
    except PermissionDenied:
        return index


def is_append_only(engine: Engine, index: str) -> bool:
    """Tell whether a name takes new documents alone, as data streams do; False for who may not look."""
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
        raise ConfigError(
            f"index {index!r} was not made for fingerprints (no recipe in _meta.{META_KEY} of its mappings): "
            f"set it up first: {suggest('setup', index)}; index into a new one, or create it with "
            "shinglefold.ingest.mappings()"
        )
    Recipe.of(found, index).check(recipe, index, remedy)
    properties: Any = found
    for name in recipe.field.split("."):
        properties = (properties.get("properties") or {}).get(name)
        if not isinstance(properties, Mapping):
            raise ConfigError(
                f"index {index!r} has no field {recipe.field!r}; set it up first: "
                f"{suggest('setup', index, dedup_field=recipe.field)}"
            )


#: The parts of a fingerprint; whatever else is beside them is somebody else's.
FINGERPRINT_PARTS = frozenset(
    {"scheme", "lang", "shingles", "digest", "supershingles", "signature", PASSAGES}
)
#: What else of ours may be beside them: the number of the group, whether the document leads it, and what
#: keeps the place of one that a gate is deciding on.
BOOKKEEPING_PARTS = frozenset({"group", "leader", PENDING, ATTEMPT})
#: Names told in a message.
_SHOWN = 3


def foreign_content(document: Mapping[str, Any], field: str) -> str:
    """Return, in words, what a document has in the place of its fingerprint that is no part of one.

    A fingerprint itself is nothing to be told, however damaged or forged it is: it is made anew.

    Args:
        field: of the fingerprint; may be a dotted path.
    """
    if others := sorted(
        map(repr, stored_parts(document, field).keys() - FINGERPRINT_PARTS - BOOKKEEPING_PARTS)
    ):
        return f"[{field}] holds {', '.join(others[:_SHOWN])}, no fingerprint"
    # The same name with points in it is the same field to an engine.
    for found in (get(document, field), document.get(field, MISSING)):
        several = found if isinstance(found, list) else [found]
        if not all(one is MISSING or one is None or isinstance(one, Mapping | list) for one in several):
            return f"[{field}] is {json_type(found)}, no fingerprint"
    return ""


def overwrite_refusal(document: Mapping[str, Any], field: str) -> str:
    """Return why a document can't be given a fingerprint in a field, and what to do; mostly nothing."""
    held = foreign_content(document, field)
    another = 'keep fingerprints in another field (the setting "field", or setup --dedup-field)'
    return f"{held}, and would be lost: {another}" if held else ""
