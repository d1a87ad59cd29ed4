"""Belarusian for shinglefold: removes endings, and on request function words."""

from importlib.resources import files

from shinglefold.contracts.language import Language
from shinglefold.model.scheme import CanonOptions
from shinglefold.model.values import Sample


class Belarusian(Language):
    """Belarusian, by a list of function words and a list of endings."""

    code = "be"
    scripts = frozenset({"Cyrl"})
    marks = "ўіэ"
    modes = frozenset({"stem"})
    fold = {ord("ё"): "е", ord("ґ"): "г"}  # noqa: RUF012 - never changed
    idempotent = False
    samples = (
        Sample("Кнігі чытаюць дзеці", "кніга, чытаюць дзецям", True),
        Sample("Мы былі ў лесе", "Былі: лес!", True),
        Sample("Сям’я і аб'ект", "СЯМʼЯ, АБ`ЕКТЫ", True),
        Sample("Курс рубля вырас на біржы", "Зборная выйграла матч", False),
    )

    def __init__(self, options: CanonOptions) -> None:
        super().__init__(options)
        self._dropped = _words("function_words.txt") if options.drop_function_words else frozenset()
        self._endings = sorted(_words("endings.txt"), key=len, reverse=True) if self.mode == "stem" else []

    def canonical(self, word: str) -> str | None:
        """Return the word without its ending, or None for a function word."""
        if word in self._dropped:
            return None
        ending = next((end for end in self._endings if word.endswith(end) and len(word) > len(end) + 2), "")
        return word.removesuffix(ending)


def _words(name: str) -> frozenset[str]:
    return frozenset(files(__package__ or "").joinpath(name).read_text("utf-8").split())
