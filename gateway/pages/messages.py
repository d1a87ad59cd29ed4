"""The messages of the pages in four languages, with their formats of numbers."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

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
        return text.format_map({name: self.written(value) for name, value in values.items()})

    def written(self, value: object) -> str:
        """Return a value in the language's format: whole numbers by thousands, shares with two digits."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return str(value)
        if isinstance(value, int):
            return self._localized(f"{value:,}")
        size = abs(value)
        form = ",.0f" if size >= 10 else ".2f" if size >= 0.01 or not value else ".2g"
        return self._localized(f"{value:{form}}")

    def percent(self, share: float) -> str:
        """Return a share as a percentage."""
        return self._localized(f"{share:.1%}" if 0 < share < 0.1 else f"{share:.0%}")

    def _localized(self, number: str) -> str:
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
