"""HTML to the plain text that a reader sees: without hidden parts, one line for each block element."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from shinglefold.canon.html_parser import INSTEAD, parse_html
from shinglefold.options.validation import check_str

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode


_MARKED = re.compile("[<&\0\ud800-\udfff]")
_SPACE = re.compile(r"\s")
#: The number of characters whose words are joined at a time.
_AT_ONCE = 1 << 20
#: Elements with this attribute are shown later by scripts: tabs, folded sections, variants of a passage.
_HIDDEN_ATTRIBUTE = "[hidden]:not(html, body)"
_STYLED = "[style*='display' i]:not(html, body)"
_LINES = re.compile("block|flex|grid|table|list-item|flow-root")
_DISPLAY = re.compile(r"(?:^|;)\s*display\s*:\s*([\w-]+)\s*(!?)", re.IGNORECASE)
#: Dialogs that are not open, such as requests for consent.
_CLOSED = "dialog:not([open]), [popover]"
#: Hidden parts that are never the page's own text.
_FRAME = "dialog, nav, svg, [role=dialog], [role=alertdialog], [role=navigation], [aria-modal=true]"
#: Attributes that hide text from sight, not from its readers; and headings with buttons that fold a section.
_UNSEEN = "[hidden], [aria-hidden], [style*='visibility' i]"
_HEADINGS = "h1, h2, h3, h4, h5, h6"
_FOLDED_HEADING = ", ".join(f"{each} button" for each in (*_HEADINGS.split(", "), "dt", "summary"))
_DATE_IN_TEXT = "p time, li time, dd time, td time, blockquote time"
#: Requests to enable scripts, plugins or frames, which are not the text of a page.
_REQUEST = re.compile(r"java ?script|скрипт|脚本|腳本|flash player|\bframes\b|фрейм|框架", re.IGNORECASE)
#: Attributes that mark an element as hidden, a dialog or a menu, and how deeply a page's text is nested.
_SAID_OF_FRAMES, _LEVELS = ("hidden", "style", "class", "id", "role"), 32
#: What a script makes visible after it has loaded the page.
_MAYBE_INVISIBLE = "[style*='visibility' i], [style*='opacity' i]"
_INVISIBLE = re.compile(
    r"(?:^|;)\s*(?:visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0*\.?0+)\s*(?:[;!]|$)", re.IGNORECASE
)
#: A line of fewer bytes (27 Chinese characters, 40 Cyrillic ones) is a label, if it stands after the text.
_SENTENCE = 80
#: Elements that mark the text of a page.
_OWN_TEXT = "main, article, [role=main], [itemprop=articleBody]"
#: Fewer characters are a remark or a variant, not the text of a page.
_LEAST = 100
#: A shorter text that names scripts, plugins or frames requests them.
_LONGEST_REQUEST = 600
_LIST = re.compile(r"<(/?)ul(?=[\s/>])")
_AS_DIV = re.compile(r"<(/?)(?:fig(?:ure|caption)|noscript|object|svg|text|foreignObject)(?=[\s/>])")


def strip_html(html: str, keep_hidden: bool = False) -> str:
    """Return the text of an HTML page or fragment, one line for each block element.

    Leaves out what no browser shows: scripts, templates, the head, hidden elements, ``noscript``, ``object``,
    pictures. The last four stay where they are most of a page: then scripts show them. What scripts make
    visible counts, and if it is most of a page, buttons and hints after it don't. Accepts any input:
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
    for box in _shown_by_script(page):
        for node in _labels_after(box):
            node.decompose()
    return _lines(_text(page))


def main_markup(html: str) -> str:
    """Return the markup in which to look for a page's article, as UTF-8 can encode it.

    That is its ``main``, or its only ``article``, or what a script makes visible if it has most of the text,
    or all of the page. Lists are ``ol`` there, as resiliparse takes each ``ul`` for a menu; those that are
    mostly links are gone. Figures and the like, which may be tables or code, become ``div``; dates within
    sentences lose their element, because it drops both, too.
    """
    page = parse_html(html)
    _remove_hidden(page, keep_hidden=True)
    # resiliparse leaves out the words of these.
    page.unwrap_tags(["ruby", "rb"])
    for node in page.css(_DATE_IN_TEXT):
        node.unwrap()
    _unfold_headings(page)
    for node in page.css("ul"):
        if node.css_first("a[href], span[href]") is not None and 2 * _length(node) < _characters(node):
            node.decompose()
    mains = [(node, length) for node, length in _lengths(page.css("main, [role=main]")) if length]
    # A short one may be a placeholder until a script has loaded the text.
    own = [node for node, length in mains if length >= _LEAST]
    if not own:
        articles = (node for node in page.css("article") if _is_article(node, _LEAST if mains else 0))
        # An only article is the text of the page.
        own = list(islice(articles, 2))
        own = own if len(own) == 1 or not mains else [node for node, _ in mains]
    own = own or _shown_by_script(page)
    root = own[0] if len(own) == 1 else page.root
    if root is None:
        return ""
    _show_own_text(root)
    return _AS_DIV.sub(r"<\1div", _LIST.sub(r"<\1ol", root.html or ""))


