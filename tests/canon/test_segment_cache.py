"""Words found for a fingerprint are not looked for again for a search: to the same words, once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.generated import texts
from support.servers.choose import examples

from shinglefold.canon import Canonicalizer
from shinglefold.canon import canonicalizer as module
from shinglefold.canon.segmentation import Block, SegmentCache, Segments, join, segment, split_by_parts
from shinglefold.registry import make_scheme

#: Letters, what joins and what parts them, what nobody sees, marks, and half of a surrogate pair.
ODD = st.text("аіyЖ日1 \n’'-+#\"мя\u00ad\u200b\ufe0f\u0301\u0306е\ud800", max_size=12)
DOCUMENTS = st.lists(st.lists(ODD | st.text(max_size=30), min_size=1, max_size=4), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def own() -> Canonicalizer:
    return Canonicalizer(make_scheme().languages)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The texts of each block that words are looked for in."""
    found: list[list[str]] = []

    def spied(block, tables, joins):
        found.append(list(block))
        return segment(block, tables, joins)

    monkeypatch.setattr(module, "segment", spied)
    return found


def _fresh(canonicalizer: Canonicalizer, batch: list[str]) -> list[str]:
    return [" ".join(token.text for token in canonicalizer.tokens(text)) for text in batch]


@given(DOCUMENTS)
@settings(max_examples=examples(300), deadline=None)
def test_fields_of_documents_that_were_hashed_have_the_words_they_have_alone(own, documents):
    own.text_batch([])
    own.hash_batch([join(fields) for fields in documents], ["uk"] * len(documents))
    fields = [field for document in documents for field in document]
    wanted = [*fields, "ещё одно поле", *fields[:1]]
    assert own.text_batch(wanted) == _fresh(own, wanted)


@pytest.mark.long
def test_generated_documents_have_the_words_they_have_alone(own):
    fields = [text for text in texts(2_000, seed=5) if text]
    documents = [fields[first : first + 2] for first in range(0, len(fields), 2)]
    own.text_batch([])
    own.hash_batch([join(document) for document in documents])
    assert own.text_batch(fields) == _fresh(own, fields)


def test_the_words_of_a_document_are_looked_for_once(own, looks):
    own.text_batch([])
    own.hash_batch([join(["Крыши", "Коты спали на крышах"]), "Дети читают"])
    assert (
        own.text_batch(["Крыши", "Коты спали на крышах", "Дети читают", "прочее"])[1] == "кот спасть на крыша"
    )
    assert looks == [["Крыши\nКоты спали на крышах", "Дети читают"], ["прочее"]]


def test_a_block_with_a_text_that_nobody_wants_is_looked_through_again(own, looks):
    own.text_batch([])
    own.hash_batch([join(["Крыши", "Коты"]), "Дети"])
    assert own.text_batch(["Крыши", "Коты"]) == ["крыша", "кот"]
    assert looks[1:] == [["Крыши", "Коты"]]


def test_what_was_asked_for_is_let_go_of(own, looks):
    own.text_batch([])
    own.hash_batch(["Крыши"])
    assert own.text_batch(["Крыши"]) == own.text_batch(["Крыши"]) == ["крыша"]
    assert len(looks) == 2


def test_who_wants_no_strings_keeps_nothing(looks):
    canonicalizer = Canonicalizer(make_scheme().languages)
    canonicalizer.hash_batch(["Крыши"])
    assert canonicalizer.text_batch(["Крыши"]) == ["крыша"]
    assert len(looks) == 2


def test_only_so_many_blocks_are_kept(own):
    cache = SegmentCache()
    made = [f"слово{number}" for number in range(40)]
    for text in made:
        cache.record(Block([0], [0], [text]), [text], segment([text], own._router.tables))
    assert [known.texts for known in cache.pop_matching(made)] == [[text] for text in made[-16:]]
    assert list(cache.pop_matching(made)) == []


@pytest.mark.parametrize("text", ["слово " * 50_000, "е\u0301ж"], ids=["in pieces", "composed"])
def test_parts_of_long_texts_and_what_marks_were_composed_in_are_looked_for_again(own, text, looks):
    own.text_batch([])
    own.hash_batch([text])
    before = len(looks)
    assert own.text_batch([text]) == _fresh(own, [text])
    assert len(looks) > before


def _columns(segments: Segments) -> list[object]:
    clean = segments.clean
    columns = (segments.starts, segments.ends, segments.keys, segments.traits, segments.bounds)
    return [column.tolist() for column in (*columns, clean.codes, clean.kind, clean.origins, clean.given)]


@given(DOCUMENTS)
@settings(max_examples=examples(300), deadline=None)
def test_parted_words_are_those_of_the_parts(own, documents):
    tables = own._router.tables
    together = segment([join(fields) for fields in documents], tables)
    fields = [field for document in documents for field in document]
    if not together.clean.composed:
        assert _columns(split_by_parts(together, fields)) == _columns(segment(fields, tables))
