"""HTML to the plain text that a reader sees: without hidden parts, one line for each block element."""

import re
from collections.abc import Iterator
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

from shinglefold.options.validation import check_str

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode


def _either_case(names: str) -> str:
    """Return a pattern for names in either case. Grouped by first letter it is twice as fast as a flag."""
    rests: dict[str, list[str]] = {}
    for name in names.split("|"):
        first, *rest = ("".join(dict.fromkeys((letter, letter.upper()))) for letter in name)
        rests.setdefault(f"[{first}]", []).append("".join(f"[{letter}]" for letter in rest))
    return "|".join(f"{first}(?:{'|'.join(endings)})" for first, endings in rests.items())


#: Elements that begin a new line. Text runs through all others: ``сло<b>во</b>`` is one word.
_BLOCKS = (
    "address|article|aside|blockquote|body|br|button|caption|center|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|h1|h2|h3|h4|h5|h6|head|header|hgroup|hr|html|img|input|legend|"
    "li|listing|main|menu|nav|ol|optgroup|option|p|pre|search|section|select|summary|table|tbody|td|textarea|tfoot|th|thead|title|tr|ul|xmp"
)
#: All characters that are white space, in UTF-8.
_SPACES = "|".join(
    sorted({chr(code).encode().decode("latin-1") for code in range(0x3001) if chr(code).isspace()})
)
#: Tags of block elements without a line end before them, as bytes: the parser takes UTF-8, and bytes are
#: searched faster. (A line end that the parser drops follows a block tag, which gets its own.)
_BLOCK_TAG = re.compile(rf"<(?<!\n<)(?=/?(?:{_either_case(_BLOCKS)})(?:[/>]|{_SPACES}))".encode("latin-1"))
_MARKED = re.compile("[<&\0\ud800-\udfff]")
_SPACE = re.compile(r"\s")
#: The number of characters whose words are joined at a time.
_AT_ONCE = 1 << 20
#: Elements that no browser shows as text of the page, and readings above the line.
_UNREAD = [
    "script", "style", "template", "noframes", "noembed", "iframe", "object", "svg", "head",
    "audio", "video", "canvas", "datalist", "title", "annotation", "annotation-xml", "rt", "rtc", "rp",
    "progress", "meter",
]  # fmt: skip
#: Icons and the like, which browsers show in a line, between words.
_IN_LINE = "svg, iframe, object, audio, video, canvas, progress, meter"
#: Elements with this attribute are shown later by scripts: tabs, folded sections, variants of a passage.
_HIDDEN_ATTRIBUTE = "[hidden]:not(html, body)"
_STYLED = "[style*='display' i]:not(html, body)"
_LINES = re.compile("block|flex|grid|table|list-item|flow-root")
_DISPLAY = re.compile(r"(?:^|;)\s*display\s*:\s*([\w-]+)\s*(!?)", re.IGNORECASE)
#: Dialogs that are not open, such as requests for consent.
_CLOSED = "dialog:not([open]), [popover]"
#: Hidden parts that are never the page's own text.
_FRAME = "dialog, nav, [role=dialog], [role=alertdialog], [role=navigation], [aria-modal=true]"
#: What does not hide from readers of text, and headings that fold what they head.
_UNSEEN = "[hidden], [aria-hidden], [style*='visibility' i]"
_FOLDED_HEADING = ", ".join(
    f"{each} button" for each in ("h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary")
)
_DATE_IN_TEXT = "p time, li time, dd time, td time, blockquote time"
#: What browsers without scripts show; requests to switch them on are no text of a page.
_NO_SCRIPT, _REQUEST = "noscript", re.compile("java ?script|скрипт|脚本|腳本", re.IGNORECASE)
#: Attributes that mark an element as hidden, a dialog or a menu, and how deeply a page's text is nested.
_SAID_OF_FRAMES, _LEVELS = ("hidden", "style", "class", "id", "role"), 32
#: What a script makes visible after it has loaded the page.
_INVISIBLE = "[style*='visibility:hidden' i], [style*='visibility: hidden' i]"
#: Elements in which a page says that its own text is.
_OWN_TEXT = "main, article, [role=main], [itemprop=articleBody]"
#: Fewer characters are a remark or a variant, and no text of a page.
_LEAST = 100
#: A text that names scripts and is shorter requests them.
_LONGEST_REQUEST = 600
#: Inline elements without a meaning, as ``span``: misnested or unclosed ones (a ``font`` in each
#: paragraph, a ``select`` of all towns) take the parser quadratic time.
_INLINE = "a|b|big|code|em|font|i|nobr|optgroup|option|s|select|small|strike|strong|tt|u"
_AS_SPAN = re.compile(rf"<(?:{_either_case(_INLINE)})(?=[\s/>])".encode())
_AS_SPAN_END = re.compile(rf"</(?:{_either_case(_INLINE)})(?=[\s/>])".encode())
#: XML, where each element may close itself: HTML would take the rest of the page for its content.
_XHTML = re.compile(rb"\A\s*<\?xml\s|<html\s[^>]*\bxmlns\s*=", re.IGNORECASE)
_HEAD = 2048
_CLOSES_ITSELF = re.compile(
    rf"<({_either_case('|'.join((*_UNREAD, _NO_SCRIPT, 'textarea', 'xmp')))})"
    r"((?:\s+[^\s=<>/]+\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'))*)\s*/>".encode()
)
_CDATA = re.compile(rb"<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)
#: A template that browsers show in place of its parent's content.
_SHADOW = re.compile(rb"<template(?=\s[^>]*\bshadowrootmode\s*=)", re.IGNORECASE)
_NESTED = (
    "address|article|aside|blockquote|center|details|dialog|dir|div|dl|fieldset|figcaption|figure|footer|form|"
    "header|hgroup|listing|main|menu|nav|ol|pre|search|section|summary|table|ul"
)
#: Elements whose nesting takes the parser quadratic time.
_DEEP = re.compile(rf"<(/?)(?:{_either_case(_NESTED)})(?=[\s/>])".encode())
_DEEP_SPAN = re.compile(rb"<(/?)(?:span|[a-z]+-[a-z-]+)(?=[\s/>])", re.IGNORECASE)
#: Pages of fewer tags, closed tags, are parsed in less than a second whatever they nest.
_MANY, _UNCLOSED = 8192, 256
#: A quick look for long tags, these, and what does not part their attributes.
_LONG_RUN = re.compile(rb"[^<>]{4096}")
_LONG_TAG = re.compile(rb"(<[a-z][^\s/<>]{0,99})([^<>]{4096,})", re.IGNORECASE)
_QUOTED = re.compile(rb"""\"[^\"]*\"|'[^']*'""")
_PARTS, _MANY_ATTRIBUTES = re.compile(rb"[\s/]+"), 1024
_LIST = re.compile(r"<(/?)ul(?=[\s/>])")
_FIGURE = re.compile(r"<(/?)fig(?:ure|caption)(?=[\s/>])")
#: How deep browsers nest elements; deeper ones become siblings.
_DEEPEST = 512


def strip_html(html: str, keep_hidden: bool = False) -> str:
    """Return the text of an HTML page or fragment, one line for each block element.

    Leaves out what no browser shows: scripts, templates, embedded objects, the head, hidden elements,
    ``noscript``. The last two count where they are most of a page: scripts show it then. Accepts any input:
    broken markup is read as browsers read it, NUL and lone surrogates are dropped. Style sheets are not read.

    Args:
        keep_hidden: keep elements with the attribute ``hidden``, each on lines of its own. Scripts show them.
            Dialogs, menus, and elements hidden by styles are left out all the same.

    Cost: about 20 µs a kilobyte of markup, half of it in the parser; 4 µs without markup.
    """
    check_str("html", html, empty=True)
    if _is_plain(html):
        return _lines(_plain(html))
    page = parse_html(html)
    _remove_hidden(page, keep_hidden)
    return _lines(_text(page))


def main_markup(html: str) -> str:
    """Return the markup in which to look for a page's article, as UTF-8 can encode it.

    That is its ``main``, or its only ``article``, or what a script makes visible if it has most of the text,
    or all of the page. Lists are ``ol`` there, as
    resiliparse takes each ``ul`` for a menu; those that are mostly links are gone. Figures, which may be
    tables or code, are ``div``, and dates within sentences have no element, as it drops them, too.
    """
    page = parse_html(html)
    _remove_hidden(page, keep_hidden=True)
    # resiliparse leaves out the words of these.
    page.unwrap_tags(["ruby", "rb", _NO_SCRIPT])
    for node in page.css(_DATE_IN_TEXT):
        node.unwrap()
    for node in page.css(_FOLDED_HEADING):
        if node.parent is not None and 2 * _characters(node) > _characters(node.parent):
            node.unwrap()
    for node in page.css("ul"):
        if node.css_first("a[href], span[href]") is not None and 2 * _length(node) < _characters(node):
            node.decompose()
    mains = [(node, length) for node, length in _lengths(page.css("main, [role=main]")) if length]
    # A short one may be a placeholder until a script has loaded the text.
    own = [node for node, length in mains if length >= _LEAST]
    if not own:
        articles = (node for node in page.css("article") if not mains or _is_article(node))
        # One counts, if it is the only one.
        own = list(islice(articles, 2))
        own = own if len(own) == 1 or not mains else [node for node, _ in mains]
    if not own and page.body is not None:
        most = _length(page.body) / 2
        own = [node for node, length in _lengths(page.css(_INVISIBLE)) if length > max(most, _LEAST)]
    root = own[0] if len(own) == 1 else page.root
    if root is None:
        return ""
    _show_own_text(root)
    return _FIGURE.sub(r"<\1div", _LIST.sub(r"<\1ol", root.html or ""))


def _lengths(nodes: "list[LexborNode]") -> "Iterator[tuple[LexborNode, int]]":
    """Yield the outermost of elements in document order, with their lengths: hundreds may be nested."""
    seen, inside = set[int](), dict[int, bool]()
    for node in nodes:
        if not _is_inside(node, seen, inside):
            seen.add(node.mem_id)
            yield node, _length(node)


def _is_article(node: "LexborNode") -> bool:
    """Return whether an element has the text of a page, and is no teaser."""
    above = node.parent
    while above is not None and above.tag not in ("aside", "nav", "footer"):
        above = above.parent
    return above is None and _length(node) >= _LEAST


def _show_own_text(root: "LexborNode") -> None:
    """Remove attributes that would make resiliparse drop a page's own text as hidden or as a menu.

    An element that has most of the text is neither a dialog nor a menu, whatever its class says.
    """
    for node in root.css(_UNSEEN):
        _remove_attributes(node, ("hidden", "aria-hidden", "style"))
    whole, node = _length(root), root
    for _ in range(_LEVELS):
        _remove_attributes(node, _SAID_OF_FRAMES)
        large = (child for child in node.iter() if 2 * len(child.text_lexbor()) > whole)
        inner = next((child for child in large if 2 * _length(child) > whole), None)
        if inner is None:
            return
        node = inner


def _remove_attributes(node: "LexborNode", names: tuple[str, ...]) -> None:
    for name in names:
        if name in node.attributes:
            del node.attrs[name]


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
    if b"shadowrootmode" in markup:
        markup = _SHADOW.sub(b"<div", markup)
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


def _is_plain(html: str) -> bool:
    """Return whether a text has no markup: no tag, no entity, nothing the parser would drop."""
    return not _MARKED.search(html)


def _plain(text: str) -> str:
    """Return a text with line ends as the parser normalizes them."""
    return text.replace("\r", "\n") if "\r" in text else text


def _text(page: "LexborHTMLParser") -> str:
    root = page.root
    return root.text_lexbor() if root is not None else ""


def _remove_hidden(page: "LexborHTMLParser", keep_hidden: bool) -> None:
    """Remove hidden elements and ``noscript``, unless they are most of the page."""
    hidden = _without_scripts(page)
    for node in page.css(_STYLED):
        display = _display(node.attributes.get("style") or "")
        if display == "none":
            hidden.append(node)
        elif _LINES.match(display):
            node.insert_before("\n")
            node.insert_after("\n")
    hidden += page.css(_CLOSED)
    shown_later = page.css(_HIDDEN_ATTRIBUTE)
    if not keep_hidden:
        hidden += shown_later
    named = {node.mem_id for node in page.css(_FRAME)} if hidden or shown_later else set()
    if keep_hidden:
        hidden += [node for node in shown_later if node.mem_id in named]
    # Dialogs and menus first, so that their text does not count as the page's.
    frame = {node.mem_id: node for node in hidden if node.mem_id in named}
    marks, in_frame = set(frame), dict[int, bool]()
    # An element hidden in two ways counts once.
    once = {node.mem_id: node for node in hidden if node.mem_id not in frame}
    rest = [node for node in once.values() if not _is_inside(node, marks, in_frame)]
    for node in frame.values():
        node.decompose()
    for node in _to_remove(page, rest) if rest else rest:
        node.decompose()
    if keep_hidden:
        for node in page.css(_HIDDEN_ATTRIBUTE):
            node.insert_before("\n")
            node.insert_after("\n")


def _without_scripts(page: "LexborHTMLParser") -> "list[LexborNode]":
    """Return the elements that browsers without scripts show, and remove those that are no text of the page.

    These are requests and remarks, and whatever the rest of the page outweighs, which may say the same.
    """
    found = list(_lengths(page.css(_NO_SCRIPT)))
    texts = sum(length for _, length in found if length >= _LEAST)
    rest = _length(page.body) - sum(length for _, length in found) if texts and page.body else 0
    for node, length in found:
        is_request = length < _LONGEST_REQUEST and _REQUEST.search(node.text_lexbor())
        if length < _LEAST or texts <= rest or is_request:
            node.decompose()
        else:
            node.insert_before("\n")
            node.insert_after("\n")
    return page.css(_NO_SCRIPT) if texts else []


def _display(style: str) -> str:
    """Return how an element is displayed: its last declaration decides, or the last important one."""
    declared = [(bool(important), value.lower()) for value, important in _DISPLAY.findall(style)]
    important = [one for one in declared if one[0]]
    return (important or declared)[-1][1] if declared else ""


def _to_remove(page: "LexborHTMLParser", hidden: "list[LexborNode]") -> "list[LexborNode]":
    """Return the hidden elements to remove; those with most of the page's own text stay."""
    if not _may_be_most(hidden, len("".join(_text(page).split()))):
        return hidden
    scope = _said_place(page)
    if scope is None:
        return hidden
    marks, in_hidden = {node.mem_id for node in hidden}, dict[int, bool]()
    outermost = [node for node in hidden if not _is_inside(node, marks, in_hidden)]
    around, in_scope = set(_ancestors(scope)) | {scope.mem_id}, dict[int, bool]()
    own = [node for node in outermost if node.mem_id in around or _is_inside(node, {scope.mem_id}, in_scope)]
    whole = _length(scope)
    inside = sum(whole if node.mem_id in around else _length(node) for node in own)
    if inside < max(_LEAST, whole - inside):
        return hidden
    kept, in_kept = {node.mem_id for node in own}, dict[int, bool]()
    return [node for node in hidden if node.mem_id not in kept and not _is_inside(node, kept, in_kept)]


def _said_place(page: "LexborHTMLParser") -> "LexborNode | None":
    """Return the element in which a page says that its text is, else all of the page."""
    first = page.body or page.root
    found = False
    for node, length in _lengths(page.css(_OWN_TEXT)):
        # A placeholder, shown until a script has loaded the text, does not say where the text is.
        if length >= _LEAST:
            return node
        if length and not found:
            first, found = node, True
    return first


def _may_be_most(hidden: "list[LexborNode]", whole: int) -> bool:
    """Return whether hidden elements may have half of the text; their spaces and nested ones count, too.

    Args:
        whole: the characters of the page that are not white space.
    """
    length = 0
    for node in hidden:
        length += len(node.text_lexbor())
        if 2 * length > whole:
            return True
    return False


def _is_inside(node: "LexborNode", of: set[int], known: dict[int, bool]) -> bool:
    """Return whether a node has one of these elements above it; ``known`` keeps the answers."""
    way = list[int]()
    found = False
    for above in _ancestors(node):
        if above in known:
            found = known[above]
            break
        way.append(above)
        if above in of:
            found = True
            break
    known |= dict.fromkeys(way, found)
    return found


def _ancestors(node: "LexborNode") -> "Iterator[int]":
    above = node.parent
    while above is not None:
        yield above.mem_id
        above = above.parent


def _length(node: "LexborNode") -> int:
    """Return the number of characters outside of links."""
    links = sum(map(_characters, node.css("a[href], span[href]")))
    return max(_characters(node) - links, 0)


def _characters(node: "LexborNode") -> int:
    return len("".join(node.text_lexbor().split()))


def _lines(text: str) -> str:
    """Return the lines that are not blank, with single spaces."""
    if len(text) <= 2 * _AT_ONCE:
        return "\n".join(_without_blanks(text.split("\n")))
    made: list[str] = []
    # Whether the next stretch continues the last line.
    runs_on = False
    for stretch in _stretches(text):
        lines = stretch.split("\n")
        if text_of_lines := "\n".join(_without_blanks(lines)):
            between = " " if runs_on and lines[0].strip() else "\n"
            made += [between, text_of_lines] if made else [text_of_lines]
        runs_on = bool(lines[-1].strip()) or (runs_on and len(lines) == 1)
    return "".join(made)


def _without_blanks(lines: list[str]) -> list[str]:
    # Most lines are empty, because each block tag begins one.
    return list(map(" ".join, filter(None, map(str.split, filter(None, lines)))))


def _stretches(text: str) -> Iterator[str]:
    """Yield stretches of a text, cut at spaces: the words of all at once would take too much memory."""
    begin = 0
    while begin < len(text):
        found = _SPACE.search(text, begin + _AT_ONCE)
        end = found.start() if found else len(text)
        yield text[begin:end]
        begin = end
