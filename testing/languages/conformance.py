"""The conformance kit for languages: one call, or a class that pytest collects.

::

    from shinglefold.testing.languages.conformance import LanguageConformance

    class TestBelarusian(LanguageConformance):
        code = "be"
"""

import gc
import random
import re
import sys
import threading
import time
import tracemalloc
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

from shinglefold.canon.language_detection import token_hash
from shinglefold.model.scheme import CanonOptions
from shinglefold.model.values import Sample
from shinglefold.testing.languages.subject import Answers, Subject

_LENGTHS = (1_000, 10_000, 100_000)
_SECONDS = 1.0


def declares_itself(subject: Subject) -> None:
    """Check that code, scripts, marks, version, folds and samples are well-formed."""
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
    """Check that any string has a result, and that even a very long one takes little time."""
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
    """Check that the result depends on the word only: not on time, order, or the instance."""
    other = subject.fresh()
    reverse = {word: other.canonical(word) for word in reversed(subject.test_words)}
    for word in subject.test_words:
        first = subject.language.canonical(word)
        assert first == subject.language.canonical(word), f"{word!r} has two answers on two calls"
        assert first == reverse[word], f"the answer for {word!r} depends on earlier words"


def is_idempotent_or_says_so(subject: Subject) -> None:
    """Check that canonical forms are their own canonical form, if the language declares it."""
    if not subject.cls.idempotent:
        return
    for word in (*subject.words, *subject.new_words(500, seed=4)):
        once = subject.language.canonical(word)
        twice = once if once is None else subject.language.canonical(once)
        assert once == twice, f"{word!r} → {once!r} → {twice!r}; mend it, or declare idempotent = False"


def drops_only_what_options_ask(subject: Subject) -> None:
    """Check that words are dropped only if an option asks for it."""
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


_APOSTROPHES = "’ʼ`‘"
#: Two texts with a greater share of common tokens are related.
_RELATED = 0.3


def folds_and_tells_apart(subject: Subject) -> None:
    """Check the samples: pairs with ``same`` have equal tokens, other pairs hardly any in common.

    Different pairs must differ under any options. Equal pairs must be equal in the default mode: all of them
    with function words dropped, and at least one with every word kept.
    """
    for sample in subject.cls.samples:
        if not sample.same:
            a, b = subject.tokens(sample.a), subject.tokens(sample.b)
            share = _common_share(a, b)
            assert share <= _RELATED, f"{share:.0%} common tokens in unrelated texts: {a} and {b}"
    if subject.options == CanonOptions():
        _folds(subject, [sample for sample in subject.cls.samples if sample.same])


def ignores_normalization_form(subject: Subject) -> None:
    """Check that composed and decomposed texts have the same tokens."""
    for text in subject.texts:
        for form in ("NFC", "NFD"):
            _expect_equal(subject, text, unicodedata.normalize(form, text), f"its {form} form")


def ignores_apostrophe_variant(subject: Subject) -> None:
    """Check that all apostrophes have the same effect."""
    for word in (word for word in subject.words if len(word) > 3 and "'" not in word):
        plain = f"{word[:2]}'{word[2:]}"
        for apostrophe in _APOSTROPHES:
            _expect_equal(subject, plain, plain.replace("'", apostrophe), f"the apostrophe {apostrophe}")


def ignores_case(subject: Subject) -> None:
    """Check that upper and lower case have the same tokens."""
    for text in subject.texts:
        _expect_equal(subject, text, text.upper(), "upper case")
        _expect_equal(subject, text, text.lower(), "lower case")


def has_two_agreeing_faces(subject: Subject) -> None:
    """Check that the hashes of ``hash_batch`` are those of ``tokens``, for samples and fuzzed texts."""
    texts = [*subject.texts, *(" ".join(subject.fuzz(20, seed)) for seed in range(20))]
    batch = subject.canonicalizer.hash_batch(texts, [subject.code] * len(texts))
    for number, text in enumerate(texts):
        hashes = batch.hashes[batch.offsets[number] : batch.offsets[number + 1]].tolist()
        tokens = subject.tokens(text)
        assert hashes == [token_hash(token) for token in tokens], (
            f"tokens and hashes of {text!r} differ: {tokens}"
        )


def _folds(subject: Subject, pairs: list[Sample]) -> None:
    for pair in pairs:
        a, b = subject.content(pair.a), subject.content(pair.b)
        assert a == b, (
            f"{pair.a!r} and {pair.b!r} should have equal tokens when function words are dropped: {a} and {b}"
        )
        assert a, f"nothing is left of {pair.a!r}: such a pair shows nothing"
    assert any(subject.tokens(pair.a) == subject.tokens(pair.b) for pair in pairs), (
        "every sample needs function words dropped; add a pair that folds with all words kept"
    )


def _expect_equal(subject: Subject, text: str, variant: str, what: str) -> None:
    expected, found = subject.tokens(text), subject.tokens(variant)
    assert found == expected, f"{what} of {text!r} has other tokens: {found}, not {expected}"


def _common_share(a: list[str], b: list[str]) -> float:
    one, other = Counter(a), Counter(b)
    return (one & other).total() / max(1, (one | other).total())


_THREADS = 4
_WARM_UP, _NEW_WORDS = 1000, 2000
#: The most bytes that a new word may leave behind; an entry of a dict costs about 100.
_BYTES_LEFT = 48


