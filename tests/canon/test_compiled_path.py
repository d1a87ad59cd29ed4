"""Compiled code gives the bytes that numpy gives, on every input."""

import random
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.servers.choose import examples

from shinglefold.canon import Canonicalizer
from shinglefold.canon.segmentation import LONGEST_WORD
from shinglefold.model.scheme import CanonOptions
from shinglefold.registry import make_scheme

pytest.importorskip("numba")

_PIECES = [
    "слово", "Слова", "їжак", "ґанок", "мова", "ёлка", "word", "Words", "don't", "об’єкт", "a''b",
    "'quoted'", "中文", "著作", "カタ", "한국", "ελλάς", "مرحبا", "שלום", "हिन्दी", "ไทย", "мoст", "cтрока",
    "e\u0301", "й", "\u0301", "\u0441\u043e\xad\u0444\u0442", "zero\u200bwidth", "\u200b", "\ufe0e",
    "o\u200b'\u200bc", "\u4e2d\u200b\u6587", "ﬁn", "①", "Ⅳ", "x²", "№5", "\ud800", "\udc00x", "😀", "𠀀",
    "0123", "٣", "\x00", "-", "\n", "\u2028", "'", "’", "b" * 128, "c" * 129, "\u200b" * 3 + "d" * 128,
    "c++", "A+", "c\u200b+", "C#", "ab#c", "Ca2＋", "Rh−", "+", 'м"я', "з*Ї", 'м"\u200bя', "из-\r\nза",
    "восст-\nановил", "восст-\n  ановил", "восст-\r\n\tановил",
    "слог\u00ad\nи", "-\n", "А-\nБ", "℃", "❶", "⺠", "ѐ", "краïна", "1️⃣", "ｶﾞ", "ﾡￂ", "№",
    "документи", "документ",
    "ы" * 60 + "i" * 60, "и", "і", "the", "тот", "эта", "ця",
]  # fmt: skip
_TEXTS = st.lists(
    st.one_of(
        st.lists(st.sampled_from(_PIECES), max_size=25).map(" ".join),
        st.lists(st.sampled_from(_PIECES), max_size=25).map("".join),
        st.text(st.characters(codec=None), max_size=60),
    ),
    max_size=8,
)


@pytest.fixture(scope="module")
def two() -> tuple[Canonicalizer, Canonicalizer]:
    """One that works by numpy, and one by compiled code; each learns its own words."""
    plain, quick = (Canonicalizer(make_scheme().languages) for _ in range(2))
    quick.compile()
    assert quick.is_compiled
    assert not plain.is_compiled
    return plain, quick


_MIXED = [
    "слово",
    "word",
    "λόγος",
    "cлово",
    "wоrd",
    "лοгοс",
    "logοs",
    "Εur0",
    "листt2",
    "中文",
    "ґанок",
    "cмужка",
    "42",
]


def alike(two, texts, languages=None) -> None:
    plain, quick = (one.hash_batch(texts, languages) for one in two)
    assert plain.hashes.tobytes() == quick.hashes.tobytes()
    assert plain.offsets.tolist() == quick.offsets.tolist()
    assert plain.languages == quick.languages
    assert plain.repairs.tolist() == quick.repairs.tolist()
    for column in ("hashes", "offsets", "repairs"):
        assert getattr(plain, column).dtype == getattr(quick, column).dtype
    if languages is None:
        said, said_quickly = (one.text_batch(texts) for one in two)
        assert said == said_quickly


def test_words_that_were_learned_by_numpy_are_known_to_compiled_code(tmp_path):
    plain, quick = (Canonicalizer(make_scheme(codes=["any", "en"]).languages) for _ in range(2))
    plain.hash_batch(_PIECES)
    plain.lexicon.save(tmp_path / "words")
    quick.compile()
    assert quick.lexicon.load(tmp_path / "words")
    known = len(quick.lexicon)
    quick.hash_batch(_PIECES)
    assert len(quick.lexicon) == known > 30


@given(_TEXTS)
@example([])
@example([""])
@example(["", "слово", ""])
@example(["a" * LONGEST_WORD, "a" * (LONGEST_WORD + 1)])
@example(["он и вона; він та она. Ґанок ыъэ\nїхній дім\nэтот дом"])
@settings(max_examples=examples(250), deadline=None)
def test_any_texts_have_the_same_tokens(two, texts):
    alike(two, texts)


@given(_TEXTS, st.randoms(use_true_random=False))
@settings(max_examples=examples(60), deadline=None)
def test_declared_languages_mean_the_same(two, texts, chance):
    alike(two, texts, [chance.choice(["ru", "uk", "zh", "en", "any", "xx", None]) for _ in texts])


