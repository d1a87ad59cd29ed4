"""Fields with text are found by running text, besides the configured ones."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.soon import soon

from shinglefold.ingest.field_statistics import FieldWatch, likely_texts

_EIGHT_WORDS = re.compile(r"(?:\S+\s+){7}\S")


@pytest.mark.parametrize("blob", ["x" * 1_000_000, "x " * 5 + "x" * 1_000_000, "\u00a0" * 1_000_000])
def test_a_picture_in_a_field_is_looked_at_in_no_time(blob):
    with soon():
        found = likely_texts([{"picture": blob, "content": "one two three four five six seven eight"}])
    assert found == ["content"]


@given(st.text(st.sampled_from("ab \n\t."), max_size=40))
def test_eight_words_in_a_row_are_running_text_and_fewer_are_none(text):
    assert bool(likely_texts([{"content": text}])) == bool(_EIGHT_WORDS.search(text))


@pytest.mark.parametrize(("documents", "found"), [(4, ["title", "content"]), (5, []), (8, [])])
def test_fields_with_text_in_a_quarter_of_the_documents_are_reported(documents, found):
    bare = [{"price": "17"}] * (documents - 1)
    assert (
        likely_texts([{"title": "one", "content": "one two three four five six seven eight"}, *bare]) == found
    )


@pytest.mark.parametrize(
    ("documents", "found"),
    [
        ([{"sku": "a-1"}, {"sku": "a-2"}], "sku"),
        ([{"n": 1, "product_id": 1}, {"n": 2, "product_id": 2}], "product_id"),
        ([{"articleId": "x"}, {"articleId": "y"}], "articleId"),
        ([{"shop_id": "a"}, {"shop_id": "a"}], ""),
        ([{"sku": ["a"]}, {"sku": ["b"]}], ""),
        ([{"sku": "a-1"}, {}], ""),
        ([{"sku": "a-1", "_id": "1"}, {"sku": "a-2"}], ""),
        ([{"paid": "1"}, {"paid": "2"}], ""),
    ],
)
def test_a_field_whose_name_and_values_are_those_of_ids_may_hold_them(documents, found):
    watch = FieldWatch(("body",))
    for document in documents:
        watch.add(document)
    assert watch.likely_id == found
