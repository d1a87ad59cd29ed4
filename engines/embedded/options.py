"""Refuse what is not known, by name: an option that is silently ignored is a wrong answer."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from shinglefold.errors import UnsupportedQuery


def unsupported(what: str, name: str, known: Iterable[str]) -> UnsupportedQuery:
    """Return the error for a name the embedded engine does not know, with the nearest one it does."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return UnsupportedQuery(
        f"the embedded engine supports no {what} {name!r}{hint} Supported: {', '.join(names) or 'none'}."
    )


def checked(what: str, given: object, known: Iterable[str]) -> Mapping[str, Any]:
    """Return an object of options after making sure that every key is known.

    Raises:
        UnsupportedQuery: it is no object, or has a key that is not known.
    """
    names = tuple(known)
    if not isinstance(given, Mapping):
        raise UnsupportedQuery(f"{what}: expected an object with {', '.join(names)}, got {given!r}")
    for key in given:
        if key not in names:
            raise unsupported(f"option of {what}", str(key), names)
    return given


def single(what: str, given: object) -> tuple[str, Any]:
    """Return key and value of an object that must have exactly one key."""
    if not isinstance(given, Mapping) or len(given) != 1:
        raise UnsupportedQuery(f"{what}: expected an object with exactly one key, got {given!r}")
    key, value = next(iter(given.items()))
    return str(key), value


def whole(what: str, value: object, low: int = 0) -> int:
    """Return a whole number of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise UnsupportedQuery(f"{what}: expected a whole number of at least {low}, got {value!r}")
    return value


def number(what: str, value: object, low: float = 0.0) -> float:
    """Return a number of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= low:
        raise UnsupportedQuery(f"{what}: expected a number of at least {low}, got {value!r}")
    return float(value)


def truth(what: str, value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise UnsupportedQuery(f"{what}: expected true or false, got {value!r}")
    return value


def strings(what: str, value: object) -> tuple[str, ...]:
    """Return strings given as one or as a list."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise UnsupportedQuery(f"{what}: expected a string or a list of strings, got {value!r}")
    return tuple(items)
