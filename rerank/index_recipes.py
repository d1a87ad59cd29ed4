"""The recipe of an index, read from its mappings, and checks of a search against it."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from time import monotonic
from types import MappingProxyType
from typing import Any, NamedTuple

from shinglefold.errors import (
    ConfigError,
    IndexMissing,
    PermissionDenied,
    RecipeMismatch,
    SchemeMismatch,
    chain,
    suggest,
)
from shinglefold.model.recipe import FIELD, TEXTS, Recipe, signed_fields, stored_recipe, stores_keywords
from shinglefold.model.scheme import Scheme, checked_scheme
from shinglefold.model.seal import Seal, check_sealed
from shinglefold.options.validation import check_str
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.runtime.recent import RecentlyUsed

#: Seconds after which the mappings of an index are read again, as other processes change them, too.
_VALID_SECONDS = 10.0
#: When this process last changed a recipe.
_changed = [0.0]
#: The most indices whose mappings are kept: those of a usual index take some 100 kB.
_MOST = 32
_REMEDY = (
    "Search with the scheme of the index (Recipe.of its mappings has it), "
    "or index its documents again with the scheme in use."
)


def recipes_changed() -> None:
    """Make all searches and writes of this process read mappings again."""
    _changed[0] = monotonic()


def is_valid(when: float) -> bool:
    """Return whether mappings that were read at a time, as of ``monotonic``, may still be used."""
    return _changed[0] < when and monotonic() - when <= _VALID_SECONDS


def check_recipe(
    mappings: Mapping[str, Any], index: str, scheme: Scheme, field: str, seal: Seal | None
) -> None:
    """Check the recipe of an index; an index without one may be searched.

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
        raise keywords_missing(index)


def keywords_missing(index: str) -> ConfigError:
    """Return the error for an index that stores no supershingles."""
    commands = chain([suggest("setup", index, keywords=True), suggest("backfill", index)])
    return ConfigError(
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


Mappings = Mapping[str, Any]
#: Takes the scheme of a search from the recipe of its index.
SchemeOf = Callable[[Recipe], Scheme]


class IndexRecipe(NamedTuple):
    """The scheme and the field of fingerprints of an index.

    ``mappings``: the mappings of each index that the name matches, by the name of that index.
    """

    scheme: Scheme
    field: str
    mappings: Mapping[str, Mappings] = MappingProxyType({})

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields from whose texts the fingerprints of all indices were made."""
        named = (field for fields in self.fields_by_index.values() for field in fields)
        return tuple(dict.fromkeys(named)) or TEXTS

    @property
    def fields_by_index(self) -> dict[str, tuple[str, ...]]:
        """The fields from whose texts the fingerprints of each index were made."""
        return text_fields_of(self.mappings)


class IndexRecipes:
    """Recipes by index.

    Args:
        scheme: by default that of the index; or a function that takes it from the recipe of the index.
        field: by default that of the index.
        seal: the seal with the key of the index.
    """

    def __init__(self, scheme: Scheme | SchemeOf | None, field: str | None, seal: Seal | None) -> None:
        self._scheme_of: SchemeOf = scheme if callable(scheme) else attrgetter("scheme")
        self._scheme = None if scheme is None or callable(scheme) else checked_scheme(scheme)
        self._field = field
        self._seal = seal
        self._recipes: RecentlyUsed[str, tuple[float, IndexRecipe]] = RecentlyUsed(_MOST)

    def read(self, index: str, *, renew: bool = False) -> Steps[IndexRecipe]:
        """Return the recipe of an index; its mappings are read if they were not read lately.

        Args:
            renew: read them in any case.

        Raises:
            ConfigError: the index was not made for fingerprints, its seal does not fit, or its mappings may
                not be read and no scheme was given.
            SchemeMismatch: it, or one of several, was made with another scheme.
            RecipeMismatch: its fingerprints are in another field.
        """
        check_str("index", index)
        when, known = self._recipes.get(index) or (0.0, None)
        if known is None or renew or not is_valid(when):
            when = monotonic()
            known = yield from self._read(index)
            self._recipes.put(index, (when, known))
        return known

    def _read(self, index: str) -> Steps[IndexRecipe]:
        names = index_names(index)
        if not names:
            raise ConfigError(f"{index!r} names no index whose recipe can be read; name one")
        found: dict[str, Mappings] = {}
        for name in names:
            mappings = yield from mappings_of_each(name, required=self._scheme is None)
            if mappings is None:
                continue
            if not mappings:
                raise IndexMissing(f"no index fits {name!r}. Create it first, or check its name.")
            found |= mappings
        return self._checked_recipe(found)

    def _checked_recipe(self, found: Mapping[str, Mappings]) -> IndexRecipe:
        scheme, field = self._scheme, self._field
        for name, mappings in found.items():
            recipe = Recipe.of(mappings, name)
            scheme, field = scheme or self._scheme_of(recipe), field or recipe.field
            check_recipe(mappings, name, scheme, field, self._seal)
            check_keywords(mappings, name, field)
        assert scheme is not None
        return IndexRecipe(scheme, field or FIELD, found)


def mappings_of_each(name: str, *, required: bool = False) -> Steps[Mapping[str, Mappings] | None]:
    """Return the mappings of each index that a name matches; None if a role may not read them.

    Raises:
        PermissionDenied: a role may not read them, and they are required.
    """
    try:
        return (yield Call("all_mappings", (name,)))  # type: ignore[no-any-return]
    except PermissionDenied:
        if required:
            raise
        return None


def text_fields_of(mappings: Mapping[str, Mappings]) -> dict[str, tuple[str, ...]]:
    """Return the fields from whose texts the fingerprints of each index were made."""
    return {index: signed_fields([one]) for index, one in mappings.items()}
