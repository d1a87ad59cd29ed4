"""Plugins by entry point: the built-ins come through the same door as a stranger's."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from shinglefold.contracts.language import Language
from shinglefold.errors import ConfigError, MissingExtra, SchemeMismatch, ShinglefoldError, UnknownLanguage
from shinglefold.model.scheme import PRESETS, CanonOptions, LanguageRef, Scheme
from shinglefold.options.remedies import suggest
from shinglefold.options.validation import check_choice, check_type, expected

LANGUAGES = "shinglefold.languages"
PROCESSORS = "shinglefold.processors"
REPRESENTATIVES = "shinglefold.representatives"


def offered(group: str) -> Sequence[EntryPoint]:
    """Return the entry points of a group, of all distributions; what is installed from now on is found, too.

    Cost: 3 to 10 ms, as files of all distributions are read, and 20 µs where nothing was installed since.
    """
    return _offered(group, tuple((path, _changed(path)) for path in sys.path))


@lru_cache(maxsize=16)
def _offered(group: str, _places: tuple[tuple[str, int], ...]) -> Sequence[EntryPoint]:
    return tuple(entry_points(group=group))


def _changed(path: str) -> int:
    """Return when something was installed in a folder, or taken away, at the latest."""
    try:
        return os.stat(path or ".").st_mtime_ns
    except OSError:
        return 0


def installed() -> dict[str, EntryPoint]:
    """Return the entry points of all installed languages by code, sorted; none is imported.

    Raises:
        ConfigError: two distributions claim one code.
    """
    found: dict[str, EntryPoint] = {}
    for point in offered(LANGUAGES):
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
        among: the installed languages, where they are known already.

    Raises:
        UnknownLanguage: no installed plugin has this code.
        ConfigError: the plugin can't be imported or is no language.
    """
    points = installed() if among is None else among
    if not isinstance(code, str) or code not in points:
        raise UnknownLanguage.unknown("language", code, points)
    plugin = points[code].value
    try:
        loaded = points[code].load()
    except ShinglefoldError:
        raise
    except Exception as error:
        raise ConfigError(f"the plugin {plugin} can't be imported: {error!r}; reinstall it") from error
    if not (isinstance(loaded, type) and issubclass(loaded, Language)):
        raise ConfigError(f"the plugin {plugin} is no subclass of shinglefold.contracts.language.Language")
    return loaded


def load_plugin(group: str, kind: str, name: str, built_in: Iterable[str] = ()) -> Any:  # noqa: ANN401
    """Import and return what an installed distribution offers under a name.

    Args:
        group: the entry points to look among.
        kind: what it is, for messages.
        built_in: names that stand beside the installed ones.

    Raises:
        ConfigError: nothing has this name, two distributions claim it, or it can't be imported.
    """
    points = {(point.name, point.value): point for point in offered(group)}
    found = [point for (named, _), point in points.items() if named == name]
    if not found:
        raise ConfigError.unknown(kind, name, [*built_in, *(named for named, _ in points)])
    if len(found) > 1:
        values = " and ".join(point.value for point in found)
        raise ConfigError(f"two plugins claim the {kind} {name!r}: {values}; uninstall one of them")
    try:
        return found[0].load()
    except ShinglefoldError:
        raise
    except Exception as error:
        raise ConfigError(
            f"the {kind} {found[0].value} can't be imported: {error!r}; reinstall it"
        ) from error


def usable() -> tuple[dict[str, type[Language]], dict[str, MissingExtra]]:
    """Return the installed languages whose dictionaries are there, and what the others lack, by code."""
    ready: dict[str, type[Language]] = {}
    lacking: dict[str, MissingExtra] = {}
    points = installed()
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
    """Return the languages of a new scheme, sorted by code: those named, or all that are usable.

    Args:
        options: for every language but those in ``overrides``, which has options by code.

    Raises:
        UnknownLanguage: a language is named that no plugin has.
        MissingExtra: a language is named whose dictionary is not installed.
    """
    if isinstance(codes, str) or not isinstance(codes, Iterable | None):
        # One code would be taken for its letters.
        raise expected("languages", "a list of codes, such as ['ru', 'zh'], or None for all", codes)
    check_type(
        "options of languages", options, CanonOptions, "CanonOptions(…) (from shinglefold.model.scheme)"
    )
    chosen = sorted(set(usable()[0] if codes is None else codes))
    own = overrides or {}
    for code in own.keys() - set(chosen):
        raise UnknownLanguage.unknown("language", code, chosen)
    points = installed()
    return tuple(
        LanguageRef(code, language_class(code, points).version(), own.get(code, options)) for code in chosen
    )


def make_scheme(
    preset: str = "default",
    codes: Iterable[str] | None = None,
    options: CanonOptions = CanonOptions(),
    overrides: Mapping[str, CanonOptions] | None = None,
) -> Scheme:
    """Return a preset bound to the installed languages and their versions.

    Raises:
        ConfigError: no such preset or language.
    """
    check_choice("preset", preset, tuple(PRESETS))
    base = PRESETS[preset]
    return Scheme(references(codes, options, overrides), base.name, base.sketch, base.decision)


def load_languages(references: Iterable[LanguageRef]) -> tuple[Language, ...]:
    """Return the languages of a scheme, ready to use.

    Raises:
        MissingExtra: a language's dictionary is not installed.
        SchemeMismatch: another version of a language is installed than the scheme was made with.
    """
    return tuple(cls(ref.options) for ref, cls in _as_made(references))


def check_versions(references: Iterable[LanguageRef]) -> None:
    """Check that the languages of a scheme are installed as they were when it was made.

    Raises:
        MissingExtra: a language's dictionary is not installed.
        SchemeMismatch: another version of a language is installed than the scheme was made with.
    """
    for _ in _as_made(references):
        pass


def _as_made(references: Iterable[LanguageRef]) -> Iterator[tuple[LanguageRef, type[Language]]]:
    points = installed()
    for ref in references:
        if ref.code not in points:
            raise UnknownLanguage(
                f"the language {ref.code!r}, which the scheme was made with, is not installed: install its "
                f"plugin ({suggest('plugins')} lists what is there), or index again without it"
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
