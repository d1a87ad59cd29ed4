"""Russian: lemmas by pymorphy3, or Snowball stems."""

import re
from types import MappingProxyType
from typing import ClassVar

from shinglefold.contracts.language import Language
from shinglefold.model.scheme import CanonOptions, Mode
from shinglefold.model.values import Sample
from shinglefold.plugins.resources import Morphology, Snowball, distribution_version, require

_RULES = "1"
_NEEDED = ("ru", "Russian", "pymorphy3", "pymorphy3_dicts_ru")
_FUNCTIONAL = frozenset({"PREP", "CONJ", "PRCL", "NPRO", "INTJ", "Apro"})
_ADJECTIVES = frozenset({"ADJF", "ADJS"})
# Longer strings are not words; the limit bounds the time of an analysis.
_WORD = re.compile(r"[а-я'-]{1,64}")


class Russian(Language):
    """Russian. The dictionary has probabilities, so the first reading decides."""

    code = "ru"
    scripts = frozenset({"Cyrl"})
    marks = "ыэъё"
    precedence = 10
    modes: ClassVar[frozenset[Mode]] = frozenset({"lemma", "stem"})
    fold = MappingProxyType({ord("ё"): "е"})
    lexical = True
    # The lemma of "ели" is "есть", whose own lemma is "быть".
    idempotent = False
    values = (
        "ноль два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать "
        "четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать двадцать тридцать сорок "
        "пятьдесят шестьдесят семьдесят восемьдесят девяносто сто двести триста четыреста пятьсот шестьсот "
        "семьсот восемьсот девятьсот тысяча миллион миллиард полтора половина треть четверть вдвое втрое "
        "дважды трижды первый второй третий четвёртый пятый шестой седьмой восьмой девятый десятый январь "
        "февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь понедельник вторник среда "
        "четверг пятница суббота воскресенье утро вечер ночь минута час день сутки неделя месяц год "
        "десятилетие столетие век"
    )
    negations = "не ни нет без никогда нельзя"
    samples = (
        Sample("Серые коты спали на тёплых крышах", "серый кот спал на теплой крыше", True),
        Sample("Дети читают книги", "ДЕТЯМ ЧИТАЛИ КНИГУ", True),
        Sample("Он бы пошёл и в лес, если бы не дождь", "Пойти: лес, дождь!", True),
        Sample("Её ёлка, их ёлки", "елка елка", True),
        Sample("Новые ножницы и брюки", "новыми ножницами, брюками", True),
        Sample("Съезд объявили открытым", "съезды объявлены открытыми", True),
        Sample("Курс рубля вырос на бирже", "Сборная выиграла вчерашний матч", False),
        Sample("Установите программу и перезагрузите компьютер", "Нарежьте лук и обжарьте морковь", False),
    )

    def __init__(self, options: CanonOptions) -> None:
        require(*_NEEDED)
        super().__init__(options)
        self._mode = self.mode
        self._dropped = (_FUNCTIONAL if options.drop_function_words else frozenset()) | (
            _ADJECTIVES if options.drop_adjectives else frozenset()
        )
        self._morphology = Morphology("ru")
        self._stemmer = Snowball("russian")

    @classmethod
    def version(cls) -> str:
        """Return the revision of these rules and the version of the dictionary."""
        require(*_NEEDED)
        return f"{_RULES}+{distribution_version('ru', 'Russian', 'pymorphy3-dicts-ru')}"

    def knows(self, word: str) -> bool:
        """Return whether the dictionary has a word."""
        return _WORD.fullmatch(word) is not None and self._morphology.knows(word)

    def canonical(self, word: str) -> str | None:
        """Return the lemma, the stem or the word itself; None if the options drop it."""
        if not _WORD.fullmatch(word):
            return word
        if self._dropped or self._mode == "lemma":
            lemma, grammemes = self._morphology.best(word)
            if not self._dropped.isdisjoint(grammemes):
                return None
            if self._mode == "lemma":
                return lemma.replace("ё", "е")
        return self._stemmer.stem(word) if self._mode == "stem" else word
