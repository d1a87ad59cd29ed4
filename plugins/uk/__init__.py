"""Ukrainian: lemmas by pymorphy3."""

import re
from collections import Counter
from collections.abc import Sequence, Set
from types import MappingProxyType
from typing import ClassVar

from shinglefold.contracts.language import Language
from shinglefold.model.scheme import CanonOptions, Mode
from shinglefold.model.values import Sample
from shinglefold.plugins.resources import Morphology, Parse, distribution_version, read_words, require

_RULES, _FIRST_RULES = "2", "1"
_NEEDED = ("uk", "Ukrainian", "pymorphy3", "pymorphy3_dicts_uk")
_FUNCTIONAL = frozenset({"PREP", "CONJ", "PRCL", "NPRO", "INTJ"})
_PARTICIPLES = frozenset({"actv", "pssv"})
#: Grammemes of rare readings: names, archaic, colloquial and indeclinable words, abbreviations.
_RARE = frozenset(
    {"Name", "Surn", "Patr", "Geox", "Infr", "Arch", "Fixd", "Abbr", "Slng", "Orgn", "Erro", "Dist"}
)
_ADJECTIVE_ENDS = ("ий", "ій", "їй")
_CONTENT = frozenset({"NOUN", "VERB", "INFN", "GRND"})
_WORD = re.compile(r"[а-щьюяґєії'-]{1,64}")
#: A consonant after which an apostrophe may be left out.
_BARE = re.compile(r"[бвгдзкмнпрстфх](?=[яюєї])")


class Ukrainian(Language):
    """Ukrainian. All readings of a word have the same score, so parts of speech decide, not the order."""

    code = "uk"
    scripts = frozenset({"Cyrl"})
    marks = "іїєґ"
    precedence = 20
    modes: ClassVar[frozenset[Mode]] = frozenset({"lemma"})
    fold = MappingProxyType({ord("ґ"): "г"})
    lexical = True
    idempotent = False
    values = (
        "нуль два три чотири п'ять шість сім вісім дев'ять десять одинадцять дванадцять тринадцять "
        "чотирнадцять п'ятнадцять шістнадцять сімнадцять вісімнадцять дев'ятнадцять двадцять тридцять сорок "
        "п'ятдесят шістдесят сімдесят вісімдесят дев'яносто сто двісті триста чотириста п'ятсот шістсот "
        "сімсот вісімсот дев'ятсот тисяча мільйон мільярд півтора половина третина чверть удвічі утричі "
        "двічі тричі перший другий третій четвертий п'ятий шостий сьомий восьмий дев'ятий десятий січень "
        "лютий березень квітень травень червень липень серпень вересень жовтень листопад грудень понеділок "
        "вівторок середа четвер п'ятниця субота неділя ранок вечір ніч хвилина година день доба тиждень "
        "місяць рік десятиліття століття вік"
    )
    negations = "не ні без ніколи"
    samples = (
        Sample("Діти читають книжки", "дітям читали книжку", True),
        Sample("М’ята росте біля подвір'я", "мʼята росте: подвір`ям", True),
        Sample("М‘ЯТА ТА ПОДВІР'Я", "м'ята, подвір’я", True),
        Sample("Ґрунти та ґанки", "грунт і ганок", True),
        Sample("Він ще не прийшов у ліс, бо немає стежки", "Прийти: лісом, стежкою!", True),
        Sample("їхній обʼєкт", "об'єкти", True),
        Sample("Курс гривні зріс на біржі", "Збірна виграла вчорашній матч", False),
        Sample("Встановіть програму та перезавантажте комп'ютер", "Наріжте цибулю й моркву", False),
    )

    def __init__(self, options: CanonOptions) -> None:
        require(*_NEEDED)
        super().__init__(options)
        self._mode = self.mode
        self._listed = read_words("uk", "function_words.txt") if options.drop_function_words else frozenset()
        self._common = read_words("uk", "common_words.txt")
        self._morphology = Morphology("uk")

    @classmethod
    def version(cls) -> str:
        """Return the revision of these rules and the version of the dictionary."""
        return cls._version(_RULES)

    @classmethod
    def made_as(cls, version: str) -> type[Language] | None:
        """Return the class for a version: that of the first rules, or this one."""
        return _Ukrainian1 if version == cls._version(_FIRST_RULES) else super().made_as(version)

    @classmethod
    def _version(cls, rules: str) -> str:
        require(*_NEEDED)
        return f"{rules}+{distribution_version('uk', 'Ukrainian', 'pymorphy3-dicts-uk')}"

    def knows(self, word: str) -> bool:
        """Return whether the dictionary has a word."""
        return _WORD.fullmatch(word) is not None and self._morphology.knows(self._restore_apostrophe(word))

    def canonical(self, word: str) -> str | None:
        """Return the lemma or the word itself; None if the options drop it."""
        if word in self._listed:
            return None
        if not _WORD.fullmatch(word):
            return word
        # For г the dictionary finds words with г and with ґ; folded, their lemmas are the same.
        whole = self._restore_apostrophe(word)
        parses = [Parse(lemma.replace("ґ", "г"), tags) for lemma, tags in self._morphology.parses(whole)]
        if self.options.drop_function_words and any(tags & _FUNCTIONAL for _, tags in parses):
            return None
        lemma = self._lemma(whole, parses)
        if self.options.drop_adjectives and all(_is_adjective(p) for p in parses if p.lemma == lemma):
            return None
        return lemma if self._mode == "lemma" else word

    def _restore_apostrophe(self, word: str) -> str:
        """Return a word with the apostrophe that it lacks (мясо → м'ясо), if only then it is a word."""
        places = (
            [] if "'" in word or self._morphology.knows(word) else [m.end() for m in _BARE.finditer(word)]
        )
        spellings = (f"{word[:place]}'{word[place:]}" for place in places)
        return next(filter(self._morphology.knows, spellings), word)

    def _lemma(self, word: str, parses: Sequence[Parse]) -> str:
        return likeliest_lemma(word, parses, self._common)


