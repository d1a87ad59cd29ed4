"""The conformance kit for languages: one call, or a class that pytest collects.

::

    from shinglefold.testing.languages.conformance import LanguageConformance

    class TestBelarusian(LanguageConformance):
        code = "be"
"""

from dataclasses import dataclass
from typing import ClassVar

from shinglefold.model.scheme import CanonOptions
from shinglefold.testing.languages import checks as language_words
from shinglefold.testing.languages import language_runs, language_texts
from shinglefold.testing.languages.subject import Subject

#: Every check by name; each takes a ``Subject`` and raises AssertionError with the remedy.
CHECKS = {
    check.__name__: check
    for check in (
        language_words.declares_itself,
        language_words.is_total,
        language_words.is_pure,
        language_words.is_idempotent_or_says_so,
        language_words.drops_only_what_options_ask,
        language_texts.folds_and_tells_apart,
        language_texts.ignores_normalization_form,
        language_texts.ignores_apostrophe_variant,
        language_texts.ignores_case,
        language_texts.has_two_agreeing_faces,
        language_runs.is_thread_safe,
        language_runs.is_the_same_in_every_process,
        language_runs.is_fork_safe,
        language_runs.uses_no_network,
        language_runs.has_bounded_memory,
        language_runs.is_fast_enough,
    )
}


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """What a language passed, under which version, and how many new words it took a second of CPU time."""

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
        floor: new words a second of CPU time it must reach.

    Raises:
        AssertionError: some checks failed; the message tells all of them.
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
    """Subclass it as ``TestMine`` and set ``code``: pytest then runs each check as a test of its own."""

    code: ClassVar[str]
    options: ClassVar[CanonOptions] = CanonOptions()
    #: New words a second of CPU time the language must reach.
    floor: ClassVar[float] = 1000.0
    subject: ClassVar[Subject]

    @classmethod
    def setup_class(cls) -> None:
        """Load the language once for all tests of the class."""
        cls.subject = Subject(cls.code, cls.options, cls.floor)

    @classmethod
    def teardown_class(cls) -> None:
        """Let the language go, with its dictionary."""
        del cls.subject

    def test_declares_itself(self) -> None:
        """Code, scripts, marks, folds and samples are well-formed."""
        language_words.declares_itself(self.subject)

    def test_is_total(self) -> None:
        """Any string at all has an answer, soon."""
        language_words.is_total(self.subject)

    def test_is_pure(self) -> None:
        """The answer depends on the word only."""
        language_words.is_pure(self.subject)

    def test_is_idempotent_or_says_so(self) -> None:
        """A canonical form is its own, unless the language says otherwise."""
        language_words.is_idempotent_or_says_so(self.subject)

    def test_drops_only_what_options_ask(self) -> None:
        """Nothing is dropped when nothing is to be."""
        language_words.drops_only_what_options_ask(self.subject)

    def test_folds_and_tells_apart(self) -> None:
        """The samples come out as they say."""
        language_texts.folds_and_tells_apart(self.subject)

    def test_ignores_normalization_form(self) -> None:
        """Composed and decomposed letters are the same."""
        language_texts.ignores_normalization_form(self.subject)

    def test_ignores_apostrophe_variant(self) -> None:
        """All apostrophes are the same."""
        language_texts.ignores_apostrophe_variant(self.subject)

    def test_ignores_case(self) -> None:
        """Upper and lower case are the same."""
        language_texts.ignores_case(self.subject)

    def test_has_two_agreeing_faces(self) -> None:
        """Tokens and their hashes agree."""
        language_texts.has_two_agreeing_faces(self.subject)

    def test_is_thread_safe(self) -> None:
        """Threads get the answers of a single one, the first word included."""
        language_runs.is_thread_safe(self.subject)

    def test_is_the_same_in_every_process(self) -> None:
        """Other processes with other hash seeds get the same answers and version."""
        language_runs.is_the_same_in_every_process(self.subject)

    def test_is_fork_safe(self) -> None:
        """A forked process gets the same answers."""
        language_runs.is_fork_safe(self.subject)

    def test_uses_no_network(self) -> None:
        """No socket is opened, loading included."""
        language_runs.uses_no_network(self.subject)

    def test_has_bounded_memory(self) -> None:
        """New words leave nothing behind."""
        language_runs.has_bounded_memory(self.subject)

    def test_is_fast_enough(self) -> None:
        """New words are taken at the floor's rate or faster."""
        language_runs.is_fast_enough(self.subject)
