"""HTML to a tree of what browsers show, in time linear in the length of the markup."""

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser


def _either_case(names: str) -> str:
    """Return a pattern for names in either case; grouping by first letter is twice as fast as a flag."""
    rests: dict[str, list[str]] = {}
    for name in names.split("|"):
        first, *rest = ("".join(dict.fromkeys((letter, letter.upper()))) for letter in name)
        rests.setdefault(f"[{first}]", []).append("".join(f"[{letter}]" for letter in rest))
    return "|".join(f"{first}(?:{'|'.join(endings)})" for first, endings in rests.items())


#: Elements that begin a new line. Text runs through all others: ``сло<b>во</b>`` is one word.
_BLOCKS = (
    "address|article|aside|blockquote|body|br|button|caption|center|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|foreignobject|form|h1|h2|h3|h4|h5|h6|head|header|hgroup|hr|html|img|input|legend|"
    "li|listing|main|menu|nav|ol|optgroup|option|p|pre|search|section|select|summary|table|tbody|td|text|textarea|tfoot|th|thead|title|tr|tspan|ul|xmp"
)
#: All characters that are white space, in UTF-8.
_SPACES = "|".join(
    sorted({chr(code).encode().decode("latin-1") for code in range(0x3001) if chr(code).isspace()})
)
#: Tags of block elements without a line end before them, as bytes: the parser takes UTF-8, and bytes are
#: searched faster. (A line end that the parser drops follows a block tag, which gets its own.)
_BLOCK_TAG = re.compile(rf"<(?<!\n<)(?=/?(?:{_either_case(_BLOCKS)})(?:[/>]|{_SPACES}))".encode("latin-1"))
#: Elements that no browser shows as text of the page, and ruby annotations (``rt``).
_UNREAD = [
    "script", "style", "template", "noframes", "noembed", "iframe", "head", "audio", "video", "canvas",
    "datalist", "title", "desc", "metadata", "defs", "symbol", "annotation", "annotation-xml", "rt", "rtc",
    "rp", "progress", "meter",
]  # fmt: skip
#: Icons and the like, which browsers show in a line, between words.
_IN_LINE = "svg, iframe, object, audio, video, canvas, progress, meter"
#: Elements that browsers without scripts, plugins or frames show, and pictures, which may have text.
INSTEAD = ("noscript", "object", "svg")
#: Inline elements without a meaning, as ``span``: misnested or unclosed ones (a ``font`` in each
#: paragraph, a ``select`` of all towns) take the parser quadratic time.
_INLINE = "a|b|big|code|em|font|i|nobr|optgroup|option|s|select|small|strike|strong|tt|u"
_AS_SPAN = re.compile(rf"<(?:{_either_case(_INLINE)})(?=[\s/>])".encode())
_AS_SPAN_END = re.compile(rf"</(?:{_either_case(_INLINE)})(?=[\s/>])".encode())
#: XML, where each element may close itself: HTML would take the rest of the page for its content.
_XHTML = re.compile(rb"\A\s*<\?xml\s|<html\s[^>]*\bxmlns\s*=", re.IGNORECASE)
_HEAD = 2048
_CLOSES_ITSELF = re.compile(
    rf"<({_either_case('|'.join((*_UNREAD, *INSTEAD, 'textarea', 'xmp')))})"
    r"((?:\s+[^\s=<>/]+\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'))*)\s*/>".encode()
)
_CDATA = re.compile(rb"<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)
#: A template that browsers show in place of its parent's content.
_SHADOW = re.compile(rb"<template(?=\s[^>]*\bshadowroot(?:mode)?\s*=)", re.IGNORECASE)
#: Where a page is made of frames, which are other pages, its own text is in ``noframes``.
_FRAMES = re.compile(rb"<(/?)(?:frameset|noframes)(?=[\s/>])", re.IGNORECASE)
_NESTED = (
    "address|article|aside|blockquote|center|details|dialog|dir|div|dl|fieldset|figcaption|figure|footer|form|"
    "header|hgroup|listing|main|menu|nav|noscript|object|ol|pre|search|section|summary|table|ul"
)
#: Elements whose nesting takes the parser quadratic time.
_DEEP = re.compile(rf"<(/?)(?:{_either_case(_NESTED)}|[sS][vV][gG](?![^<>]*/>))(?=[\s/>])".encode())
_DEEP_SPAN = re.compile(rb"<(/?)(?:span|[a-z]+-[a-z-]+)(?=[\s/>])", re.IGNORECASE)
#: The most tags, and the most unclosed tags, that are parsed within a second however they are nested.
_MANY, _UNCLOSED = 8192, 256
#: A quick search for long tags, the tags, and the values that their attributes quote. The search begins at
#: each "<": from each byte it would read a run of text once for each of its bytes.
_LONG_RUN = re.compile(rb"<[^<>]{4096}")
_LONG_TAG = re.compile(rb"(<[a-z][^\s/<>]{0,99})([^<>]{4096,})", re.IGNORECASE)
_QUOTED = re.compile(rb"""\"[^\"]*\"|'[^']*'""")
_PARTS, _MANY_ATTRIBUTES = re.compile(rb"[\s/]+"), 1024
#: How deep browsers nest elements; deeper ones become siblings.
_DEEPEST = 512


def parse_html(html: str) -> "LexborHTMLParser":
    """Return a page as a tree, without elements that no browser shows, in time linear in its length.

    A line end stands before each block tag.
    """
    from selectolax.lexbor import LexborHTMLParser

    markup = html.encode("utf-8", "ignore").replace(b"\0", b"")
    if _XHTML.search(markup, 0, _HEAD):
        markup = _CDATA.sub(lambda data: escape(data[1].decode()).encode(), markup)
        markup = _CLOSES_ITSELF.sub(rb"<\1\2></\1>", markup)
    # A line end before the tag, which the parser keeps as text; doubled ones are removed later.
    page = LexborHTMLParser(_linear(_BLOCK_TAG.sub(b"\n<", markup)))
    for node in page.css(_IN_LINE):
        node.insert_before(" ")
    page.strip_tags(_UNREAD, recursive=True)
    return page


def _linear(markup: bytes) -> bytes:
    """Return markup of the same text that takes the parser linear time."""
    if _LONG_RUN.search(markup):
        markup = _LONG_TAG.sub(_with_fewer_attributes, markup)
    if b"shadowroot" in markup:
        markup = _SHADOW.sub(b"<div", markup)
    if b"<frameset" in markup.lower():
        markup = _FRAMES.sub(rb"<\1noscript", markup)
    tags = markup.count(b"<")
    if tags > _MANY or tags - 2 * markup.count(b"</") > _UNCLOSED:
        markup = _AS_SPAN_END.sub(b"</span", _AS_SPAN.sub(b"<span", markup))
    return _flat(_flat(markup, _DEEP), _DEEP_SPAN) if tags > _MANY else markup


def _with_fewer_attributes(tag: re.Match[bytes]) -> bytes:
    """Return a long tag without its attributes if they are very many: each is compared with all others."""
    attributes = _PARTS.split(_QUOTED.sub(b"", tag[2]))
    return tag[0] if len(attributes) < _MANY_ATTRIBUTES else tag[1] + b" "


def _flat(markup: bytes, nested: re.Pattern[bytes]) -> bytes:
    """Return markup in which elements deeper than browsers nest them contain nothing."""
    depth, done, parts = 0, 0, list[bytes]()
    for tag in nested.finditer(markup):
        if not tag[1]:
            depth += 1
        if depth > _DEEPEST:
            parts += [markup[done : tag.start()], b"<wbr"]
            done = tag.end()
        if tag[1] and depth:
            depth -= 1
    return b"".join([*parts, markup[done:]]) if parts else markup