class _Ukrainian1(Ukrainian):
    """Ukrainian by the first rules: the lemma of most readings; the longest of several."""

    @classmethod
    def version(cls) -> str:
        return cls._version(_FIRST_RULES)

    def _lemma(self, word: str, parses: Sequence[Parse]) -> str:
        counts = Counter(parse.lemma for parse in parses)
        return max(counts, key=lambda lemma: (counts[lemma], len(lemma), lemma))


def likeliest_lemma(word: str, parses: Sequence[Parse], common: Set[str] = frozenset()) -> str:
    """Return the lemma of the likeliest reading.

    Of equally likely ones, a common word wins, then the word itself, then the longest.

    The rank of a reading depends mostly on its lemma, so all forms of a word get the same lemma. Counting
    readings would not achieve this, because forms stand for different numbers of cases. Infinitives are
    longer than the nouns that share forms with them.
    """
    likely: dict[str, int] = {}
    for parse in parses:
        likely[parse.lemma] = max(likely.get(parse.lemma, 0), _likeliness(parse))
    return max(likely, key=lambda lemma: (likely[lemma], lemma in common, lemma == word, len(lemma), lemma))


def _likeliness(parse: Parse) -> int:
    """Return the rank of a reading, by part of speech and rare grammemes."""
    tags = parse.grammemes
    if tags & _RARE:
        return 0
    adjective = "ADJF" in tags
    # Possessives: людин, часів.
    if (adjective and not parse.lemma.endswith(_ADJECTIVE_ENDS)) or "impr" in tags:
        return 1
    if "Pltm" in tags or "ADVB" in tags:
        return 2
    # Adjectives rank above nouns made from them (новий, нова), function words above everything.
    return 3 if tags & _CONTENT and not adjective else 4


def _is_adjective(parse: Parse) -> bool:
    """Return whether a reading is an adjective, and not a participle with the same tag."""
    return "ADJF" in parse.grammemes and not parse.grammemes & _PARTICIPLES
