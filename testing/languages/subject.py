"""The language under test, and the words and texts it is tested with."""

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
#: What fuzzed words are made of, besides the language's own letters: each of these upset some analyzer once.
_STRANGE = "\0\ud800\u0301\u0308\u200d\ufeff\uffff\U0001f600\U000e0001'’-_.,09 \t\nßİıǅﬁ٣가あ文ж"


class Subject:
    """An installed language with options. Loads lazily and keeps what several checks need."""

    def __init__(self, code: str, options: CanonOptions, floor: float) -> None:
        self.code = code
        self.options = options
        self.floor = floor
        self.cls: type[Language] = language_class(code)
        self.language = self.fresh()

    def fresh(self, options: CanonOptions | None = None) -> Language:
        """Return another instance, that has not seen a word."""
        return self.cls(options or self.options)

    @cached_property
    def canonicalizer(self) -> Canonicalizer:
        """A canonicalizer with this language and the one that takes the rest."""
        return Canonicalizer(references({self.code, _REST}, self.options))

    @cached_property
    def dropping(self) -> Canonicalizer:
        """The same, but with function words dropped."""
        options = replace(self.options, drop_function_words=True)
        return Canonicalizer(references({self.code, _REST}, options))

    def tokens(self, text: str) -> list[str]:
        """Return the canonical tokens of a text declared to be of this language."""
        return [token.text for token in self.canonicalizer.tokens(text, self.code)]

    def content(self, text: str) -> list[str]:
        """Return the same tokens without those of function words."""
        return [token.text for token in self.dropping.tokens(text, self.code)]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The texts of the samples."""
        return tuple(dict.fromkeys(text for sample in self.cls.samples for text in (sample.a, sample.b)))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the samples, as canon hands them to ``canonical``."""
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
        """Return words nobody has seen: random letters, with the endings of real words."""
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
        """The answers of other processes, each with its own hash seed, to ``asked``."""
        return ask_process(self.code, self.options, self.asked, seeds=(0, 4711))

    @cached_property
    def asked(self) -> Sequence[str]:
        """The words asked in threads and processes: real ones and fuzzed ones."""
        return [*self.words, *self.fuzz(300, seed=2), *self.new_words(100, seed=3)]

    @cached_property
    def words_per_second(self) -> float:
        """New words a second of CPU time: the best of three rounds, since other work only ever slows it."""
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
