"""What speed is measured on: manuals, generated texts, made-up words by Zipf's law, and short documents."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench import corpora
from bench.corpora import Vocabulary

_CHINESE = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
_DOCUMENTS, _WORDS = 400, 500


@dataclass(frozen=True, slots=True)
class Sample:
    """Texts in a language."""

    name: str
    language: str
    texts: tuple[str, ...]

    @property
    def words(self) -> Callable[[str], Sequence[str]]:
        """Return what splits a text into words, for those who split it themselves, as cheaply as can be."""
        return _CHINESE.findall if self.language == "zh" else str.split


def samples() -> Iterator[Sample]:
    """Yield all samples at hand; ``absent`` names the others."""
    for language in ("ru", "uk", "en"):
        yield Sample(f"generated {language}, 500 words", language, _generated(language, _DOCUMENTS, _WORDS))
    for name, language in _LABELLED.items():
        if corpora.available(name):
            yield Sample(name, language, corpora.texts(name)[: 2 * _DOCUMENTS])
    yield Sample("100,000 made-up words by Zipf's law, 500 words", "en", _made_up())
    yield Sample("generated ru, 60 words", "ru", _generated("ru", 5 * _DOCUMENTS, 60))
    yield Sample("generated ru, 20 words", "ru", _generated("ru", 10 * _DOCUMENTS, 20))


def absent() -> list[str]:
    """Return the labelled corpora that are not at hand."""
    return [name for name in _LABELLED if not corpora.available(name)]


_LABELLED = {"libreoffice-ru": "ru", "gnome-uk": "uk", "libreoffice-zh-cn": "zh"}
_generated = corpora.generated


def _made_up() -> tuple[str, ...]:
    vocabulary = Vocabulary.of(100_000)
    words = [word.decode() for word in vocabulary.words]
    drawn = (vocabulary.drawn(_WORDS, seed).tolist() for seed in range(_DOCUMENTS))
    return tuple(" ".join(words[number] for number in numbers) for numbers in drawn)
