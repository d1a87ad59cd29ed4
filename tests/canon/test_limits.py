"""Text analysis never raises, never hangs, and its memory does not follow the text."""

import tracemalloc

import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.canon.language_detection import token_hash
from shinglefold.canon.segmentation import BLOCK, PIECE, REACH, blocks, pieces
from shinglefold.contracts.language import Language
from shinglefold.model.scheme import CanonOptions, LanguageRef


@pytest.mark.long
def test_a_word_of_ten_megabytes_is_no_word(canonicalizer):
    batch = canonicalizer.hash_batch(["ы" * 10_000_000, "AbC0+/" * 1_700_000])
    assert batch.offsets[1] <= 1
    assert canonicalizer.tokens("x" * 1_000_000) == []


@pytest.mark.parametrize("megabytes", [20, pytest.param(100, marks=pytest.mark.long)])
def test_a_long_text_takes_the_memory_of_a_block(canonicalizer, megabytes):
    sentence = "Мама мыла раму, а папа читал газету у окна. "
    text = sentence * (megabytes * 500_000 // len(sentence))  # two bytes a letter
    tracemalloc.start()
    batch = canonicalizer.hash_batch([text])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(batch.hashes) > 50_000 * megabytes
    assert peak - 4 * batch.hashes.nbytes < 64 << 20


@pytest.mark.parametrize("text", ["a " * PIECE, "漢" * 3 * PIECE, "x" * 3 * PIECE, "", " ", "мама " * 50_000])
def test_pieces_are_the_text(text):
    parts = list(pieces(text))
    assert "".join(part for _, part in parts) == text
    assert all(text[offset : offset + len(part)] == part for offset, part in parts)
    assert all(len(part) <= PIECE + REACH for _, part in parts)


def test_a_long_text_has_the_tokens_of_its_parts(canonicalizer):
    sentence = "Кошки ловили мышей в подвале. "
    once = canonicalizer.hash_batch([sentence]).hashes.tolist()
    count = 3 * PIECE // len(sentence)
    many = canonicalizer.hash_batch([sentence * count]).hashes.tolist()
    assert many == once * count
    last = canonicalizer.tokens(sentence * count)[-1]
    assert (sentence * count)[last.start : last.end] == "подвале"
    assert token_hash(last.text) == many[-1]


def test_an_empty_batch_is_an_empty_answer(canonicalizer):
    batch = canonicalizer.hash_batch([])
    assert len(batch) == 0
    assert batch.offsets.tolist() == [0]


def test_a_plugin_that_fails_loses_its_lemma_and_not_the_document(monkeypatch):
    class Broken(Language):
        code = "any"
        scripts = frozenset({"Zyyy"})

        def canonical(self, word: str) -> str | None:
            raise RuntimeError(word)

    monkeypatch.setattr("shinglefold.canon.canonicalizer.load_languages", lambda _: (Broken(CanonOptions()),))
    canonicalizer = Canonicalizer([LanguageRef("any", "1")])
    assert [token.text for token in canonicalizer.tokens("Мама mia")] == ["мама", "mia"]


@pytest.mark.parametrize(("decided", "expected"), [("char", ["a", "b", "1"]), ("word", ["ab1"])])
def test_a_language_decides_whether_its_letters_are_words_or_tokens(monkeypatch, decided, expected):
    class Lettered(Language):
        code = "any"
        scripts = frozenset({"Latn", "Zyyy"})
        unit = decided

        def canonical(self, word: str) -> str | None:
            return word

    monkeypatch.setattr(
        "shinglefold.canon.canonicalizer.load_languages", lambda _: (Lettered(CanonOptions()),)
    )
    canonicalizer = Canonicalizer([LanguageRef("any", "1")])
    assert [token.text for token in canonicalizer.tokens("ab1")] == expected


def test_short_words_are_dropped_on_request(scheme):
    refs = [
        LanguageRef(r.code, r.version, CanonOptions("surface", False, min_length=3)) for r in scheme.languages
    ]
    short = Canonicalizer(refs)
    text, kept = "Он не спал и ел, 很好 ok", ["спал", "很", "好"]
    assert [token.text for token in short.tokens(text)] == kept
    # Once as words that are new, once as known ones.
    for _ in range(2):
        batch = short.hash_batch([text, text])
        assert batch.hashes.tolist() == 2 * [token_hash(word) for word in kept]
        assert batch.offsets.tolist() == [0, 3, 6]


def test_blocks_are_of_equal_size_and_the_last_one_is_not_small():
    # Between two pieces stands one character that parts them.
    quarter = "a" * (BLOCK // 4 - 1)
    counts = {
        number: [len(block.pieces) for block in blocks([quarter] * number)] for number in (4, 5, 6, 7, 9)
    }
    assert counts == {4: [4], 5: [5], 6: [3, 3], 7: [3, 4], 9: [4, 5]}
    assert [block.numbers for block in blocks(["a" * 2 * BLOCK, "b"])] == [[0], [1]]
