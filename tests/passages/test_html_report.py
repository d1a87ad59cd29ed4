"""The page of two texts: all of both, escaped, with every passage on both sides."""

import re
from html import unescape

from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers.choose import examples

from shinglefold.model.values import Token
from shinglefold.passages.alignment import find_passages
from shinglefold.passages.html_report import Shown, page


def _tokens(text: str) -> list[Token]:
    return [Token(m[0], m.start(), m.end(), "en") for m in re.finditer(r"\S+", text)]


def _page(a: str, b: str) -> str:
    return page([Shown("a", a, 1, 0.5), Shown("b", b, 1, 0.5)], find_passages(_tokens(a), _tokens(b)), 3)


def _texts(html: str) -> list[str]:
    found = re.findall(r'<div class="text">(.*?)</div>', html, re.DOTALL)
    return [unescape(re.sub(r"<sup>.*?</sup>|<[^>]+>", "", one)) for one in found]


words = st.lists(st.sampled_from(["a", "b", "<c>", "&amp;", "é"]), max_size=60).map(" ".join)


@given(words, words)
@settings(max_examples=examples(150), deadline=None)
def test_the_page_has_both_texts_whole_and_in_order(a, b):
    assert _texts(_page(a, b)) == [a, b]


def test_what_matches_is_linked_to_the_other_side_and_what_differs_is_underlined():
    html = _page("so we feed the hungry starter every single day", "we feed the starter every single day")
    assert '<a href="#b1" id="a1"' in html
    assert '<a href="#a1" id="b1"' in html
    assert re.findall(r"<u>(.*?)</u>", html) == ["hungry"]
    assert ">so <a" in html


def test_a_script_in_a_text_or_a_name_stays_text():
    html = page([Shown("<script>", "<script>x()</script>", 1, 0), Shown("b", "", 0, 0)], [], 5)
    assert "<script" not in html