def is_thread_safe(subject: Subject) -> None:
    """Check that threads sharing an instance get the results of a single thread, from the first word on."""
    expected = {word: subject.language.canonical(word) for word in subject.test_words}
    shared = subject.fresh()
    barrier = threading.Barrier(_THREADS)

    def ask(seed: int) -> Answers:
        words = random.Random(seed).sample(list(subject.test_words), len(subject.test_words))
        barrier.wait()
        return {word: shared.canonical(word) for word in words}

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            results = list(pool.map(ask, range(_THREADS)))
    finally:
        sys.setswitchinterval(interval)
    for found in results:
        _expect_same(expected, found, "in one of several threads")


def is_the_same_in_every_process(subject: Subject) -> None:
    """Check that results and version do not depend on the process or its hash seed."""
    expected = {word: subject.language.canonical(word) for word in subject.test_words}
    for process in subject.processes:
        _expect_same(expected, process.answers, "in a process with another hash seed")
        here = subject.cls.version()
        assert process.version == here, (
            f"version() is {here!r} here and {process.version!r} in another process"
        )


def is_fork_safe(subject: Subject) -> None:
    """Check that a forked process gets the results of its parent, if the system can fork."""
    for process in subject.processes:
        for what, answers in process.forked.items():
            _expect_same(process.answers, answers, f"in a forked process, {what}")


def uses_no_network(subject: Subject) -> None:
    """Check that loading and using the language opens no socket."""
    for process in subject.processes:
        assert not process.network, f"tried to use the network: {', '.join(process.network)}"


def has_bounded_memory(subject: Subject) -> None:
    """Check that new words leave no memory behind: canon caches them, so a plugin must not."""
    language = subject.fresh()
    for word in subject.new_words(_WARM_UP, seed=5):
        language.canonical(word)
    words = subject.new_words(_NEW_WORDS, seed=6)
    left = _bytes_left(words, language.canonical)
    assert left <= _BYTES_LEFT, (
        f"each new word leaves {left:.0f} bytes behind; drop the plugin's cache, canon has a bounded one"
    )


def is_fast_enough(subject: Subject) -> None:
    """Check that new words are processed at least at the rate of ``floor``."""
    rate = subject.words_per_second
    assert rate >= subject.floor, (
        f"{rate:,.0f} new words a second of CPU time, fewer than {subject.floor:,.0f}"
    )


def _bytes_left(words: Sequence[str], canonical: object) -> float:
    assert callable(canonical)
    gc.collect()
    tracemalloc.start()
    try:
        for word in words:
            canonical(word)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / len(words)
    finally:
        tracemalloc.stop()


def _expect_same(expected: Answers, found: Answers, where: str) -> None:
    wrong = [word for word in expected if found.get(word, "") != expected[word]]
    shown = "; ".join(f"{word!r}: {found.get(word, '')!r}, not {expected[word]!r}" for word in wrong[:5])
    assert not wrong, f"{len(wrong)} other answers {where}: {shown}"


#: Every check by name; each takes a ``Subject`` and raises AssertionError with the remedy.
CHECKS = {
    check.__name__: check
    for check in (
        declares_itself,
        is_total,
        is_pure,
        is_idempotent_or_says_so,
        drops_only_what_options_ask,
        folds_and_tells_apart,
        ignores_normalization_form,
        ignores_apostrophe_variant,
        ignores_case,
        has_two_agreeing_faces,
        is_thread_safe,
        is_the_same_in_every_process,
        is_fork_safe,
        uses_no_network,
        has_bounded_memory,
        is_fast_enough,
    )
}


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """The checks that a language passed, its version, and its rate of new words per second of CPU time."""

    code: str
    version: str
    options: CanonOptions
    passed: tuple[str, ...]
    words_per_second: float


def check_language(
    code: str, options: CanonOptions = CanonOptions(), floor: float = 1000.0
) -> ConformanceReport:
    """Run every check on an installed language.

    Args:
        code: as in the entry-point group ``shinglefold.languages``.
        floor: the least rate, in new words per second of CPU time.

    Raises:
        AssertionError: some checks failed; the message lists them.
        UnknownLanguage: no installed plugin has this code.
        MissingExtra: its optional part is not installed.

    Cost: 2–5 s.
    """
    subject = Subject(code, options, floor)
    failures = []
    for name, check in CHECKS.items():
        try:
            check(subject)
        except AssertionError as failure:
            failures.append(f"{name}: {failure}")
    assert not failures, f"the language {code!r} fails {len(failures)} checks:\n" + "\n".join(failures)
    return ConformanceReport(code, subject.cls.version(), options, tuple(CHECKS), subject.words_per_second)


class LanguageConformance:
    """Subclass it as ``TestMine`` and set ``code``: pytest then runs each check as a separate test."""

    code: ClassVar[str]
    options: ClassVar[CanonOptions] = CanonOptions()
    #: The least rate, in new words per second of CPU time.
    floor: ClassVar[float] = 1000.0
    subject: ClassVar[Subject]

    @classmethod
    def setup_class(cls) -> None:
        """Load the language once for all tests of the class."""
        cls.subject = Subject(cls.code, cls.options, cls.floor)

    @classmethod
    def teardown_class(cls) -> None:
        """Release the language with its dictionary."""
        del cls.subject


def _as_test(check: Callable[[Subject], None]) -> Callable[[LanguageConformance], None]:
    def test(self: LanguageConformance) -> None:
        check(self.subject)

    test.__doc__ = check.__doc__
    return test


for _name, _check in CHECKS.items():
    setattr(LanguageConformance, f"test_{_name}", _as_test(_check))
