"""Bytes to text: nothing undecodable stops a run, all of it is counted."""

import codecs
import re
from typing import Any

#: The mark of UTF-32 begins with that of UTF-16.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Where the zero bytes are when a text begins with two ASCII letters.
_ZEROS = {
    b"a\0a\0": "utf-16-le",
    b"\0a\0a": "utf-16-be",
    b"a\0\0\0": "utf-32-le",
    b"\0\0\0a": "utf-32-be",
}
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
SURROGATE = re.compile("[\ud800-\udfff]")
#: An HTML page must declare its encoding within its first 1,024 bytes.
_DECLARED_WITHIN = 1024
REPLACEMENT = "\ufffd"
BEYOND_ASCII = re.compile("[^\x00-\x7f]")
#: Letters beyond ASCII by which UTF-8 is told. A word of Cyrillic or two characters of Chinese in an older
#: encoding may be sound UTF-8 by chance.
_SEVERAL = 6


def decode(raw: bytes, encoding: str = "", html: bool = False) -> tuple[str, int]:
    """Return the text and how many undecodable places became U+FFFD.

    Args:
        encoding: empty means by BOM, by what an HTML page declares unless it is UTF-8 all the same, else
            UTF-8.
    """
    return decoded(*without_mark(raw, encoding, html))


def without_mark(raw: bytes, encoding: str = "", html: bool = False) -> tuple[bytes, str]:
    """Return a text's bytes without byte order mark, and its encoding; see ``decode``."""
    given = codecs.lookup(encoding).name if encoding else ""
    for bom, name in _BOMS:
        if raw.startswith(bom) and given in ("", name):
            return raw[len(bom) :], name
    return raw, given or (_declared(raw) if html else "utf-8")


def announced(head: bytes) -> str:
    """Return the encoding of JSON lines or CSV by their first four bytes."""
    for bom, name in _BOMS:
        if head.startswith(bom):
            return name
    return _ZEROS.get(bytes(byte and ord("a") for byte in head[:4]), "utf-8")


def is_utf8(raw: bytes) -> bool:
    """Tell whether a text is surely UTF-8: several letters beyond ASCII are, and nothing else."""
    try:
        text = "" if raw.isascii() else raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return len(BEYOND_ASCII.findall(text)) >= _SEVERAL


def _declared(raw: bytes) -> str:
    match = _CHARSET.search(raw[:_DECLARED_WITHIN])
    name = match[1].decode("ascii", "replace") if match else "utf-8"
    try:
        "".encode(name)
    except (LookupError, ValueError):
        return "utf-8"
    # A page that can be searched for an ASCII declaration is not in UTF-16, whatever it says. Servers often
    # say in their headers that a page is UTF-8 which was once written in something else, and says so.
    return "utf-8" if name.lower().startswith("utf-16") or is_utf8(raw) else name


def decoded(raw: bytes, encoding: str) -> tuple[str, int]:
    """Return the text and how many undecodable places became U+FFFD; a byte order mark is text."""
    try:
        return raw.decode(encoding), 0
    except UnicodeError:
        text = raw.decode(encoding, "replace")
        # Not those that stood there before.
        return text, text.count(REPLACEMENT) - raw.decode(encoding, "ignore").count(REPLACEMENT)


def without_surrogates(value: Any) -> tuple[Any, int]:  # noqa: ANN401 - JSON
    """Return a JSON value with lone surrogates, which no engine can store, replaced; and how many."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return SURROGATE.subn(REPLACEMENT, value)
        return value, 0
    if isinstance(value, dict):
        if _encodable(value):
            return value, 0
        pairs = [(without_surrogates(key), without_surrogates(item)) for key, item in value.items()]
        count = sum(key[1] + item[1] for key, item in pairs)
        return ({key[0]: item[0] for key, item in pairs} if count else value), count
    if isinstance(value, list):
        items = [without_surrogates(item) for item in value]
        count = sum(item[1] for item in items)
        return ([item[0] for item in items] if count else value), count
    return value, 0


def _encodable(fields: dict[Any, Any]) -> bool:
    """Tell whether nothing in an object needs a closer look, as is so with nearly all documents."""
    try:
        "".join(fields).encode()
        for value in fields.values():
            if isinstance(value, str):
                if not value.isascii():
                    value.encode()
            elif isinstance(value, dict | list):
                return False
    except (UnicodeEncodeError, TypeError):
        return False
    return True
