"""Checks of option values, with one form of message for all.

Each message names the option, the expected value, and the given value, cut short. ``error`` is the class to
raise: the embedded engine raises what servers raise, all other packages ``ConfigError``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import iscoroutinefunction
from os import PathLike
from pathlib import Path
from typing import Any

from shinglefold.errors import ConfigError, ShinglefoldError, quote, shorten

#: The default limit of names and values, in characters.
MOST_NAME = 512
#: More worker processes than any machine has cores; a mistyped number would exhaust the system.
_MOST_WORKERS = 1024
ErrorClass = Callable[[str], ShinglefoldError]


def expected(name: str, what: str, value: object, error: ErrorClass = ConfigError) -> ShinglefoldError:
    """Return the error for a wrong value; ``what`` describes the expected one."""
    return error(f"{name}: expected {what}, got {quote(value)}")


def check_known(what: str, given: Iterable[object], known: Sequence[str]) -> None:
    """Raise ``ConfigError`` for an unknown key; it suggests the nearest known one."""
    for name in given:
        if name not in known:
            raise ConfigError.unknown(what, str(name), known)


def check_count(name: str, given: Sequence[object], most: int) -> None:
    """Raise ``ConfigError`` if a list has more than ``most`` items."""
    if len(given) > most:
        raise ConfigError(f"{name}: {len(given)} are too many, at most {most} are taken; give fewer")


def check_name(name: str, text: str, most: int = MOST_NAME) -> str:
    """Return a string of at most ``most`` characters; it may be empty."""
    check_str(name, text, empty=True)
    if len(text) > most:
        raise ConfigError(
            f"{name}: {len(text)} characters are too many, at most {most} are taken: {quote(text)}"
        )
    return text


def check_choice(name: str, value: object, known: Sequence[str]) -> None:
    """Raise ``ConfigError`` unless a value is one of the known ones; it suggests the nearest."""
    if value not in known:
        raise ConfigError.unknown(name, shorten(value), known)


def check_str(name: str, value: object, *, empty: bool = False) -> str:
    """Return a string; it must not be empty unless ``empty`` is true."""
    if not isinstance(value, str) or not (value or empty):
        raise expected(name, "text" if empty else "text that is not empty", value)
    return value


def check_type(name: str, value: object, kind: type, how: str, *, optional: bool = False) -> None:
    """Raise ``ConfigError`` unless a value is an instance, or None if optional; ``how`` describes it."""
    if not isinstance(value, kind) and not (optional and value is None):
        raise expected(name, how, value)


def check_options(value: object, kind: type) -> None:
    """Raise ``ConfigError`` unless a value is an options object of a class, or None."""
    check_type("options", value, kind, f"{kind.__name__}(…)", optional=True)


def check_path(name: str, value: object) -> Path:
    """Return a path; raise if it is empty, as an unset shell variable makes it."""
    if not isinstance(value, str | PathLike) or not str(value):
        raise expected(name, "a path that is not empty", value)
    return Path(value)


def check_engine(given: object, *, awaited: bool = False) -> None:
    """Raise ``ConfigError`` unless a value is an engine, a blocking one unless ``awaited``."""
    if isinstance(given, str | PathLike):
        # The address is not quoted: it may contain a password.
        raise ConfigError(
            "engine: expected an engine, got an address; open it: open_engine(address) (from "
            "shinglefold.engines)"
        )
    search = getattr(given, "search", None)
    if not callable(search):
        raise expected("engine", "one that open_engine (from shinglefold.engines) opens", given)
    if iscoroutinefunction(search) and not awaited:
        raise ConfigError(
            f"engine: the methods of {type(given).__name__} are awaited; give an engine that blocks, or "
            "use the async classes (AsyncFoldedSearch, AsyncSimilarSearch, AsyncGate …)"
        )


def check_strings(name: str, given: object, most: int) -> tuple[str, ...]:
    """Return strings as a tuple; raise if they are too many or too long."""
    if not isinstance(given, list | tuple):
        raise expected(name, "a list of strings", given)
    check_count(name, given, most)
    if not all(isinstance(one, str) for one in given):
        raise expected(name, "a list of strings", given)
    return tuple(check_name(name, one) for one in given)


def check_texts(texts: object) -> None:
    """Raise ``ConfigError`` unless texts are a sequence of strings, and not one string."""
    if isinstance(texts, str | bytes):
        raise ConfigError("one string instead of a list of texts; give [text]")
    if not isinstance(texts, Sequence):
        raise expected("texts", "a list of texts", texts)
    for kind in set(map(type, texts)):
        # Long texts may be objects that are cut into pieces like strings.
        if issubclass(kind, bytes | Mapping | list | tuple) or not hasattr(kind, "__len__"):
            raise expected("a text", "text", next(one for one in texts if type(one) is kind))


def check_int(
    name: str,
    value: object,
    low: int = 0,
    high: int | None = None,
    *,
    optional: bool = False,
    error: ErrorClass = ConfigError,
) -> None:
    """Raise unless a value is a whole number from ``low`` to ``high``, or None if optional."""
    if optional and value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not _within(value, low, high):
        raise expected(name, f"a whole number {_range(low, high)}", value, error)


def check_workers(name: str, value: object) -> None:
    """Raise ``ConfigError`` unless a value is a number of processes; 0 means one per core."""
    check_int(name, value, 0, _MOST_WORKERS)


def check_number(
    name: str,
    value: object,
    low: float = 0,
    high: float | None = None,
    *,
    above: bool = False,
    optional: bool = False,
    error: ErrorClass = ConfigError,
) -> None:
    """Raise unless a value is a number from ``low`` (``above``: above it) to ``high``; see ``check_int``."""
    if optional and value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not _within(value, low, high) or (above and value == low):  # type: ignore[arg-type]
        raise expected(name, f"a number {_range(low, high, above)}", value, error)


def check_fraction(name: str, value: object) -> None:
    """Raise ``ConfigError`` unless a value is a number from 0 to 1, or None."""
    check_number(name, value, 0, 1, optional=True)


def check_bool(name: str, value: object, error: ErrorClass = ConfigError) -> None:
    """Raise unless a value is a bool."""
    if not isinstance(value, bool):
        raise expected(name, "true or false", value, error)


def check_object(name: str, value: object, like: str, error: ErrorClass = ConfigError) -> Mapping[str, Any]:
    """Return a mapping; ``like`` describes it in the message."""
    if not isinstance(value, Mapping):
        raise expected(name, like, value, error)
    return value


def _within(value: float, low: float, high: float | None) -> bool:
    return value >= low and (high is None or value <= high)


def _range(low: float, high: float | None, above: bool = False) -> str:
    if above:
        return f"above {low}" + ("" if high is None else f", at most {high}")
    return f"of at least {low}" if high is None else f"of {low} to {high}"
