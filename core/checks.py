"""The one validator of options: what a value may be, said the same way wherever it was given.

Each check names the option, what is expected and what came (cut short). ``error`` is what a room raises: the
embedded engine refuses as servers do, the others with ``ConfigError``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from shinglefold.errors import ConfigError, ShinglefoldError
from shinglefold.quoted import quoted, shortened

#: Characters of a field's name or of a value, unless told.
MOST_NAME = 512
Fault = Callable[[str], ShinglefoldError]


def expected(name: str, what: str, value: object, error: Fault = ConfigError) -> ShinglefoldError:
    """Return the error for a value that is not ``what`` an option takes."""
    return error(f"{name}: expected {what}, got {quoted(value)}")


def check_known(what: str, given: Iterable[object], known: Sequence[str]) -> None:
    """Raise ``ConfigError`` where an object has a key that nobody knows; it names the nearest one known."""
    for name in given:
        if name not in known:
            raise ConfigError.unknown(what, str(name), known)


def check_count(name: str, given: Sequence[object], most: int) -> None:
    """Raise ``ConfigError`` where a list is longer than it may be."""
    if len(given) > most:
        raise ConfigError(f"{name}: {len(given)} are too many, at most {most} are taken; give fewer")


def check_text(name: str, text: str, most: int = MOST_NAME) -> str:
    """Return a text that is not too long."""
    if len(text) > most:
        raise ConfigError(
            f"{name}: {len(text)} characters are too many, at most {most} are taken: {quoted(text)}"
        )
    return text


def check_choice(name: str, value: object, known: Sequence[str]) -> None:
    """Raise ``ConfigError`` unless a value is one of a few; it names the nearest."""
    if value not in known:
        raise ConfigError.unknown(name, shortened(value), known)


def check_is_text(name: str, value: object, *, empty: bool = False, error: Fault = ConfigError) -> str:
    """Return a text; one without characters only where ``empty`` says so."""
    if not isinstance(value, str) or not (value or empty):
        raise expected(name, "text" if empty else "text that is not empty", value, error)
    return value


def strings(name: str, given: object, most: int) -> tuple[str, ...]:
    """Return a list of strings, neither too many nor too long."""
    if not isinstance(given, list | tuple):
        raise expected(name, "a list of strings", given)
    check_count(name, given, most)
    if not all(isinstance(one, str) for one in given):
        raise expected(name, "a list of strings", given)
    return tuple(check_text(name, one) for one in given)


def check_whole(
    name: str,
    value: object,
    low: int = 0,
    high: int | None = None,
    *,
    optional: bool = False,
    error: Fault = ConfigError,
) -> None:
    """Raise unless a value is a whole number of ``low`` to ``high``, or None where it is optional."""
    if optional and value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not _within(value, low, high):
        raise expected(name, f"a whole number {_range(low, high)}", value, error)


def check_number(
    name: str,
    value: object,
    low: float = 0,
    high: float | None = None,
    *,
    above: bool = False,
    optional: bool = False,
    error: Fault = ConfigError,
) -> None:
    """Raise unless a value is a number of ``low`` (``above``: above it) to ``high``, or None if optional."""
    if optional and value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not _within(value, low, high) or (above and value == low):  # type: ignore[arg-type]
        raise expected(name, f"a number {_range(low, high, above)}", value, error)


def check_share(name: str, value: object) -> None:
    """Raise ``ConfigError`` unless a value is a number of 0 to 1, or None."""
    check_number(name, value, 0, 1, optional=True)


def check_truth(name: str, value: object, error: Fault = ConfigError) -> None:
    """Raise unless a value is true or false."""
    if not isinstance(value, bool):
        raise expected(name, "true or false", value, error)


def check_object(name: str, value: object, like: str, error: Fault = ConfigError) -> Mapping[str, Any]:
    """Return an object; ``like`` says what it would hold."""
    if not isinstance(value, Mapping):
        raise expected(name, like, value, error)
    return value


def _within(value: float, low: float, high: float | None) -> bool:
    return value >= low and (high is None or value <= high)


def _range(low: float, high: float | None, above: bool = False) -> str:
    if above:
        return f"above {low}" + ("" if high is None else f", at most {high}")
    return f"of at least {low}" if high is None else f"of {low} to {high}"
