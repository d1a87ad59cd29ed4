"""Long texts are compressed and come back as they were, whatever they are made of."""

import pickle

import pytest

from shinglefold import long_texts
from shinglefold.long_texts import LongText, is_long, pack, packed, unpacked

_TEXTS = (
    "",
    "x",
    "Серая цапля стоит у воды. " * 400,
    "a\ud800 lone surrogate and its other half \udfff " * 200,
    "𝄞 beyond the first plane " * 300,
)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Texts that are long with a thousand characters, in pieces of 700."""
    monkeypatch.setattr(long_texts, "LONG", 1000)
    monkeypatch.setattr(long_texts, "_PIECE", 700)


@pytest.mark.parametrize("text", _TEXTS)
def test_a_text_comes_back_as_it_was_and_is_equal_to_itself_alone(text):
    long = LongText.of(text)
    assert str(long) == text
    assert len(long) == len(text)
    assert "".join(long.pieces()) == text
    assert all(len(piece) <= 700 for piece in long.pieces())
    assert long == LongText.of(text)
    assert hash(long) == hash(LongText.of(text))
    assert long != LongText.of(text + "!")
    assert pickle.loads(pickle.dumps(long)) == long


@pytest.mark.parametrize("size", [1, 3, 699, 700, 701, 5000])
def test_a_text_may_come_in_pieces_of_any_length(size):
    text = _TEXTS[2]
    assert str(LongText.joined(text[at : at + size] for at in range(0, len(text), size))) == text


def test_only_long_texts_at_the_top_of_a_document_are_compressed_and_none_is_lost():
    text = _TEXTS[2]
    document = {"_id": "1", "title": "a title", "body": text, "again": text, "n": 7, "inner": {"body": text}}
    light, long = packed(document)
    assert list(light) == list(document)
    assert light["body"] == light["again"] == long[text] == LongText.of(text)
    assert {name: light[name] for name in ("title", "n", "inner")} == {
        name: document[name] for name in ("title", "n", "inner")
    }
    assert document["body"] is text
    assert unpacked(light) == document
    assert packed({"title": "short"}) == ({"title": "short"}, {})
    assert [is_long(value) for value in (text, LongText.of(text), "short", 7, None)] == [
        True, True, False, False, False,
    ]  # fmt: skip


def test_whoever_else_holds_a_document_lets_go_of_its_texts_too():
    document = {"_id": "1", "body": _TEXTS[2]}
    other = document
    pack(document)
    assert other == {"_id": "1", "body": LongText.of(_TEXTS[2])}
    pack(document)
    assert unpacked(document)["body"] == _TEXTS[2]


def test_it_takes_a_fraction_of_the_space_and_shows_little_of_itself():
    long = LongText.of(_TEXTS[2])
    assert len(pickle.dumps(long)) < len(_TEXTS[2].encode()) / 10
    assert len(repr(long)) < 100
