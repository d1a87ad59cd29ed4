"""Checks the recipe in the mappings of an index against the arguments of a search."""

from collections.abc import Mapping
from typing import Any

from shinglefold.errors import ConfigError, RecipeMismatch, SchemeMismatch, chain, suggest
from shinglefold.model.recipe import stored_recipe, stores_keywords
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal, check_sealed
from shinglefold.options.validation import check_str

_REMEDY = (
    "Search with the scheme of the index (Recipe.of its mappings has it), "
    "or index its documents again with the scheme in use."
)


def check_recipe(
    mappings: Mapping[str, Any], index: str, scheme: Scheme, field: str, seal: Seal | None
) -> None:
    """Check the recipe of an index; an index without a recipe may be searched.

    Raises:
        SchemeMismatch: it was made with another scheme.
        RecipeMismatch: its fingerprints are in another field.
        ConfigError: it is sealed with another key than the one given.
    """
    stored = stored_recipe(mappings) or {}
    if stored.get("id", scheme.id) != scheme.id:
        raise SchemeMismatch(stored["id"], scheme.id, f"index {index}", _REMEDY)
    if stored.get("field", field) != field:
        what, remedy = "fingerprints in the field", "Give the search the field of the index."
        raise RecipeMismatch(what, stored["field"], field, f"index {index}", remedy)
    if stored:
        check_sealed(str(stored.get("sealed", "")), seal, f"index {index!r}")


def check_keywords(mappings: Mapping[str, Any], index: str, field: str) -> None:
    """Check that an index stores supershingles; one without a recipe passes.

    Raises:
        ConfigError: it does not store them.
    """
    stored = stored_recipe(mappings) or {}
    if not stores_keywords(stored.get("pipeline"), str(stored.get("field", field))):
        commands = chain([suggest("setup", index, keywords=True), suggest("backfill", index)])
        raise ConfigError(
            f"index {index!r} stores no supershingles, by which copies are found. Let it store them: "
            f"{commands}; or fold pages by signatures alone"
        )


def index_names(index: str | None) -> list[str]:
    """Return the names whose mappings can be read, one by one.

    Expressions with exclusions (``logs-*,-logs-old``) stay together. Names in other clusters
    (``remote:logs``) are left out: a cluster does not return the mappings of another.
    """
    if index is not None:
        check_str("index", index, empty=True)
    names = [name for name in (index or "").split(",") if name]
    here = [name for name in names if name.startswith("<") or ":" not in name]
    return [",".join(here)] if any(name.startswith("-") for name in here) else here
