"""What pages share: the index, cached slow results, parameters, and messages in four languages."""

import math
import tomllib
from collections.abc import Callable, Collection, Hashable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from threading import Lock
from time import monotonic
from typing import Any
from urllib.parse import urlencode

from shinglefold.api.folded_index import FoldedIndex
from shinglefold.errors import ConfigError, EngineUnavailable, complete_commands, shorten

#: Parameters of every page.
_COMMON = ("lang", "format")
#: The most characters of a parameter that names something; texts may be longer.
_LONGEST = 2_000
_SECONDS = 60.0
#: The most results in the cache, and the most that are computed at the same time.
_MOST, _AT_ONCE = 16, 2


class Recent:
    """A cache of results of the last minute, by request; threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        #: When each was made, which is never while it is being made.
        self._made: dict[Hashable, tuple[float, Future[Any]]] = {}

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it makes
        """Return the result of the last minute, else a new one; concurrent callers wait for the same one."""
        future: Future[Any] = Future()
        with self._lock:
            now = monotonic()
            self._made = {one: made for one, made in self._made.items() if made[0] + _SECONDS > now}
            found = self._made.get(key)
            if found is None:
                busy = sum(not made.done() for _, made in self._made.values())
                if busy >= _AT_ONCE:
                    raise EngineUnavailable(
                        f"{busy} other pages are reading whole indices at the moment: try again in a minute"
                    )
                while len(self._made) >= _MOST:
                    del self._made[next(one for one, (_, made) in self._made.items() if made.done())]
                self._made[key] = float("inf"), future
        if found is not None:
            return found[1].result()
        try:
            made = make()
        except BaseException as error:
            with self._lock:
                del self._made[key]
            future.set_exception(error)
            raise
        with self._lock:
            self._made[key] = monotonic(), future
        future.set_result(made)
        return made


def without_backquotes(text: str) -> str:
    """Return a message with its commands as they are, without the backquotes around them."""
    return complete_commands(text, lambda words: words)


@dataclass(frozen=True, slots=True)
class Shared:
    """The index of the pages; ``complete`` completes the commands of messages.

    ``reader``: who reads; results that take long are not shown to others.
    """

    index: FoldedIndex
    complete: Callable[[str], str] = without_backquotes
    recent: Recent = field(default_factory=Recent)
    reader: Hashable = None

    def once(self, kind: Hashable, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it makes
        """Return a result of the last minute, else a new one; see ``Recent``."""
        return self.recent.get((self.index.name, self.reader, kind), make)


class PageParameters:
    """The parameters of one request; raises ``ConfigError`` for a name that the page does not know."""

    def __init__(self, given: Mapping[str, str], known: Collection[str]) -> None:
        self._given = given
        for name in given:
            if name not in known and name not in _COMMON:
                raise ConfigError.unknown("parameter of this page", name, sorted({*known, *_COMMON}))

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter unchanged, of any length."""
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


#: The languages by their codes, each by its own name; the first one is the default.
LANGUAGES = {"en": "English", "ru": "Русский", "uk": "Українська", "zh": "中文"}
_ENGLISH = "en"


class Messages:
    """The messages of one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._texts = catalogue()

    def __call__(self, key: str, **values: object) -> str:
        """Return a message with values in it; numbers are written as the language writes them."""
        text = self._texts[key][self.language]
        return text.format_map({name: self.format_value(value) for name, value in values.items()})

    def format_value(self, value: object) -> str:
        """Return a value in the language's format: whole numbers by thousands, shares with two digits."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return str(value)
        if isinstance(value, int):
            return self._localize(f"{value:,}")
        size = abs(value)
        form = ",.0f" if size >= 10 else ".2f" if size >= 0.01 or not value else ".2g"
        return self._localize(f"{value:{form}}")

    def percent(self, share: float) -> str:
        """Return a share as a percentage."""
        return self._localize(f"{share:.1%}" if 0 < share < 0.1 else f"{share:.0%}")

    def _localize(self, number: str) -> str:
        if self.language not in ("ru", "uk"):
            return number
        return number.replace(",", "\N{NO-BREAK SPACE}").replace(".", ",").replace("%", "\N{NO-BREAK SPACE}%")


@cache
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """Return all messages: by key, and then by language."""
    found = tomllib.loads(
        files("shinglefold.gateway.pages").joinpath("templates", "messages.toml").read_text("utf-8")
    )
    return {f"{page}.{name}": texts for page, messages in found.items() for name, texts in messages.items()}


def chosen_language(asked: str, accepted: str) -> str:
    """Return the language of a page.

    Args:
        asked: what the address says; "" for nothing. Another language than these counts as nothing.
        accepted: the header ``Accept-Language``.
    """
    if asked in LANGUAGES:
        return asked
    wanted = []
    for place, part in enumerate(accepted.split(",")[:20]):
        name, _, weight = part.partition(";")
        code = name.strip().lower().split("-")[0]
        if code in LANGUAGES and (share := _weight(weight)) > 0:
            wanted.append((-share, place, code))
    return min(wanted)[2] if wanted else _ENGLISH


def _weight(given: str) -> float:
    try:
        return float(given.replace(" ", "").removeprefix("q=") or 1)
    except ValueError:
        return 0.0
