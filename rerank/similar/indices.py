"""What is known of the indices searched: their recipe, read once and held against what is asked for."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from shinglefold.checks import check_is_text
from shinglefold.errors import ConfigError, IndexMissing, PermissionDenied
from shinglefold.recipe import TEXTS, Recipe, signed_fields
from shinglefold.rerank.request.recipes import check_keywords, check_recipe, index_names
from shinglefold.rerank.steps import Call, Steps
from shinglefold.scheme import Scheme, checked_scheme
from shinglefold.seal import Seal


class Known(NamedTuple):
    """The scheme and the field of fingerprints of an index, and the mappings of each that its name means.

    ``mappings``: by the names that hits have.
    """

    scheme: Scheme
    field: str
    mappings: Mapping[str, Mapping[str, Any]] = MappingProxyType({})

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that fingerprints were made of, as recipes tell, of all indices together."""
        named = (field for fields in self.fields_by_index.values() for field in fields)
        return tuple(dict.fromkeys(named)) or TEXTS

    @property
    def fields_by_index(self) -> dict[str, tuple[str, ...]]:
        """The fields that the fingerprints of each index were made of."""
        return {name: signed_fields([mappings]) for name, mappings in self.mappings.items()}


class Indices:
    """Recipes by index.

    Args:
        scheme: None takes that of the index.
        field: likewise.
        seal: of the key that indices are sealed with.
    """

    def __init__(self, scheme: Scheme | None, field: str | None, seal: Seal | None) -> None:
        self._scheme = None if scheme is None else checked_scheme(scheme)
        self._field = field
        self._seal = seal
        self._known: dict[str, Known] = {}

    def known(self, index: str) -> Steps[Known]:
        """Return what is known of an index, asking for its mappings the first time.

        Raises:
            ConfigError: it was not made for fingerprints, it is sealed and the key is missing or another one,
                or its mappings may not be read and nobody says what it was made with.
            SchemeMismatch: it was made with another scheme; so was one of several.
            RecipeMismatch: its fingerprints are in another field.
        """
        check_is_text("index", index)
        if index not in self._known:
            self._known[index] = yield from self._look(index)
        return self._known[index]

    def _look(self, index: str) -> Steps[Known]:
        names = index_names(index)
        if not names:
            raise ConfigError(f"{index!r} names no index whose recipe can be read; name one")
        found: dict[str, Mapping[str, Any]] = {}
        for name in names:
            try:
                meant = yield Call("all_mappings", (name,))
            except PermissionDenied:
                if self._scheme is None:
                    raise
                continue
            if not meant:
                raise IndexMissing(f"no index fits {name!r}. Create it first, or check its name.")
            found |= meant
        return self._fitting(found)

    def _fitting(self, found: Mapping[str, Mapping[str, Any]]) -> Known:
        scheme, field = self._scheme, self._field
        for name, mappings in found.items():
            recipe = Recipe.of(mappings, name)
            scheme, field = scheme or recipe.scheme, field or recipe.field
            check_recipe(mappings, name, scheme, field, self._seal)
            check_keywords(mappings, name, field)
        assert scheme is not None
        return Known(scheme, field or "dedup", found)
