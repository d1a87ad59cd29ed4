"""Morphological analysis of Russian and Ukrainian words by pymorphy3."""

from collections.abc import Callable, Set
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple


class Parse(NamedTuple):
    """One reading of a word: its lemma, and its grammemes, which include the part of speech."""

    lemma: str
    grammemes: Set[str]


class Morphology:
    """The analyzer of a language, loaded at the first word; instances share a dictionary.

    Two threads may both load it at their first word, and one copy is dropped. A lock would be worse: a
    process forked while it is locked could never analyze a word.
    """

    def __init__(self, code: str) -> None:
        self._code = code
        self._analyze: Callable[[str], list[Any]] | None = None
        self._first: Callable[[str], Parse | None] | None = None

    def parses(self, word: str) -> list[Parse]:
        """Return the readings of a lower-case word, best first if the dictionary has scores.

        Cost: 10–150 µs; the first call loads the dictionary, about 0.05 s and 20 MB.
        """
        analyze = self._analyze or self._load()
        return [Parse(parse[2], parse[1].grammemes) for parse in analyze(word)]

    def best(self, word: str) -> Parse:
        """Return the first of ``parses``. Cost: 5 µs for a word in the dictionary."""
        find = self._first or self._load_first()
        return find(word) or self.parses(word)[0]

    def knows(self, word: str) -> bool:
        """Return whether the dictionary has a word. Cost: 2 µs."""
        known: bool = _analyzer(self._code, self._path()).word_is_known(word)
        return known

    def _load_first(self) -> Callable[[str], Parse | None]:
        self._load()
        self._first = _first_by_lookup(self._code, self._path())
        return self._first

    def _path(self) -> str:
        # The dictionary is loaded by path, because an environment variable can override that of a language.
        path: str = import_module(f"pymorphy3_dicts_{self._code}").get_path()
        return path

    def _load(self) -> Callable[[str], list[Any]]:
        analyze: Callable[[str], list[Any]] = _analyzer(self._code, self._path()).parse
        self._analyze = analyze
        return analyze


# Shared by all instances: the analyzer never changes.
@cache
def _analyzer(code: str, path: str) -> Any:  # noqa: ANN401 - pymorphy3's analyzer, which has no types
    from pymorphy3 import MorphAnalyzer

    plain: Any = None  # plain tuples instead of objects; the parameter's hint forgets it
    return MorphAnalyzer(path=path, lang=code, result_type=plain)


@cache
def _first_by_lookup(code: str, path: str) -> Callable[[str], Parse | None]:
    """Return a function from a lower-case word to its first reading, None if the dictionary lacks the word.

    pymorphy3 computes lemmas and scores of all readings. This function computes the lemma of the best reading
    only, and no score if there is only one reading.
    """
    analyzer = _analyzer(code, path)
    try:
        dictionary, chances = analyzer.dictionary, analyzer.prob_estimator.p_t_given_w.get
        similar, replaced = dictionary.words.similar_items, analyzer.char_substitutes
        paradigms, tags, lemma_of = dictionary.paradigms, dictionary.gramtab, dictionary.build_normal_form
    except AttributeError:
        # An unknown version of pymorphy3, or a dictionary without probabilities.
        return lambda _: None
    written = [f":{tag}" for tag in tags]

    def tag_at(paradigm: int, form: int) -> int:
        # A paradigm has equally many endings, tags and prefixes.
        rules = paradigms[paradigm]
        tag: int = rules[len(rules) // 3 + form]
        return tag

    def first(word: str) -> Parse | None:
        found = [(spelling, *place) for spelling, places in similar(word, replaced) for place in places]
        if not found:
            return None
        spelling, paradigm, form = found[0]
        tag, best = tag_at(paradigm, form), 0
        for other in found if len(found) > 1 else ():
            # The first of equals, and the first of all if none has a probability.
            number = tag_at(*other[1:])
            if (chance := chances(word + written[number], 0)) > best:
                best, tag, (spelling, paradigm, form) = chance, number, other
        return Parse(lemma_of(paradigm, form, spelling), tags[tag].grammemes)

    return first
