"""Checks of whole texts, through canon."""

import unicodedata
from collections import Counter

from shinglefold.canon import token_hash
from shinglefold.model.scheme import CanonOptions
from shinglefold.model.values import Sample
from shinglefold.testing.languages.subject import Subject

_APOSTROPHES = "’ʼ`‘"
#: Share of common tokens above which two texts are not "unrelated".
_RELATED = 0.3


def folds_and_tells_apart(subject: Subject) -> None:
    """Check the samples: pairs to fold have equal tokens, the others hardly a token in common.

    Pairs to stay apart must do so under any options. Pairs to fold must do so in the default mode: all with
    function words dropped, so that none differ in more than those, and at least one with every word kept.
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
    """Check that it does not matter which apostrophe was typed."""
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
    """Check that the hashes of the fast path are those of the tokens, for samples and fuzz."""
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