def _unfold_headings(page: "LexborHTMLParser") -> None:
    """Unwrap buttons that have most of the text of a heading, because resiliparse drops buttons."""
    lengths = dict[int, int]()
    for node in list(_outermost(page.css(_FOLDED_HEADING))):
        if (heading := node.parent) is not None:
            # Measured once, because a heading may have thousands of buttons.
            if heading.mem_id not in lengths:
                lengths[heading.mem_id] = _characters(heading)
            if 2 * _characters(node) > lengths[heading.mem_id]:
                node.unwrap()


def _lengths(nodes: "list[LexborNode]") -> "Iterator[tuple[LexborNode, int]]":
    """Yield the outermost of elements in document order, with their lengths."""
    return ((node, _length(node)) for node in _outermost(nodes))


def _outermost(nodes: "list[LexborNode]") -> "Iterator[LexborNode]":
    """Yield the elements in document order that are in none of the others: thousands may be nested."""
    seen, inside = set[int](), dict[int, bool]()
    for node in nodes:
        # An element that two selectors match comes twice.
        if node.mem_id not in seen and not _is_inside(node, seen, inside):
            seen.add(node.mem_id)
            yield node


def _is_article(node: "LexborNode", least: int) -> bool:
    """Return whether an element has the text of a page of this many characters, and is not a teaser."""
    above = node.parent
    while above is not None and above.tag not in ("aside", "nav", "footer"):
        above = above.parent
    return above is None and _length(node) >= least


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
    """Remove hidden elements and fallback content, unless they are most of the page."""
    hidden = _shown_instead(page)
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


def _shown_by_script(page: "LexborHTMLParser") -> "list[LexborNode]":
    """Return the invisible elements that have most of a page's text: a script shows them."""
    styled = page.css(_MAYBE_INVISIBLE)
    found = [node for node in styled if _INVISIBLE.search(node.attributes.get("style") or "")]
    if not found or page.body is None:
        return []
    least = max(_length(page.body) / 2, _LEAST)
    return [node for node, length in _lengths(found) if length > least]


def _labels_after(box: "LexborNode") -> "list[LexborNode]":
    """Return the elements after a page's text that have neither headings nor sentences: buttons and hints."""
    found = list["LexborNode"]()
    above: LexborNode | None = box if _has_sentences(box) else None
    while above is not None and above.tag != "body":
        after = above.next
        while after is not None:
            if after.is_element_node and not _has_sentences(after) and not after.css_first(_HEADINGS):
                found.append(after)
            after = after.next
        above = above.parent
    return found


def _has_sentences(node: "LexborNode") -> bool:
    lines = _without_blanks(node.text_lexbor().split("\n"))
    return any(len(line.encode()) >= _SENTENCE for line in lines)


def _shown_instead(page: "LexborHTMLParser") -> "list[LexborNode]":
    """Return the elements that browsers without scripts show; remove those that are not text of the page.

    Plugins and pictures (``svg``) are treated alike. It removes requests, remarks, and elements shorter than
    the rest of the page, which may have the same text.
    """
    # Most are icons with little text, which is not measured.
    found = [
        (node, _length(node) if len(node.text_lexbor()) >= _LEAST else 0)
        for node in _outermost(page.css(", ".join(INSTEAD)))
    ]
    texts = sum(length for _, length in found if length >= _LEAST)
    rest = _length(page.body) - sum(length for _, length in found) if texts and page.body else 0
    for node, length in found:
        is_request = length < _LONGEST_REQUEST and _REQUEST.search(node.text_lexbor())
        if length < _LEAST or texts <= rest or is_request:
            node.decompose()
        else:
            node.insert_before("\n")
            node.insert_after("\n")
    return page.css(INSTEAD[0]) if texts else []


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
    """Return the element that a page marks as its text, else the whole page."""
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
    """Return whether a node is inside one of these elements; ``known`` caches the answers."""
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
    # The parser nests no ``a``, but nests the ``span`` that replaces an unclosed one.
    links = [*node.css("a[href]"), *_outermost(node.css("span[href]"))]
    return max(_characters(node) - sum(map(_characters, links)), 0)


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
