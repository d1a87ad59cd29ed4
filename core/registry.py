"""Plugins, found by their entry points: built-in ones and those of other distributions alike."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from shinglefold.contracts.language import Language
from shinglefold.errors import (
    ConfigError,
    MissingExtra,
    SchemeMismatch,
    ShinglefoldError,
    UnknownLanguage,
    suggest,
)
from shinglefold.model.scheme import PRESETS, CanonOptions, LanguageRef, Scheme
from shinglefold.options.validation import check_choice, check_strings, check_type, expected

LANGUAGES = "shinglefold.languages"
PROCESSORS = "shinglefold.processors"
REPRESENTATIVES = "shinglefold.representatives"
_MOST_LANGUAGES = 100


def entry_points_of(group: str) -> Sequence[EntryPoint]:
    """Return the entry points of a group in all distributions, newly installed ones included.

    Cost: 3 to 10 ms to read the files of all distributions; 20 µs if nothing was installed since the last
        call.
    """
    return _cached_entry_points(group, tuple((path, _modification_time(path)) for path in sys.path))


@lru_cache(maxsize=16)
def _cached_entry_points(group: str, _path: tuple[tuple[str, int], ...]) -> Sequence[EntryPoint]:
    return tuple(entry_points(group=group))


def _modification_time(path: str) -> int:
    """Return when something was last installed in a folder or removed from it; 0 if it can't be read."""
    try:
        return os.stat(path or ".").st_mtime_ns
    except OSError:
        return 0


def installed_languages() -> dict[str, EntryPoint]:
    """Return the entry points of all installed languages by code, sorted, without importing them.

    Raises:
        ConfigError: two distributions claim one code.
    """
    found: dict[str, EntryPoint] = {}
    for point in entry_points_of(LANGUAGES):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise ConfigError(
                f"two plugins claim the language {point.name!r}: {other.value} and {point.value}; "
                "uninstall one of them"
            )
    return dict(sorted(found.items()))


def language_class(code: str, among: Mapping[str, EntryPoint] | None = None) -> type[Language]:
    """Import and return the class of a language.

    Args:
        among: the result of ``installed_languages``, if the caller has it.

    Raises:
        UnknownLanguage: no installed plugin has this code.
        ConfigError: the plugin can't be imported, or is not a language.
    """
    points = installed_languages() if among is None else among
    if not isinstance(code, str) or code not in points:
        raise UnknownLanguage.unknown("language", code, points)
    loaded = _load(points[code], "plugin")
    if not (isinstance(loaded, type) and issubclass(loaded, Language)):
        raise ConfigError(
            f"the plugin {points[code].value} is not a subclass of shinglefold.contracts.language.Language"
        )
    return loaded


def load_plugin(group: str, kind: str, name: str, built_in: Iterable[str] = ()) -> Any:  # noqa: ANN401
    """Import and return the plugin of a name.

    Args:
        group: the group of its entry point.
        kind: the kind of plugin, for messages.
        built_in: known names without an entry point, for messages.

    Raises:
        ConfigError: no plugin has this name, two have it, or it can't be imported.
    """
    points = {(point.name, point.value): point for point in entry_points_of(group)}
    found = [point for (named, _), point in points.items() if named == name]
    if not found:
        raise ConfigError.unknown(kind, name, [*built_in, *(named for named, _ in points)])
    if len(found) > 1:
        values = " and ".join(point.value for point in found)
        raise ConfigError(f"two plugins claim the {kind} {name!r}: {values}; uninstall one of them")
    return _load(found[0], kind)


def _load(point: EntryPoint, kind: str) -> Any:  # noqa: ANN401 - whatever a plugin is
    try:
        return point.load()
    except ShinglefoldError:
        raise
    except Exception as error:
        raise ConfigError(f"the {kind} {point.value} can't be imported: {error!r}; reinstall it") from error


