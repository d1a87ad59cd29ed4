"""Passages: what they hold, where they stand, and the page of two texts with every passage on both sides."""

import re
from html import unescape
from itertools import groupby

from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import split
from support.servers.choose import examples
from support.soon import soon

from shinglefold.passages.alignment import GAP, Span, find_passages
from shinglefold.passages.html_report import Shown, page, ranges


def _found(a: str, b: str) -> list[tuple[str, str, list[str], list[str]]]:
    return [
        (
            a[p.a.start : p.a.end],
            b[p.b.start : p.b.end],
            [a[m.start : m.end] for m in p.marks_a],
            [b[m.start : m.end] for m in p.marks_b],
        )
        for p in find_passages(split(a), split(b))
    ]


def test_equal_texts_are_one_passage_without_marks():
    text = "The bridge will be closed for repair"
    assert _found(text, text) == [(text, text, [], [])]


def test_differing_words_are_marked_on_both_sides():
    a, b = (
        "the old bridge will be closed in May for repair",
        "the old bridge will be closed in early June for repair",
    )
    assert _found(a, b) == [(a, b, ["May"], ["early June"])]


def test_a_word_only_one_side_has_is_marked_there():
    a, b = "we feed the hungry starter every single day", "we feed the starter every single day"
    assert _found(a, b) == [(a, b, ["hungry"], [])]


def test_case_and_other_forms_of_a_canonical_token_are_no_difference():
    assert _found("The Bridge Will Be Closed", "the bridge will be closed")[0][2:] == ([], [])


def test_texts_that_share_only_scattered_words_have_no_passage():
    assert _found("the cat and a dog sat here", "a dog met the cat and left") == []


def test_as_many_other_words_as_a_gap_may_have_part_no_passage():
    for here, there in ((GAP, GAP), (GAP, 0), (0, GAP)):
        middle = [" ".join(f"{side}{n}" for n in range(count)) for side, count in (("x", here), ("y", there))]
        a, b = (f"here begins the first of them {one} and there comes the last one" for one in middle)
        assert [passage[:2] for passage in _found(a, b)] == [(a, b)]


def test_passages_far_apart_are_two():
    middle = " ".join(f"x{n}" for n in range(GAP + 1))
    one, two = "here begins the first of them", "and there comes the last one"
    other = " ".join(f"y{n}" for n in range(GAP + 1))
    assert [p[0] for p in _found(f"{one} {middle} {two}", f"{one} {other} {two}")] == [one, two]


def test_passages_in_another_order_are_found():
    one = "one two three four five six seven eight nine ten"
    two = "red green blue black white pink grey brown"
    for a, b in ((f"{one} {two}", f"{two} {one}"), (f"{two} {one}", f"{one} {two}")):
        assert sorted(p[:2] for p in _found(a, b)) == sorted([(one, one), (two, two)])


def test_long_texts_are_aligned_in_little_time():
    words = [f"w{n % 700}" for n in range(2_000)]
    a, b = " ".join(words), " ".join(word if n % 9 else "other" for n, word in enumerate(words))
    one, other = split(a), split(b)
    with soon(walks=80):
        found = find_passages(one, other)
    assert sum(passage.equal for passage in found) > 1_600


def _page(a: str, b: str) -> str:
    return page([Shown("a", a, 1, 0.5), Shown("b", b, 1, 0.5)], find_passages(split(a), split(b)), 3)


def _texts(html: str) -> list[str]:
    found = re.findall(r'<div class="text">(.*?)</div>', html, re.DOTALL)
    return [unescape(re.sub(r"<sup>.*?</sup>|<[^>]+>", "", one)) for one in found]


words = st.lists(st.sampled_from(["a", "b", "<c>", "&amp;", "é"]), max_size=60).map(" ".join)


@given(words, words)
@settings(max_examples=examples(150), deadline=None)
def test_the_page_has_both_texts_whole_and_in_order(a, b):
    assert _texts(_page(a, b)) == [a, b]


def _ranges_by_definition(length, spans, marks):
    """Of each character the passage that began last, and whether it is marked there; equal ones together."""
    each = []
    for at in range(length):
        around = [(one.start, number) for number, one in enumerate(spans) if one.start <= at < one.end]
        number = max(around, default=(0, -1))[1]
        each.append((number, number >= 0 and any(one.start <= at < one.end for one in marks[number])))
    return [(len([*same]), *which) for which, same in groupby(each)]


@st.composite
def _marked_spans(draw):
    length = draw(st.integers(0, 12))
    cuts = st.lists(st.integers(0, length), min_size=4, max_size=4).map(sorted)
    drawn = draw(st.lists(cuts, max_size=5))
    spans, marks = [Span(one[0], one[3]) for one in drawn], [[Span(one[1], one[2])] for one in drawn]
    return length, spans, marks


@given(_marked_spans())
def test_a_character_belongs_to_the_passage_that_began_last(drawn):
    found = [*ranges(*drawn)]
    assert [(end - start, passage, differs) for start, end, passage, differs in found] == (
        _ranges_by_definition(*drawn)
    )
    assert [one.start for one in found[1:]] == [one.end for one in found[:-1]]


def test_what_matches_is_linked_to_the_other_side_and_what_differs_is_underlined():
    html = _page("so we feed the hungry starter every single day", "we feed the starter every single day")
    assert html.count('<a href="#b1" id="a1"') == html.count('<a href="#a1" id="b1"') == 1
    assert "<p>1 passage in common." in html
    assert re.findall(r"<u>(.*?)</u>", html) == ["hungry"]
    assert ">so <a" in html


def test_a_script_in_a_text_or_a_name_stays_text():
    html = page([Shown("<script>", "<script>x()</script>", 1, 0), Shown("b", "", 0, 0)], [], 5)
    assert "<script" not in html
