"""Snowball stemmers from nltk, which need none of its data."""

from collections.abc import Callable


class Snowball:
    """The stemmer of one language, imported at the first word, because nltk takes 0.1–0.5 s to import."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._stem: Callable[[str], str] | None = None

    def stem(self, word: str) -> str:
        """Return the stem of a lower-case word; never empty."""
        stem = self._stem or self._load()
        return stem(word) or word

    def _load(self) -> Callable[[str], str]:
        from nltk.stem.snowball import SnowballStemmer

        stem: Callable[[str], str] = SnowballStemmer(self._language).stem
        self._stem = stem
        return stem
