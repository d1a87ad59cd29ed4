"""The language under test: its words and texts, and its results in new processes, without a network.

Run as a module, it reads a request from standard input and prints the results.
"""

import json
import os
import random
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from time import thread_time
from typing import Any, NoReturn

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.language import Language
from shinglefold.model.scheme import CanonOptions
from shinglefold.registry import language_class, references

Answers = Mapping[str, str | None]
_SECONDS = 60


@dataclass(frozen=True, slots=True)
class ProcessAnswers:
    """The results of one process, of its forks, and the socket events it caused."""

    version: str
    answers: Answers
    forked: Mapping[str, Answers]
    network: tuple[str, ...]


def ask_process(
    code: str, options: CanonOptions, words: Sequence[str], seeds: Sequence[int]
) -> tuple[ProcessAnswers, ...]:
    """Return the results of a new process for each hash seed; they run in parallel."""
    request = json.dumps({"code": code, "options": asdict(options), "words": list(words)})
    processes = [_start(seed) for seed in seeds]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(request.encode("ascii"))
        process.stdin.close()
        process.stdin = None
    return tuple(_finish(process) for process in processes)


def _start(seed: int) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": path}
    command = [sys.executable, "-P", "-m", __name__]
    return subprocess.Popen(  # noqa: S603 - ourselves
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _finish(process: subprocess.Popen[bytes]) -> ProcessAnswers:
    try:
        output, complaints = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.communicate()
        raise AssertionError(f"a new process gave no answer within {_SECONDS} s") from error
    assert process.returncode == 0, f"a new process failed: {complaints.decode('utf-8', 'replace')[-2000:]}"
    found = json.loads(output)
    return ProcessAnswers(found["version"], found["answers"], found["forked"], tuple(found["network"]))


def main() -> None:
    """Process one request."""
    network: list[str] = []
    sys.addaudithook(lambda event, _: _refuse(event, network))
    request = json.load(sys.stdin)
    cls = language_class(request["code"])
    language = cls(CanonOptions(**request["options"]))
    unused = cls(CanonOptions(**request["options"]))
    words: list[str] = request["words"]
    answers = _ask(language, words)
    forked: dict[str, Answers] = {}
    if hasattr(os, "fork"):
        forked["with an instance in use"] = _ask_forked(language, words)
        forked["with an instance not yet used"] = _ask_forked(unused, words)
    found = ProcessAnswers(cls.version(), answers, forked, tuple(sorted(set(network))))
    sys.stdout.write(json.dumps(asdict(found)))


def _refuse(event: str, network: list[str]) -> None:
    if event.startswith("socket.") and event != "socket.gethostname":
        network.append(event)
        raise OSError(f"no network in this test: {event}")


def _ask(language: Language, words: Sequence[str]) -> dict[str, str | None]:
    return {word: language.canonical(word) for word in words}


def _ask_forked(language: Language, words: Sequence[str]) -> Answers:
    """Return the results of a forked child; none if it dies."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _answer_and_exit(language, words, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    answers: dict[str, Any] = json.loads(text or "{}")
    return answers


def _answer_and_exit(language: Language, words: Sequence[str], writing: int) -> NoReturn:
    # The alarm ends a child that waits for a lock of a thread that was not forked.
    signal.alarm(_SECONDS // 3)
    try:
        answers = json.dumps(_ask(language, words))
        with os.fdopen(writing, "w") as pipe:
            pipe.write(answers)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()


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
