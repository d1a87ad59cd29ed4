"""The parameters of a page: read from its address, checked, and written into addresses."""

import math
from collections.abc import Collection, Mapping
from urllib.parse import urlencode

from shinglefold.errors import ConfigError, shorten

#: Parameters of every page.
COMMON = ("lang", "format")
#: The most characters of a parameter that names something; texts may be longer.
_LONGEST = 2_000


class PageParameters:
    """The parameters of one request.

    Args:
        given: as they stand in the address.
        known: the names that the page has.

    Raises:
        ConfigError: one of the names is unknown.
    """

    def __init__(self, given: Mapping[str, str], known: Collection[str]) -> None:
        self._given = given
        for name in given:
            if name not in known and name not in COMMON:
                raise ConfigError.unknown("parameter of this page", name, sorted({*known, *COMMON}))

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter as it is given, also a long one."""
        return self._given.get(name) or default

    def word(self, name: str, default: str = "") -> str:
        """Return a parameter that names something, without surrounding space; refuse a long one."""
        found = self.text(name, default)
        if len(found) > _LONGEST:
            raise ConfigError(f"{name} has {len(found):,} characters; give at most {_LONGEST:,}")
        return found.strip()

    def count(self, name: str, default: int, low: int, high: int) -> int:
        """Return a whole number; raise ``ConfigError`` if it is none, or out of range."""
        given = self.word(name)
        if not given:
            return default
        # int() also reads digits of other scripts, and underscores.
        if not (given.isascii() and given.isdigit() and len(given) <= 18 and low <= int(given) <= high):
            raise ConfigError(f"{name}={shorten(given)}: expected a whole number from {low:,} to {high:,}")
        return int(given)

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """Return a number between two others, both excluded unless they are the default."""
        given = self.word(name)
        if not given:
            return default
        try:
            found = float(given.replace(",", "."))
        except ValueError:
            found = math.nan
        if not low < found < high:
            raise ConfigError(f"{name}={shorten(given)}: expected a number between {low:g} and {high:g}")
        return found

    def flag(self, name: str) -> bool:
        """Return whether a parameter is set."""
        return self.word(name) not in ("", "0", "false")


def address(path: str, parameters: Mapping[str, object]) -> str:
    """Return a path with those parameters that have a value."""
    given = {name: str(value) for name, value in parameters.items() if value not in (None, "", False)}
    # A stored id may have half a surrogate pair, which no address can have.
    return f"{path}?{urlencode(given, errors='replace')}" if given else path
