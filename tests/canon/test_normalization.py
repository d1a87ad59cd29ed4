import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.generated import texts
from support.servers.choose import examples

from shinglefold.canon.normalization import clean_texts
from shinglefold.canon.unicode_tables import characters


def clean_text(text: str) -> str:
    block = clean_texts([text], characters().kind)
    return "".join(map(chr, block.codes[1:-1].tolist()))


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("сло\u00adво", "слово"),
        ("сло\u200b\u2060во", "слово"),
        ("\u202eтекст\u202c", "текст"),
        ("и\u0306 е\u0308 і\u0308", "й ё ї"),
        ("за\u0301мок", "замок"),
        ("e\u0301", "é"),
        ("ﬁn", "fin"),
        ("ᄒ\u1161\u11ab", "한"),
        ("т\u0335\u0336\u0337е\u0338кст", "текст"),
    ],
)
def test_clean_up(given_text, expected):
    assert clean_text(given_text) == expected


def test_invisible_characters_inside_words_are_counted_and_others_are_not():
    block = clean_texts(["сло\u00ad\u00adво \u200b и", "слово", "а\u200bб", "末\u2060班"], characters().kind)
    assert block.removed.tolist() == [2, 0, 1, 1]


def test_a_clean_text_is_left_alone():
    block = clean_texts(["Мама мыла раму", "漢字"], characters().kind)
    assert block.places is None


@given(st.text(max_size=60))
@settings(max_examples=examples(300), deadline=None)
def test_composed_and_decomposed_texts_end_up_the_same(canonicalizer, text):
    forms = {
        tuple(t.text for t in canonicalizer.tokens(unicodedata.normalize(f, text))) for f in ("NFC", "NFD")
    }
    assert len(forms) == 1


def test_every_text_of_a_block_keeps_its_place():
    batch = list(texts(300, seed=3))
    block = clean_texts(batch, characters().kind)
    for number, text in enumerate(batch):
        end = block.origins[number + 1] - 1 if number + 1 < len(batch) else len(block.codes) - 1
        own = block.codes[block.origins[number] : end]
        assert "".join(map(chr, own.tolist())) == clean_text(text), repr(text)


def test_a_token_of_a_decomposed_text_covers_all_its_marks(canonicalizer):
    text = unicodedata.normalize("NFD", "Йод, мой й\u0301од — ёж и їжак")
    spans = [text[token.start : token.end] for token in canonicalizer.tokens(text)]
    assert spans == [unicodedata.normalize("NFD", w) for w in ("Йод", "мой", "й\u0301од", "ёж", "и", "їжак")]