def usable() -> tuple[dict[str, type[Language]], dict[str, MissingExtra]]:
    """Return the usable languages, and the missing extra of each unusable one, by code."""
    ready: dict[str, type[Language]] = {}
    lacking: dict[str, MissingExtra] = {}
    points = installed_languages()
    for code in points:
        try:
            language = language_class(code, points)
            language.version()
        except MissingExtra as error:
            lacking[code] = error
        else:
            ready[code] = language
    return ready, lacking


def references(
    codes: Iterable[str] | None = None,
    options: CanonOptions = CanonOptions(),
    overrides: Mapping[str, CanonOptions] | None = None,
) -> tuple[LanguageRef, ...]:
    """Return the languages of a new scheme, sorted by code.

    Args:
        codes: the languages; by default all usable ones.
        options: the options of all languages that are not in ``overrides``.
        overrides: options by language code.

    Raises:
        UnknownLanguage: no plugin has one of the codes.
        MissingExtra: the dictionary of one is not installed.
    """
    if isinstance(codes, str) or not isinstance(codes, Iterable | None):
        # A single string would be read as a list of letters.
        raise expected("languages", "a list of codes, such as ['ru', 'zh'], or None for all", codes)
    check_type(
        "options of languages", options, CanonOptions, "CanonOptions(…) (from shinglefold.model.scheme)"
    )
    chosen = sorted(set(usable()[0] if codes is None else codes))
    own = overrides or {}
    for code in own.keys() - set(chosen):
        raise UnknownLanguage.unknown("language", code, chosen)
    points = installed_languages()
    return tuple(
        LanguageRef(code, language_class(code, points).version(), own.get(code, options)) for code in chosen
    )


def codes_with_any(languages: Sequence[str] | None) -> tuple[str, ...] | None:
    """Add ``any``, which takes the words of all other scripts, to language codes; return None for None."""
    if languages is None:
        return None
    codes = check_strings("languages", languages, _MOST_LANGUAGES)
    return codes if "any" in codes else (*codes, "any")


def make_scheme(
    preset: str = "default",
    codes: Iterable[str] | None = None,
    options: CanonOptions = CanonOptions(),
    overrides: Mapping[str, CanonOptions] | None = None,
) -> Scheme:
    """Return a preset with the installed languages and their versions; see ``references``.

    Raises:
        ConfigError: an unknown preset or language.
    """
    check_choice("preset", preset, tuple(PRESETS))
    base = PRESETS[preset]
    return Scheme(references(codes, options, overrides), base.name, base.sketch, base.decision)


def load_languages(references: Iterable[LanguageRef]) -> tuple[Language, ...]:
    """Return instances of the languages of a scheme.

    Raises:
        MissingExtra: a language's dictionary is not installed.
        SchemeMismatch: the installed version of a language can't make the scheme's tokens.
    """
    return tuple(cls(ref.options) for ref, cls in _classes_of(references))


def check_versions(references: Iterable[LanguageRef]) -> None:
    """Check that the installed languages can make the tokens of a scheme.

    Raises:
        MissingExtra: a language's dictionary is not installed.
        SchemeMismatch: the installed version of a language can't make the scheme's tokens.
    """
    for _ in _classes_of(references):
        pass


def _classes_of(references: Iterable[LanguageRef]) -> Iterator[tuple[LanguageRef, type[Language]]]:
    points = installed_languages()
    for ref in references:
        if ref.code not in points:
            raise UnknownLanguage(
                f"the language {ref.code!r}, which the scheme was made with, is not installed: install its "
                f"plugin ({suggest('info')} lists the installed ones), or index again without it"
            )
        cls = language_class(ref.code, points)
        made = cls.made_as(ref.version)
        if made is None:
            raise SchemeMismatch(
                found=f"{ref.code} {ref.version}",
                expected=f"{ref.code} {cls.version()}",
                where="the scheme",
                remedy="Install the dictionary version it was made with, or index again with a new scheme.",
            )
        yield ref, made
