"""Fragments hold what was found, marked at the right places, and do not overlap."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.engines.embedded.search.highlight import (
    Style,
    cut_fragments,
    highlight,
    read_highlight,
    wrap,
)
from shinglefold.engines.embedded.search.queries import Mark
from shinglefold.errors import UnsupportedQuery
from shinglefold.model.values import Token


def _tokens(text: str) -> list[Token]:
    return [Token(word[0].lower(), *word.span(), "any") for word in re.finditer(r"\w+", text)]


def _marked(text: str, *marks: Mark, **style: object) -> list[str]:
    return highlight(text, _tokens(text), marks, Style(tags=("[", "]"), **style))


def _word(*words: str, slop: int = 0) -> Mark:
    return Mark("body", words, slop)


_words = st.sets(st.sampled_from(["a", "b", "ab", "ї", "漢"]), min_size=1)
_texts = st.text(alphabet="ab \n漢ї", max_size=300)


@given(
    text=_texts,
    wanted=_words,
    size=st.integers(1, 90),
)
def test_every_match_is_in_exactly_one_fragment(text, wanted, size):
    tokens = _tokens(text)
    spans = [(token.start, token.end) for token in tokens if token.text in wanted]
    fragments = cut_fragments(text, spans, size)
    assert sum(fragment.matches for fragment in fragments) == len(spans)
    inside = [
        sum(fragment.start <= low and high <= fragment.end for fragment in fragments) for low, high in spans
    ]
    assert inside == [1] * len(spans)
    assert all(one.end <= next_.start for one, next_ in pairwise(fragments))
    assert all(0 <= fragment.start < fragment.end <= len(text) for fragment in fragments)


@given(text=_texts, size=st.integers(1, 90))
def test_without_its_marks_a_fragment_is_a_part_of_the_text(text, size):
    fragments = _marked(text, _word("ab"), _word("a"), fragment_size=size, fragments=100)
    for fragment in fragments:
        assert fragment.replace("[", "").replace("]", "") in text
        assert re.search(r"\[\w+\]", fragment)
    assert sum(fragment.count("[") for fragment in fragments) == len(re.findall(r"\b(?:ab|a)\b", text))


def test_a_text_without_a_match_gives_nothing_or_its_beginning():
    assert _marked("one two", _word("three")) == []
    assert _marked("one two", _word("three"), no_match_size=3) == ["one"]


def test_no_fragments_means_the_whole_text():
    assert _marked("one two one", _word("one"), fragments=0) == ["[one] two [one]"]


def test_fragments_come_as_in_the_text_or_the_best_first():
    text = "a x " + "z " * 80 + "a b a"
    assert _marked(text, _word("a"), _word("b"), fragment_size=20)[0].startswith("[a]")
    assert _marked(text, _word("a"), _word("b"), fragment_size=20, by_score=True)[0].endswith("[a] [b] [a]")
    assert len(_marked(text, _word("a"), fragment_size=20, fragments=1)) == 1


def test_fragments_begin_and_end_at_words():
    text = "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike"
    for size in range(15, 60):
        (fragment,) = _marked(text, _word("golf"), fragment_size=size)
        assert set(fragment.replace("[", "").replace("]", "").split()) <= set(text.split()), size


def test_only_whole_phrases_are_marked():
    text = "red fox, fox red; red big fox"
    assert _marked(text, _word("red", "fox")) == ["[red] [fox], fox red; red big fox"]
    assert _marked(text, _word("red", "fox", slop=1)) == ["[red] [fox], [fox] [red]; [red] big [fox]"]


def test_marks_outside_a_part_are_left_alone():
    assert wrap("one two three", 4, 7, [(0, 3), (4, 7), (8, 13)], ("<", ">")) == "<two>"


@pytest.mark.parametrize("fields", [["body"], "body", [["body"]]])
def test_a_list_of_fields_without_their_options_is_refused_with_the_form(fields):
    with pytest.raises(UnsupportedQuery, match=r'"body": \{\}'):
        read_highlight({"fields": fields})
