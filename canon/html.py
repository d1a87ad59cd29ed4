"""HTML to the plain text that a reader sees: without hidden parts, one line for each block element."""

import re
from collections.abc import Iterator

from shinglefold.options.validation import check_str


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
    "li|listing|main|menu|nav|ol|optgroup|option|p|pre|section|select|summary|table|tbody|td|textarea|tfoot|th|thead|title|tr|ul"
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
_UNREAD = ["script", "style", "template", "noscript", "iframe", "object", "svg", "math", "head"]
#: Content that scripts show later: tabs, folded sections, variants of a passage.
_HIDDEN_ATTRIBUTE = "[hidden]"
_HIDDEN = (
    "[aria-hidden=true], [style*='display:none' i], [style*='display: none' i], "
    "[style*='visibility:hidden' i], [style*='visibility: hidden' i]"
)


def strip_html(html: str, keep_hidden: bool = False) -> str:
    """Return the text of an HTML page or fragment, one line for each block element.

    Leaves out scripts, styles, templates, embedded objects, the head and hidden elements. Accepts any input:
    broken markup is read as browsers read it, NUL and lone surrogates are dropped.

    Args:
        keep_hidden: keep elements with the attribute ``hidden``, each on lines of its own. Scripts show them,
            and some pages contain little else. Elements hidden by styles are left out all the same.

    Cost: about 20 µs a kilobyte of markup, half of it in the parser; 4 µs without markup.
    """
    check_str("html", html, empty=True)
    return _lines(_plain(html) if _is_plain(html) else _parse(html, keep_hidden))


def _is_plain(html: str) -> bool:
    """Return whether a text has no markup: no tag, no entity, nothing the parser would drop."""
    return not _MARKED.search(html)


def _plain(text: str) -> str:
    """Return a text with line ends as the parser normalizes them."""
    return text.replace("\r", "\n") if "\r" in text else text


def _parse(html: str, keep_hidden: bool) -> str:
    """Return the text of markup."""
    from selectolax.lexbor import LexborHTMLParser

    # A line end before the tag, which the parser keeps as text; doubled ones are removed later.
    parser = LexborHTMLParser(_BLOCK_TAG.sub(b"\n<", html.encode("utf-8", "ignore").replace(b"\0", b"")))
    parser.strip_tags(_UNREAD, recursive=True)
    for node in parser.css(_HIDDEN if keep_hidden else f"{_HIDDEN_ATTRIBUTE}, {_HIDDEN}"):
        node.decompose()
    if keep_hidden:
        for node in parser.css(_HIDDEN_ATTRIBUTE):
            node.insert_before("\n")
            node.insert_after("\n")
    root = parser.root
    return root.text_lexbor() if root is not None else ""


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
