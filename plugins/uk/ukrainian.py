"""Ukrainian words to lemmas."""

import re
from collections import Counter
from collections.abc import Sequence
from types import MappingProxyType
from typing import ClassVar

from shinglefold.language import Language
from shinglefold.model import Sample
from shinglefold.plugins.data import distribution_version, read_words, require
from shinglefold.plugins.morphology import Morphology, Parse
from shinglefold.scheme import CanonOptions, Mode

_RULES = "1"
_NEEDED = ("uk", "Ukrainian", "pymorphy3", "pymorphy3_dicts_uk")
_FUNCTIONAL = frozenset({"PREP", "CONJ", "PRCL", "NPRO", "INTJ"})
_PARTICIPLES = frozenset({"actv", "pssv"})
_WORD = re.compile(r"[а-щьюяґєії'-]{1,64}")


class Ukrainian(Language):
    """Ukrainian. All readings of a word have the same score, so all of them are asked, not the first."""

    code = "uk"
    scripts = frozenset({"Cyrl"})
    marks = "іїєґ"
    precedence = 20
    modes: ClassVar[frozenset[Mode]] = frozenset({"lemma"})
    fold = MappingProxyType({ord("ґ"): "г"})
    idempotent = False
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
        self._morphology = Morphology("uk")

    @classmethod
    def version(cls) -> str:
        """Return the revision of these rules and the version of the dictionary."""
        require(*_NEEDED)
        return f"{_RULES}+{distribution_version('uk', 'Ukrainian', 'pymorphy3-dicts-uk')}"

    def canonical(self, word: str) -> str | None:
        """Return the lemma or the word itself, or None for what the options drop."""
        if word in self._listed:
            return None
        if not _WORD.fullmatch(word):
            return word
        # The dictionary tells ґ from г and finds both for г; folded, the lemmas of both count together.
        parses = [Parse(lemma.replace("ґ", "г"), tags) for lemma, tags in self._morphology.parses(word)]
        if self.options.drop_function_words and any(tags & _FUNCTIONAL for _, tags in parses):
            return None
        lemma = _most_frequent(parses)
        if self.options.drop_adjectives and all(_is_adjective(p) for p in parses if p.lemma == lemma):
            return None
        return lemma if self._mode == "lemma" else word


def _most_frequent(parses: Sequence[Parse]) -> str:
    """Return the lemma of most readings; the longest of several, which is most often the infinitive."""
    counts = Counter(parse.lemma for parse in parses)
    return max(counts, key=lambda lemma: (counts[lemma], len(lemma), lemma))


def _is_adjective(parse: Parse) -> bool:
    """Tell adjectives from the participles that share their tag."""
    return "ADJF" in parse.grammemes and not parse.grammemes & _PARTICIPLES