@pytest.mark.long
def test_every_character_means_the_same(two):
    characters = [chr(code) for code in range(sys.maxunicode + 1)]
    random.Random(1).shuffle(characters)
    for start in range(0, len(characters), 1 << 17):
        some = characters[start : start + (1 << 17)]
        # Alone, between letters, and next to each other.
        alike(two, [" ".join(some[at : at + 64]) for at in range(0, 4_096, 64)])
        alike(two, ["сл" + "ово ми".join(some[at : at + 16]) for at in range(0, 2_048, 16)])
    alike(two, ["".join(characters[at : at + 8]) for at in range(0, 65_536, 8)])


def test_a_huge_text_is_cut_in_the_same_places(two):
    alike(two, ["слово и дело, word and deed 中文字 " * 20_000, "короткий", "x" * 300_000, "中" * 200_000])


@pytest.mark.parametrize("capacity", [50, 400, 3_000, 100_000])
def test_words_met_for_the_first_time_in_the_midst_of_a_block_are_as_any_others(capacity):
    # Some of them are dropped, some repaired, and of what is known some is forgotten between the blocks.
    dropping = make_scheme(options=CanonOptions(drop_function_words=True))
    plain, quick = (Canonicalizer(dropping.languages, capacity) for _ in range(2))
    quick.compile()
    chance = random.Random(3)
    known = ["слово", "мoст", "для", "этот", "the", "words", "中文"]
    for block in range(6):
        new = [f"{word}{chr(1072 + block)}" for word in ("слов", "мoст", "w", "ґан")] * 2
        words = [*known, *new, "и", "of", *(f"ж{chance.randrange(900)}" for _ in range(60))]
        texts = [" ".join(chance.choices(words, k=chance.randrange(40))) for _ in range(30)]
        alike((plain, quick), texts)
        assert quick.text_batch(texts) == plain.text_batch(texts)


def test_what_one_learned_the_other_knows():
    plain, quick = (Canonicalizer(make_scheme().languages) for _ in range(2))
    quick.compile()
    texts = ["мама мыла раму", "хто там", "running faster"]
    quick.hash_batch(texts)
    learned = quick.lexicon.slots
    used = learned.keys != 0
    plain.lexicon.learn(learned.keys[used], learned.values[used], learned.repairs[used])
    before = len(plain.lexicon)
    alike((plain, quick), texts)
    assert len(plain.lexicon) == before
    assert np.count_nonzero(used) == before


@given(st.lists(st.sampled_from(_MIXED), max_size=12), st.lists(st.sampled_from(_MIXED), max_size=4))
@settings(max_examples=examples(100), deadline=None)
def test_words_of_several_scripts_take_the_commonest_of_their_text(two, one, other):
    alike(two, [" ".join(one), " ".join(other)])


def test_words_of_several_scripts_are_no_reason_to_leave_a_text_to_numpy(two, monkeypatch):
    plain, quick = two
    texts = [" ".join(_MIXED)] * 3
    expected = plain.hash_batch(texts).hashes.tolist()
    said = plain.text_batch(texts)
    monkeypatch.setattr(quick, "hash_block", None)
    monkeypatch.setattr(quick, "canonical_texts", None)
    assert quick.hash_batch(texts).hashes.tolist() == expected
    assert quick.text_batch(texts) == said


def test_words_are_those_of_tokens_whoever_was_asked_first():
    texts = [" ".join(_PIECES), "мама мыла раму", "хто там", "", "running faster"]
    expected = [" ".join(token.text for token in tokens) for tokens in _new().tokens_batch(texts)]
    for before in ((), ("hash_batch",), ("text_batch",), ("hash_batch", "text_batch", "hash_batch")):
        quick = _new()
        quick.compile()
        for face in before:
            getattr(quick, face)(texts)
        assert quick.text_batch(texts) == expected


def test_words_are_learned_and_found_without_numpy(monkeypatch):
    quick, texts = _new(), [" ".join(_MIXED), "мама мыла раму"]
    expected = _new().text_batch(texts)
    quick.compile()
    monkeypatch.setattr(quick, "canonical_texts", None)
    assert quick.text_batch(texts) == quick.text_batch(texts) == expected


def test_texts_are_in_no_language_until_they_show_one():
    plain, quick = (Canonicalizer(make_scheme(codes=["uk", "ru", "any"]).languages[::-1]) for _ in range(2))
    quick.compile()
    assert plain.codes == quick.codes == ("uk", "ru", "any")
    alike((plain, quick), ["мама мыла раму", "хто там", "слова без примет"])


def test_words_learned_before_compiled_code_came_are_known():
    quick, texts = _new(), ["мама мыла раму", "хто там"]
    expected = quick.text_batch(texts)
    quick.compile()
    assert quick.text_batch(texts) == expected
    assert len(quick.strings.kept.numbers) == 5


def _new() -> Canonicalizer:
    return Canonicalizer(make_scheme().languages)
