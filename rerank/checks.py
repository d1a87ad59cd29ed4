"""Checks of what a request says: known names, kinds, sizes; each before any work is done for it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from shinglefold.errors import ConfigError
from shinglefold.quoted import quoted
from shinglefold.source_filter import SourceFilter

#: Scopes, policies and fields of passages a request may name.
MOST_SCOPES, MOST_POLICIES, MOST_FIELDS = 16, 16, 32
#: Values a policy may prefer, and patterns of a source filter.
MOST_VALUES, MOST_PATTERNS = 1000, 1000
#: Characters of a field's name or a value, and of a short form such as ``prefer:host=a.org,b.org``.
MOST_NAME, MOST_TEXT = 512, 10_000
#: Objects and lists within each other, and bits of a whole number, in a request.
MOST_LEVELS, _BITS = 100, 256
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_LONGEST_SPAN = 20
_FILTER_KEYS = ("includes", "excludes", "include", "exclude")
_SECONDS = MappingProxyType({"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0})


def check_known(what: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise ``ConfigError`` where an object has a key that nobody knows."""
    for name in given:
        if name not in known:
            raise ConfigError.unknown(what, str(name), known)


def check_count(name: str, given: Sequence[object], most: int) -> None:
    """Raise ``ConfigError`` where a list is longer than a request may make it."""
    if len(given) > most:
        raise ConfigError(f"{name}: {len(given)} are too many, at most {most} are taken; give fewer")


def check_text(name: str, text: str, most: int = MOST_NAME) -> str:
    """Return a text that is not too long."""
    if len(text) > most:
        raise ConfigError(
            f"{name}: {len(text)} characters are too many, at most {most} are taken: {quoted(text)}"
        )
    return text


def strings(name: str, given: object, most: int) -> tuple[str, ...]:
    """Return a list of strings, neither too many nor too long."""
    if not isinstance(given, list | tuple):
        raise ConfigError(f"{name}: expected a list of strings, got {quoted(given)}")
    check_count(name, given, most)
    if not all(isinstance(one, str) for one in given):
        raise ConfigError(f"{name}: expected a list of strings, got {quoted(given)}")
    return tuple(check_text(name, one) for one in given)


def seconds(given: object) -> float:
    """Return a time span such as ``7d`` in seconds."""
    short = isinstance(given, str) and len(given) <= _LONGEST_SPAN
    match = _SPAN.fullmatch(given) if short and isinstance(given, str) else None
    if match is None:
        raise ConfigError(
            f"within {quoted(given)}: expected a number and one of ms, s, m, h, d, w, such as 7d"
        )
    return float(match[1]) * _SECONDS[match[2]]


def check_whole(name: str, value: object, low: int, high: int, *, optional: bool = False) -> None:
    """Raise ``ConfigError`` unless a value is a whole number of ``low`` to ``high``."""
    if optional and value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigError(f"{name}: expected a whole number of {low} to {high}, got {quoted(value)}")


def check_share(name: str, value: object) -> None:
    """Raise ``ConfigError`` unless a value is a number of 0 to 1, or None."""
    if value is None:
        return
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ConfigError(f"{name}: expected a number of 0 to 1, got {quoted(value)}")


def check_truth(name: str, value: object) -> None:
    """Raise ``ConfigError`` unless a value is true or false."""
    if not isinstance(value, bool):
        raise ConfigError(f"{name}: expected true or false, got {quoted(value)}")


def read_source_filter(given: object) -> SourceFilter:
    """Read a ``_source`` filter in the engines' own forms.

    Raises:
        ConfigError: it is not valid.
    """
    if given is None or isinstance(given, bool):
        return SourceFilter(wanted=given is not False)
    if isinstance(given, str):
        return SourceFilter(includes=(check_text("_source", given),))
    if not isinstance(given, Mapping):
        return SourceFilter(includes=strings("_source", given, MOST_PATTERNS))
    check_known("key of _source", given, _FILTER_KEYS)
    return SourceFilter(True, _patterns(given, "include"), _patterns(given, "exclude"))


def _patterns(given: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = given.get(f"{name}s", given.get(name)) or ()
    return strings(f"_source {name}s", [found] if isinstance(found, str) else found, MOST_PATTERNS)


def check_levels(body: Mapping[str, Any]) -> None:
    """Raise ``ConfigError`` where a request is nested too deep, or has a number no engine can read.

    Cost: about 50 ns a value; it neither recurs nor copies.
    """
    level: list[Any] = [body]
    for _ in range(MOST_LEVELS):
        level = [one for part in level for one in _parts(part) if _is_part(one)]
        if not level:
            return
    raise ConfigError(
        f"the request has more than {MOST_LEVELS} objects and lists within each other: make it flatter"
    )


def _parts(part: Any) -> Iterable[Any]:  # noqa: ANN401 - JSON
    return part.values() if isinstance(part, Mapping) else part


def _is_part(value: object) -> bool:
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise ConfigError(f"the request holds {quoted(value)}, which no engine can read: take it out")
    return isinstance(value, Mapping | list | tuple)
