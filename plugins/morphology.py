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

    def parses(self, word: str) -> list[Parse]:
        """Return the readings of a word of lower-case letters, best first where the dictionary has scores.

        Cost: 10–150 µs; the first call loads the dictionary, about 0.05 s and 20 MB.
        """
        analyze = self._analyze or self._load()
        return [Parse(parse[2], parse[1].grammemes) for parse in analyze(word)]

    def _load(self) -> Callable[[str], list[Any]]:
        # By path: looked up by language, an environment variable could bring in another dictionary.
        path = import_module(f"pymorphy3_dicts_{self._code}").get_path()
        self._analyze = _analyzer(self._code, path)
        return self._analyze


# A search and the fingerprints of one command use the same words; nothing of it ever changes.
@cache
def _analyzer(code: str, path: str) -> Callable[[str], list[Any]]:
    from pymorphy3 import MorphAnalyzer

    plain: Any = None  # plain tuples instead of objects; the parameter's hint forgets it
    analyze: Callable[[str], list[Any]] = MorphAnalyzer(path=path, lang=code, result_type=plain).parse
    return analyze
