"""The language under test, with the words and texts for its checks."""

import random
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from time import thread_time

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.language import Language
from shinglefold.model.scheme import CanonOptions
from shinglefold.registry import language_class, references
from shinglefold.testing.languages.process import ProcessAnswers, ask_process

_REST = "any"
#: Characters of fuzzed words, besides the letters of the language; each has broken some analyzer.
_STRANGE = "\0\ud800\u0301\u0308\u200d\ufeff\uffff\U0001f600\U000e0001'’-_.,09 \t\nßİıǅﬁ٣가あ文ж"


class Subject:
    """An installed language with options, and lazily computed data that several checks share."""

    def __init__(self, code: str, options: CanonOptions, floor: float) -> None:
        self.code = code
        self.options = options
        self.floor = floor
        self.cls: type[Language] = language_class(code)
        self.language = self.fresh()

    def fresh(self, options: CanonOptions | None = None) -> Language:
        """Return another, unused instance."""
        return self.cls(options or self.options)

    @cached_property
    def canonicalizer(self) -> Canonicalizer:
        """A canonicalizer with this language and ``any``."""
        return Canonicalizer(references({self.code, _REST}, self.options))

    @cached_property
    def dropping(self) -> Canonicalizer:
        """The same canonicalizer, but it drops function words."""
        options = replace(self.options, drop_function_words=True)
        return Canonicalizer(references({self.code, _REST}, options))

    def tokens(self, text: str) -> list[str]:
        """Return the canonical tokens of a text declared to be of this language."""
        return [token.text for token in self.canonicalizer.tokens(text, self.code)]

    def content(self, text: str) -> list[str]:
        """Return the tokens of a text without those of function words."""
        return [token.text for token in self.dropping.tokens(text, self.code)]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The texts of the samples."""
        return tuple(dict.fromkeys(text for sample in self.cls.samples for text in (sample.a, sample.b)))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the samples, folded as canon folds them."""
        folded = unicodedata.normalize("NFKC", " ".join(self.texts).casefold())
        for apostrophe in "’ʼ`‘":
            folded = folded.replace(apostrophe, "'")
        letters = "".join(c if c.isalnum() or c == "'" else " " for c in folded).translate(self.language.fold)
        words = letters.replace(" ", "") if self.cls.unit == "char" else letters.split()
        return tuple(sorted({word.strip("'") for word in words} - {""}))

    def fuzz(self, count: int, seed: int) -> list[str]:
        """Return strings of the language's letters, of strange characters, and of both."""
        chance = random.Random(seed)
        own = "".join(self.words)
        alphabets = (own, _STRANGE, own + _STRANGE)
        return [
            "".join(chance.choices(chance.choice(alphabets), k=chance.randint(1, 24))) for _ in range(count)
        ]

    def new_words(self, count: int, seed: int) -> list[str]:
        """Return made-up words: random letters with the endings of real words."""
        chance = random.Random(seed)
        own = sorted(set("".join(self.words)) - {"'"})
        if self.cls.unit == "char":
            return [chr(chance.randrange(0x4E00, 0x9FA6)) for _ in range(count)]
        endings = [word[-3:] for word in self.words]
        return [
            "".join(chance.choices(own, k=chance.randint(4, 8))) + chance.choice(endings)
            for _ in range(count)
        ]

    @cached_property
    def processes(self) -> tuple[ProcessAnswers, ...]:
        """The results of other processes for ``test_words``, each with its own hash seed."""
        return ask_process(self.code, self.options, self.test_words, seeds=(0, 4711))

    @cached_property
    def test_words(self) -> Sequence[str]:
        """The words for threads and processes: real, fuzzed and made-up ones."""
        return [*self.words, *self.fuzz(300, seed=2), *self.new_words(100, seed=3)]

    @cached_property
    def words_per_second(self) -> float:
        """New words per second of CPU time: the best of three rounds, because other work only slows it."""
        count = 500
        self.language.canonical(self.words[0])
        rates = []
        for seed in (10, 11, 12):
            words = self.new_words(count, seed)
            began = thread_time()
            for word in words:
                self.language.canonical(word)
            rates.append(count / max(thread_time() - began, 1e-9))
        return max(rates)
