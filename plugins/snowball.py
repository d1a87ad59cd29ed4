"""Snowball stemmers from nltk, which need none of its data."""

from collections.abc import Callable

from shinglefold.plugins.isolated_import import Apart

_MODULE = "nltk.stem.snowball"


class Snowball:
    """The stemmer of one language, loaded at the first word.

    nltk imported as a whole takes 0.3 s, and seconds where scipy is installed, for six modules that take a
    tenth of it. A version of nltk whose stemmers need more than these is imported as a whole.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._stem: Callable[[str], str] | None = None

    def stem(self, word: str) -> str:
        """Return the stem of a lower-case word; never empty."""
        stem = self._stem or self._load()
        return stem(word) or word

    def _load(self) -> Callable[[str], str]:
        try:
            # Stop words are nltk's data; the stemmers read them only where they are told to spare them.
            stemmer = Apart("nltk", unused=["nltk.corpus"]).load(_MODULE).SnowballStemmer(self._language)
        except ImportError:
            from nltk.stem.snowball import SnowballStemmer

            stemmer = SnowballStemmer(self._language)
        stem: Callable[[str], str] = stemmer.stem
        self._stem = stem
        return stem
