"""Dictionary analysis of Russian and Ukrainian words by pymorphy3."""

from collections.abc import Callable, Set
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple


class Parse(NamedTuple):
    """One reading of a word: its dictionary form, and its grammemes (part of speech included)."""

    lemma: str
    grammemes: Set[str]


class Morphology:
    """The analyzer of a language, loaded at the first word; a process has one of each dictionary.

    Two threads that bring the first word at once may both load it, and one copy is thrown away: a lock would
    be dearer, since a process forked while it is held could never analyze a word.
    """

    def __init__(self, code: str) -> None:
        self._code = code
        self._analyze: Callable[[str], list[Any]] | None = None
        self._first: Callable[[str], Parse | None] | None = None

    def parses(self, word: str) -> list[Parse]:
        """Return the readings of a word of lower-case letters, best first where the dictionary has scores.

        Cost: 10–150 µs; the first call loads the dictionary, about 0.05 s and 20 MB.
        """
        analyze = self._analyze or self._load()
        return [Parse(parse[2], parse[1].grammemes) for parse in analyze(word)]

    def best(self, word: str) -> Parse:
        """Return the first of ``parses``. Cost: 5 µs for a word that the dictionary has."""
        find = self._first or self._load_first()
        return find(word) or self.parses(word)[0]

    def _load_first(self) -> Callable[[str], Parse | None]:
        self._load()
        self._first = _first_by_lookup(self._code, self._path())
        return self._first

    def _path(self) -> str:
        # By path: looked up by language, an environment variable could bring in another dictionary.
        path: str = import_module(f"pymorphy3_dicts_{self._code}").get_path()
        return path

    def _load(self) -> Callable[[str], list[Any]]:
        analyze: Callable[[str], list[Any]] = _analyzer(self._code, self._path()).parse
        self._analyze = analyze
        return analyze


# A search and the fingerprints of one command use the same words; nothing of it ever changes.
@cache
def _analyzer(code: str, path: str) -> Any:  # noqa: ANN401 - pymorphy3's analyzer, which has no types
    from pymorphy3 import MorphAnalyzer

    plain: Any = None  # plain tuples instead of objects; the parameter's hint forgets it
    return MorphAnalyzer(path=path, lang=code, result_type=plain)


@cache
def _first_by_lookup(code: str, path: str) -> Callable[[str], Parse | None]:
    """Return what finds the first reading of a word in lower case that the dictionary has, else None.

    pymorphy3 makes all readings, with their lemmas and scores; here only the best gets a lemma, and the
    readings of a word that has one are not scored.
    """
    analyzer = _analyzer(code, path)
    try:
        dictionary, chances = analyzer.dictionary, analyzer.prob_estimator.p_t_given_w.get
        similar, replaced = dictionary.words.similar_items, analyzer.char_substitutes
        paradigms, tags, lemma_of = dictionary.paradigms, dictionary.gramtab, dictionary.build_normal_form
    except AttributeError:
        # Another version than this was written for, or a dictionary without probabilities.
        return lambda _: None
    written = [f":{tag}" for tag in tags]

    def tag_at(paradigm: int, form: int) -> int:
        # A paradigm has as many endings as tags, and as prefixes.
        rules = paradigms[paradigm]
        tag: int = rules[len(rules) // 3 + form]
        return tag

    def first(word: str) -> Parse | None:
        found = [(said, *place) for said, places in similar(word, replaced) for place in places]
        if not found:
            return None
        said, paradigm, form = found[0]
        tag, best = tag_at(paradigm, form), 0
        for other in found if len(found) > 1 else ():
            # The first of equals; where none has a probability, the first of all.
            number = tag_at(*other[1:])
            if (chance := chances(word + written[number], 0)) > best:
                best, tag, (said, paradigm, form) = chance, number, other
        return Parse(lemma_of(paradigm, form, said), tags[tag].grammemes)

    return first
