"""The cached recipes of indices, for searches for copies and for passages."""

from collections.abc import Mapping
from operator import attrgetter
from time import monotonic
from types import MappingProxyType
from typing import NamedTuple

from shinglefold.errors import ConfigError, IndexMissing
from shinglefold.model.recipe import FIELD, TEXTS, Recipe
from shinglefold.model.scheme import Scheme, checked_scheme
from shinglefold.model.seal import Seal
from shinglefold.options.validation import check_str
from shinglefold.rerank.engine_calls import Steps
from shinglefold.rerank.index_fields import (
    Mappings,
    SchemeOf,
    check_keywords,
    check_recipe,
    index_names,
    is_valid,
    mappings_of_each,
    text_fields_of,
)
from shinglefold.runtime.recent import RecentlyUsed

#: The most indices whose mappings are kept: those of a usual index take some 100 kB.
_KEPT = 32


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
    """Recipes by index; scheme and field are by default those of the index, and its seal must fit."""

    def __init__(self, scheme: Scheme | SchemeOf | None, field: str | None, seal: Seal | None) -> None:
        self._scheme_of: SchemeOf = scheme if callable(scheme) else attrgetter("scheme")
        self._scheme = None if scheme is None or callable(scheme) else checked_scheme(scheme)
        self._field = field
        self._seal = seal
        self._recipes: RecentlyUsed[str, tuple[float, IndexRecipe]] = RecentlyUsed(_KEPT)

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
