"""Checks of one word at a time."""

import re
import time
from dataclasses import replace
from itertools import product

from shinglefold.model.scheme import CanonOptions
from shinglefold.testing.languages.subject import Subject

_LENGTHS = (1_000, 10_000, 100_000)
_SECONDS = 1.0


def declares_itself(subject: Subject) -> None:
    """Check that what the class says of itself is well-formed."""
    cls, language = subject.cls, subject.language
    assert cls.code == subject.code, f"code is {cls.code!r}, the entry point is called {subject.code!r}"
    assert cls.scripts, "scripts is empty: no word would ever reach the language"
    wrong = sorted(script for script in cls.scripts if not re.fullmatch(r"[A-Z][a-z]{3}", script))
    assert not wrong, f"{wrong} are no ISO 15924 codes (such as Cyrl)"
    assert cls.marks == cls.marks.lower(), f"marks {cls.marks!r} must be lower case: words arrive so"
    version = cls.version()
    assert version, "version() is empty"
    assert version == cls.version(), "version() changes from call to call"
    assert {sample.same for sample in cls.samples} == {True, False}, (
        "samples need at least one pair that folds (same=True) and one that does not (same=False)"
    )
    for code_point, folded in language.fold.items():
        again = folded.translate(language.fold)
        assert again == folded, (
            f"fold turns {chr(code_point)!r} into {folded!r}, and that into {again!r}; make it final at once"
        )


def is_total(subject: Subject) -> None:
    """Check that any string has an answer, and a very long one soon."""
    for word in subject.fuzz(2000, seed=1):
        _answer(subject, word)
    letter = subject.words[0][0]
    for length, pattern in product(_LENGTHS, (letter, f"{letter}-", "'")):
        word = pattern * (length // len(pattern))
        began = time.thread_time()
        _answer(subject, word)
        took = time.thread_time() - began
        assert took < _SECONDS, (
            f"{word[:6]!r}… of {len(word)} characters took {took:.1f} s; return words over 64 as they are"
        )


def is_pure(subject: Subject) -> None:
    """Check that the answer depends on the word only: not on time, order, or the instance."""
    other = subject.fresh()
    reverse = {word: other.canonical(word) for word in reversed(subject.asked)}
    for word in subject.asked:
        first = subject.language.canonical(word)
        assert first == subject.language.canonical(word), f"{word!r} has two answers on two calls"
        assert first == reverse[word], f"the answer for {word!r} depends on the words asked before"


def is_idempotent_or_says_so(subject: Subject) -> None:
    """Check that canonical forms are their own canonical form, if the language says so."""
    if not subject.cls.idempotent:
        return
    for word in (*subject.words, *subject.new_words(500, seed=4)):
        once = subject.language.canonical(word)
        twice = once if once is None else subject.language.canonical(once)
        assert once == twice, f"{word!r} → {once!r} → {twice!r}; mend it, or declare idempotent = False"


def drops_only_what_options_ask(subject: Subject) -> None:
    """Check that no word is dropped when no option asks for it."""
    keeping = subject.fresh(replace(subject.options, drop_function_words=False, drop_adjectives=False))
    lost = [word for word in subject.words if keeping.canonical(word) is None]
    assert not lost, f"dropped although no option asks for it: {', '.join(lost[:10])}"
    surface = subject.fresh(CanonOptions("surface", drop_function_words=False))
    changed = [word for word in subject.words if surface.canonical(word) != word]
    assert not changed, (
        f"changed in surface mode, where only fold may change a word: {', '.join(changed[:10])}"
    )


def _answer(subject: Subject, word: str) -> None:
    shown = f"{word[:40]!r}{'…' if len(word) > 40 else ''}"
    try:
        answer = subject.language.canonical(word)
    except Exception as error:
        raise AssertionError(f"canonical({shown}) raised {error!r}; text analysis must not fail") from error
    assert answer is None or isinstance(answer, str), f"canonical({shown}) is {answer!r}, no str and not None"
    assert answer != "", f"canonical({shown}) is empty; return None to drop a word"
