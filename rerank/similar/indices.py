"""What is known of the indices searched: their recipe, read once and held against what is asked for."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from shinglefold.errors import ConfigError, PermissionDenied
from shinglefold.recipe import Recipe, signed_fields
from shinglefold.rerank.request.arguments import checked_scheme
from shinglefold.rerank.request.recipes import check_keywords, check_recipe, index_names
from shinglefold.rerank.steps import Call, Steps
from shinglefold.scheme import Scheme
from shinglefold.seal import Seal


class Known(NamedTuple):
    """The scheme and the field of fingerprints of an index, and the mappings of each that its name means."""

    scheme: Scheme
    field: str
    mappings: tuple[Mapping[str, Any], ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that fingerprints were made of, as recipes tell."""
        return signed_fields(self.mappings)


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
        if index not in self._known:
            self._known[index] = yield from self._look(index)
        return self._known[index]

    def _look(self, index: str) -> Steps[Known]:
        names = index_names(index)
        if not names:
            raise ConfigError(f"{index!r} names no index whose recipe can be read; name one")
        found = []
        for name in names:
            try:
                found.append((name, (yield Call("mappings", (name,)))))
            except PermissionDenied:
                if self._scheme is None:
                    raise
        return self._fitting(found)

    def _fitting(self, found: Sequence[tuple[str, Mapping[str, Any]]]) -> Known:
        scheme, field = self._scheme, self._field
        for name, mappings in found:
            recipe = Recipe.of(mappings, name, field or "dedup")
            scheme, field = scheme or recipe.scheme, field or recipe.field
            check_recipe(mappings, name, scheme, field, self._seal)
            check_keywords(mappings, name, field)
        assert scheme is not None
        return Known(scheme, field or "dedup", tuple(mappings for _, mappings in found))
