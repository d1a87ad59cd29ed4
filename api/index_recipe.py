"""The recipe of the indices behind a name, changes to it, and the canonicalizer for searches."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError, EngineError, IndexMissing, SchemeMismatch, nearest
from shinglefold.model.profiles import profile_of
from shinglefold.model.recipe import Recipe, has_recipe
from shinglefold.model.scheme import PRESETS, CanonOptions, LanguageRef, Scheme
from shinglefold.model.values import Token
from shinglefold.options.validation import check_choice, check_str
from shinglefold.registry import references

if TYPE_CHECKING:
    from shinglefold.canon import Canonicalizer

#: The most fields that a list may name.
MOST_NAMES = 100
#: The most indices that a message names.
_LISTED = 10


def mappings_or_none(engine: Engine, index: str) -> dict[str, JSON]:
    """Return the mappings of each index behind a name; none if there is no such index."""
    check_str("index", index)
    try:
        return engine.all_mappings(index)
    except IndexMissing:
        return {}


def missing_index(engine: Engine, index: str, remedy: str, where: str = "") -> IndexMissing:
    """Return the error for a missing index; it names the index probably meant, or the existing ones.

    Args:
        remedy: how to make the index; replaced if the name is of several indices.
        where: the folder or address, for the message.
    """
    missing = f"no index {index!r}{f' in {where}' if where else ''}"
    remedy = "Check the names." if "," in index else remedy
    try:
        names = sorted({name for one in engine.indices() for name in (one.name, *one.aliases)})
    except EngineError:
        # The user may not list the indices.
        return IndexMissing(f"{missing}. {remedy}")
    names = [name for name in names if not name.startswith(".")]
    near = nearest(index, names)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    there = f"there are: {', '.join(names[:_LISTED]) or 'none'}{more}"
    return IndexMissing(f"{missing}; {there}. {f'Did you mean {near!r}? ' if near else ''}{remedy}")


def common_recipe(
    mappings: Mapping[str, JSON],
    not_set_up: Callable[[str], str],
    different: Callable[[tuple[str, Recipe], tuple[str, Recipe]], str],
) -> Recipe:
    """Return the recipe that all of several indices have.

    Args:
        mappings: the mappings of each index by its name; at least one.
        not_set_up, different: return the message about an index without a recipe, and about two indices
            with different ones.

    Raises:
        ConfigError: an index has no recipe, or they have different ones.
    """
    for name, found in mappings.items():
        if not has_recipe(found):
            raise ConfigError(not_set_up(name))
    first, *others = ((name, Recipe.of(found, name)) for name, found in mappings.items())
    for other in others:
        if _decisive_parts(other[1]) != _decisive_parts(first[1]):
            raise ConfigError(different(first, other))
    return first[1]


def _decisive_parts(recipe: Recipe) -> tuple[object, ...]:
    """Return the parts of a recipe that decide what folds: indices with the same ones fold together."""
    kind = profile_of(recipe.profile)
    return recipe.scheme.id, recipe.field, recipe.pipeline, recipe.sealed, kind.decision, kind.dedup


def with_preset(scheme: Scheme, preset: str) -> Scheme:
    """Return a scheme with the sketch and the decision of a preset.

    Raises:
        ConfigError: there is no such preset.
    """
    check_choice("preset", preset, tuple(PRESETS))
    base = PRESETS[preset]
    return replace(scheme, name=base.name, sketch=base.sketch, decision=base.decision)


def with_profile(scheme: Scheme, profile: str, before: str = "") -> Scheme:
    """Return a scheme whose decision is that of a profile; what an earlier profile decided is undone."""
    if profile_of(before).decision and scheme.name in PRESETS:
        scheme = replace(scheme, decision=PRESETS[scheme.name].decision)
    return scheme.with_options(**profile_of(profile).decision)


def with_languages(
    scheme: Scheme,
    codes: Iterable[str],
    options: CanonOptions,
    overrides: Mapping[str, CanonOptions] | None = None,
) -> Scheme:
    """Return a scheme with these languages, as they are installed; those it has keep their options.

    Args:
        options, overrides: for new languages, see ``shinglefold.registry.references``.

    Raises:
        UnknownLanguage, MissingExtra: a language is not installed.
    """
    kept = {ref.code: ref.options for ref in scheme.languages}
    chosen = references(codes, options, overrides)
    return replace(
        scheme,
        languages=tuple(replace(ref, options=kept.get(ref.code, ref.options)) for ref in chosen),
    )


def _searched(scheme: Scheme) -> tuple[LanguageRef, ...]:
    return tuple(
        replace(ref, options=CanonOptions(mode=ref.options.mode, drop_function_words=False))
        for ref in scheme.languages
    )


def search_canonicalizer(scheme: Scheme) -> "Canonicalizer":
    """Return the canonicalizer for searches of an embedded index.

    It keeps the lemmas of the scheme and drops no function words, so that phrases are found as written.
    """
    # Imported here, because code that only reads a recipe analyses no text.
    from shinglefold.canon import Canonicalizer

    return Canonicalizer.of(replace(scheme, languages=_searched(scheme)))


class MissingWords:
    """Stands for a canonicalizer whose languages are installed in another version.

    The embedded engine then searches without texts, as for dates and numbers; a text raises the error.
    """

    def __init__(self, references: Sequence[LanguageRef], error: SchemeMismatch) -> None:
        self.references = tuple(references)
        self._error = error

    def tokens(self, _: str, language: str | None = None) -> Sequence[Token]:
        """Raise ``SchemeMismatch``: these versions would make other words."""
        raise copy(self._error)


def words_of_index(scheme: Scheme) -> "Canonicalizer | MissingWords":
    """Return the canonicalizer for the words of an embedded index; see ``search_canonicalizer``.

    Stored fingerprints are compared without it, so another version of a language is no error yet.
    """
    try:
        return search_canonicalizer(scheme)
    except SchemeMismatch as error:
        return MissingWords(_searched(scheme), copy(error))


def open_to_write(where: Any, index: str) -> Engine:  # noqa: ANN401 - as in open_engine
    """Open an engine that can write an index; an embedded one needs the languages of the index."""
    check_str("index", index)
    with closing(open_engine(where)) as engine:
        try:
            found = engine.all_mappings(index)
        except IndexMissing as error:
            raise missing_index(engine, index, "Check the name.") from error
    schemes = [Recipe.of(mappings, name).scheme for name, mappings in found.items() if has_recipe(mappings)]
    return open_engine(where, search_canonicalizer(schemes[0]) if schemes else None)
