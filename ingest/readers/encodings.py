"""Find the encoding of a text: by its label, by what a page declares, by its bytes."""

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

import webencodings

#: Encodings that are detected, by Python's name, with their usual name for messages.
_CANDIDATES = {
    "cp1251": "windows-1251",
    "koi8_r": "koi8-r",
    "cp866": "cp866",
    "mac_cyrillic": "mac-cyrillic",
    "koi8_u": "koi8-u",
    "iso8859_5": "iso-8859-5",
    "cp1252": "windows-1252",
    "cp1250": "windows-1250",
    "iso8859_2": "iso-8859-2",
    "cp1254": "windows-1254",
    "cp1253": "windows-1253",
    "cp1255": "windows-1255",
    "cp1256": "windows-1256",
    "gb18030": "gb18030",
    "big5": "big5",
    "shift_jis": "shift_jis",
    "euc_jp": "euc-jp",
    "euc_kr": "euc-kr",
}
#: Encodings of one language that are declared for each other, by Python's names.
_RIVALS = {"gb18030": "big5", "big5hkscs": "gb18030", "cp932": "euc_jp", "euc_jp": "shift_jis"}
#: The first bytes of common characters: Chinese ones in two encodings, kana and Japanese ones in one.
_CHINESE = (("gb2312", 0xB0, 0xD7), ("big5", 0xA4, 0xC6))
_JAPANESE = (("shift_jis", 0x82, 0x83), ("shift_jis", 0x88, 0x98))
#: The least share of rare characters as declared, the most in the rival encoding, and the least ratio of
#: both. In correctly declared texts of 10 characters and more, no rival had so few.
_RARE_AS_DECLARED, _RARE, _TIMES = 0.2, 0.1, 4
#: Cyrillic encodings in the order to try them: if two read a text alike, the first wins.
_CYRILLIC = tuple(_CANDIDATES)[:6]
#: Latin encodings; and signs or capitals inside a word, which no word has in its own encoding.
_LATIN = ("cp1252", "cp1250", "iso8859_2", "cp1254")
_SIGN_IN_WORD = re.compile(
    r"[^\W\d_][\x80-\xb4\xb6\xb8\xb9\xbb-\xbf\xd7\xf7](?=[^\W\d_])|[a-z][\xc0-\xde\u0152\u0160\u017d]|[\x80-\x9f\ufffd]"
)
#: One of these is in nearly every Russian or Ukrainian text of 40 letters; Hebrew read as Cyrillic has none.
_LATE_LETTERS = re.compile("[ыьэюяёіїєґА-Я]")
_LETTERS = re.compile("[А-яЁёІіЇїЄєҐґЎў]")
#: Letters that are half of a Russian or Ukrainian text, and the share below which a text reads oddly.
_FREQUENT, _SELDOM = re.compile("[оеаинтОЕАИНТ]"), 0.25
_ODD_CAPITAL = re.compile("[а-яёіїєґў][А-ЯЁІЇЄҐЎ]")
_MIXED = re.compile("[A-Za-z][А-яЁё]|[А-яЁё][A-Za-z]")
_TYPOGRAPHIC = re.compile("[«»“”„’–—…№§©°\u00a0]")
#: The mark of undecodable bytes; and half-width katakana: accented letters read as Shift_JIS.
_UNLIKELY, _KATAKANA = re.compile("\ufffd"), re.compile("[\uff61-\uff9f]")
#: Chinese, private-use and undecodable characters; Cyrillic in GB 2312 looks Chinese in Big5.
_HIRAGANA, _HAN = re.compile("[\u3041-\u3096]"), "\u3400-\u9fff\ue000-\uf8ff\ufffd\U00020000-\U0003ffff"
_CHINESE_ONLY, _JAPANESE_ONLY = re.compile(f"[{_HAN}]"), re.compile(f"[\u3041-\u30ff\uff61-\uff9f{_HAN}]")
_BAD = re.compile("[\udc80-\udcff]")
#: The character that marks, in UTF-8, what could not be decoded from UTF-16.
_FROM_OTHERS = {"\udcff"}
#: The fewest characters beyond ASCII for a guess: fewer read well in several encodings.
_TELLING = 10
#: The fewest Cyrillic letters for certainty: this many read well in one encoding only.
_CERTAIN = 40
#: The bytes for a guess, and the number of guesses after which the most frequent one is final.
_ENOUGH, _GUESSES = 16_384, 50
#: UTF-32 before UTF-16, whose byte order mark is a prefix.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Patterns of zero bytes at the beginning of a text that begins with two ASCII letters.
_ZEROS = {
    b"a\0a\0": "utf-16-le",
    b"\0a\0a": "utf-16-be",
    b"a\0\0\0": "utf-32-le",
    b"\0\0\0a": "utf-32-be",
}
#: A sample that all encodings that a page may declare read alike; UTF-7, EBCDIC and UTF-16 do not.
_ASCII = b"<p>1+2 +AGE- \\x41 \\u0041"
_MARKUP = re.compile(r"<(script|style)\b.*?(?:</\1|\Z)|<[^>]*>", re.DOTALL | re.IGNORECASE)
#: Bytes that pictures and archives have, but no text in an encoding of one byte or several.
_CONTROL = re.compile(rb"[\1-\b\x0e-\x1a\x1c-\x1f]")
_ESCAPES = {b"\x1b$B": "iso2022_jp", b"\x1b$@": "iso2022_jp", b"\x1b$)C": "iso2022_kr"}
#: Comments, and the tags that declare an encoding.
_COMMENT = re.compile(rb"<!--(?:-?>|.*?(?:--!?>|\Z))", re.DOTALL)
_META = re.compile(rb"""<meta[\s/]((?:[^>"']|"[^"]*"|'[^']*')*)""", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"""([^\s"'<>/=]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""")
_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_XML = re.compile(rb"""\s*<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)""", re.IGNORECASE)
#: Browsers look for a declaration in the first 1,024 bytes, and read on to the end of the head.
_DECLARED_WITHIN = 65_536
_NON_ASCII = re.compile(rb"[\x80-\xff]")
BEYOND_ASCII = re.compile("[^\x00-\x7f]")
#: Letters beyond ASCII that prove UTF-8. A Cyrillic word or two Chinese characters in another encoding may be
#: valid UTF-8 by chance.
_SEVERAL = 6
#: This many for each damaged byte prove it, too; texts in other encodings have about one by chance.
_LETTERS_A_DAMAGE = 10
#: The bytes, and the share of zeros among them, by which UTF-16 without a byte order mark is recognized.
_SAMPLE, _ZEROS_OF_LATIN = 4096, 0.05
#: Characters of Chinese, Japanese and Korean texts.
_EAST_ASIAN = re.compile("[\t\n\r -~\u2010-\u2026\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff65]")
#: Latin letters and signs beyond ASCII: other scripts look like these if they are read as Latin.
_ACCENTED = re.compile("[\x80-\u024f\u02c6-\u02dc\u2010-\u2122]")
#: More in a row than any word in a Latin script has.
_ACCENTED_RUN = re.compile("[\xc0-\u024f]{4,}")
#: The share of odd letters above which the encoding of a text is wrong.
_ODD = 0.1


@dataclass(slots=True)
class EncodingGuess:
    """Guesses the encoding of the texts of one source."""

    _votes: Counter[str] = field(default_factory=Counter)

    def mismatch(self, raw: bytes, encoding: str, *, whole: bool = False) -> str:
        """Return an error message if bytes seem to have another encoding than the given one, else "".

        UTF-8 with some damage still has more valid letters beyond ASCII than invalid bytes. Valid UTF-8 with
        several letters beyond ASCII is never another encoding.

        Args:
            whole: the bytes are a text of its own, not one of many lines with one encoding.
        """
        name = codec_of(encoding)
        usual = _CANDIDATES.get(name, name)
        if whole and (wide := _wide(raw)) and wide != name:
            return f"the text is {wide}, not {usual}: try --encoding {wide}"
        if name != "utf-8":
            # In UTF-16, UTF-32 and EBCDIC, a line end has other bytes.
            no_newline = b"\n".decode(name, "replace") != "\n"
            narrow = no_newline and raw != b"" and not _CONTROL.search(raw) and b"\0" not in raw
            if is_utf8(raw) or (narrow and _decodes(raw, "utf-8")):
                return f"the text is UTF-8, not {usual}: try --encoding utf-8"
            found = _other_encoding(raw, name) if whole else ""
            odd = narrow and name.startswith("utf-") and not _is_east_asian(raw.decode(name, "ignore"))
            return f"the text is no {usual}: {_remedy(found or _guess(raw))}" if found or odd else ""
        text = raw.decode("utf-8", "surrogateescape")
        bad = _BAD.findall(text)
        if 2 * len(bad) <= len(BEYOND_ASCII.findall(text)) or set(bad) == _FROM_OTHERS:
            return ""
        if whole and _CONTROL.search(raw[:_ENOUGH]):
            return "the file is not text: it has control characters"
        found = _guess(raw) if whole else self._best_guess(raw)
        return f"the text is not UTF-8 ({len(bad):,} undecodable bytes): {_remedy(found)}"

    def _best_guess(self, raw: bytes) -> str:
        if self._votes.total() < _GUESSES and (found := _guess(raw)):
            self._votes[found] += 1
        return self._votes.most_common(1)[0][0] if self._votes else ""


def _remedy(found: str) -> str:
    """Return the remedy for a text of another encoding, given Python's name of it, or ""."""
    name = _CANDIDATES.get(found, "")
    return f"it looks like {name}, try --encoding {name}" if name else "say its --encoding"


def _guess(raw: bytes) -> str:
    """Return Python's name of the encoding that a text looks like, "" if none fits."""
    sample = _from_first_non_ascii(raw)
    found = _cyrillic(sample)
    if found:
        return found
    # Imported here, because few inputs need it and the import is slow.
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=list(_CANDIDATES)).best()
    if best is None or len(BEYOND_ASCII.findall(str(best))) < _TELLING:
        return ""
    return _latin(sample) if best.encoding in _LATIN else best.encoding


def _latin(sample: bytes) -> str:
    """Return Python's name of a Latin text's encoding if the text reads the same in all that fit, else ""."""
    texts = {encoding: sample.decode(encoding, "replace") for encoding in _LATIN}
    read = {encoding: text for encoding, text in texts.items() if not _SIGN_IN_WORD.search(text)}
    return next(iter(read)) if len(set(read.values())) == 1 else ""


def _cyrillic(sample: bytes) -> str:
    """Return Python's name of the encoding in which a text reads as Russian or Ukrainian, else "".

    Nearly all its letters beyond ASCII are then Cyrillic, and frequent letters are as frequent as in Russian.
    """
    best, most = "", 0
    for encoding in _CYRILLIC:
        text = sample.decode(encoding, "replace")
        letters = len(_LETTERS.findall(text))
        others = len(BEYOND_ASCII.findall(text)) - letters - len(_TYPOGRAPHIC.findall(text))
        odd = max(others, len(_ODD_CAPITAL.findall(text)) + len(_MIXED.findall(text)))
        reads = odd <= _ODD * letters and len(_FREQUENT.findall(text)) >= 0.3 * letters
        upper = sum(map(str.isupper, _LETTERS.findall(text)))
        if letters >= _CERTAIN:
            reads = reads and not letters < 2 * upper < 1.9 * letters and bool(_LATE_LETTERS.search(text))
        if reads and (value := _plausibility(sample, encoding)) > most:
            best, most = encoding, value
    return best


def _reads_oddly(raw: bytes, encoding: str) -> bool:
    """Return whether a text may be of another encoding.

    It has capitals within words or undecodable bytes, or consists mostly of capitals, accented or rare
    letters. Markup does not count.
    """
    text = _MARKUP.sub(" ", raw.decode(encoding, "replace"))
    letters = _LETTERS.findall(text)
    odd = len(_ODD_CAPITAL.findall(text)) + len(_UNLIKELY.findall(text[:-2]))
    if codec_of(encoding) == "cp932":
        odd += len(_KATAKANA.findall(text))
    accented = len(_ACCENTED.findall(text))
    in_runs = sum(map(len, _ACCENTED_RUN.findall(text)))
    return (
        odd > _ODD * (len(letters) or len(BEYOND_ASCII.findall(text)))
        or 2 * sum(map(str.isupper, letters)) > len(letters) > _TELLING
        or len(_FREQUENT.findall(text)) < _SELDOM * len(letters) > _SELDOM * _TELLING
        or 2 * in_runs > accented > _TELLING
        or 2 * accented > len(text) - text.count(" ")
    )


def _other_encoding(raw: bytes, declared: str) -> str:
    """Return Python's name of another encoding in which a text reads better than as declared, or ""."""
    sample = _from_first_non_ascii(raw)
    if rival := _rival(sample, declared):
        return rival
    found = _guess(raw) if _reads_oddly(sample, declared) else ""
    if not found or codec_of(found) == declared or _reads_oddly(sample, found):
        return ""
    # Capitals of one encoding are small letters of another.
    best = _plausibility(sample, found)
    return found if best > _plausibility(sample, declared) or not best else ""


def _rival(sample: bytes, declared: str) -> str:
    """Return Python's name of the rival of an encoding if a text reads well in it, and not as declared."""
    rival = _RIVALS.get(declared, "")
    if not rival:
        return ""
    rare, count = _rare(sample, declared)
    if not count or rare < _RARE_AS_DECLARED * count:
        return ""
    if declared == "cp932" and not _HIRAGANA.search(sample.decode(rival, "replace")):
        return ""  # Half-width katakana read as Japanese characters.
    rare_there, there = _rare(sample, codec_of(rival))
    reads = there >= _TELLING and rare_there <= _RARE * there and rare * there >= _TIMES * rare_there * count
    return rival if reads else ""


def _rare(sample: bytes, encoding: str) -> tuple[int, int]:
    """Return how many characters of a text are rare or invalid, and how many there are."""
    japanese = codec_of(encoding) in ("cp932", "euc_jp")
    # The last character may be cut off.
    text = _MARKUP.sub(" ", sample.decode(encoding, "replace"))[:-2]
    found = (_JAPANESE_ONLY if japanese else _CHINESE_ONLY).findall(text)
    common = _common(japanese)
    return sum(one not in common for one in found), len(found)


@cache
def _common(japanese: bool) -> frozenset[str]:
    rows = _JAPANESE if japanese else _CHINESE
    return frozenset(
        "".join(
            bytes((lead, trail)).decode(encoding, "ignore")
            for encoding, first, last in rows
            for lead in range(first, last + 1)
            for trail in range(0x40, 0xFF)
        )
    )


def better_encoding(raw: bytes, declared: str) -> str:
    """Return the encoding in which a page certainly reads, if it declares another one; else ""."""
    if declared.startswith("utf"):
        return ""
    sample = _from_first_non_ascii(raw)
    found = _rival(sample, declared)
    if not found and _reads_oddly(sample, declared):
        found = _cyrillic(sample)
        certain = len(_LETTERS.findall(sample.decode(found, "replace"))) >= _CERTAIN if found else False
        if not certain or _plausibility(sample, found) <= _plausibility(sample, declared):
            return ""
    return codec_of(found) if found and codec_of(found) != declared else ""


def _from_first_non_ascii(raw: bytes) -> bytes:
    """Return a text from shortly before its first letter beyond ASCII on."""
    found = _NON_ASCII.search(raw)
    first = max(0, found.start() - 64) if found else 0
    return raw[first : first + _ENOUGH]


def _plausibility(raw: bytes, encoding: str) -> int:
    text = raw.decode(encoding, "replace")
    letters = len(_LETTERS.findall(text)) + len(_FREQUENT.findall(text))
    return letters - 2 * len(_ODD_CAPITAL.findall(text))


def codec_of(label: str) -> str:
    """Return Python's name of an encoding that browsers read for a label: mostly a superset.

    Source: the table of WHATWG's Encoding Standard.

    Raises:
        LookupError, UnicodeError: there is no such encoding, or it can't replace what is invalid.
    """
    # Python also reads labels with other punctuation, and browsers know its names for these.
    found = webencodings.lookup(label) or webencodings.lookup(codecs.lookup(label).name)
    # UTF-16 without a byte order in its label has the order of its byte order mark.
    if found is None or found.name.startswith(("utf-", "replacement", "x-user-defined")):
        # A byte order mark is dropped from UTF-8, whatever its label.
        name = codecs.lookup(label).name.removesuffix("-sig")
        # Else the run would end at the first invalid byte.
        b"\xff".decode(name, "replace")
        return name
    name = found.codec_info.name
    return "gb18030" if name == "gbk" else codecs.lookup(name).name


def strip_bom(raw: bytes, encoding: str = "", html: bool = False, label: str = "") -> tuple[bytes, str]:
    """Return a text's bytes without byte order mark, and its encoding.

    Args:
        encoding: if empty: that of the byte order mark, else the one that an HTML page declares (unless its
            text is UTF-8), else UTF-8. ``utf-16`` and ``utf-32`` have the byte order that is seen.
        label: the encoding that a server declares for a page, which overrides the page's own.
    """
    given = codec_of(encoding) if encoding else ""
    for bom, name in _BOMS:
        if raw.startswith(bom) and given in ("", name, name[:6]):
            return raw[len(bom) :], name
    wide = _wide(raw)
    if given:
        return raw, wide if wide.startswith(f"{given}-") else given
    return raw, wide or (_declared_encoding(raw, label) if html else _escape_encoding(raw))


def detect_encoding(head: bytes) -> str:
    """Return the encoding of JSON lines or CSV, given their first four bytes."""
    for bom, name in _BOMS:
        if head.startswith(bom):
            return name
    return _ZEROS.get(bytes(byte and ord("a") for byte in head[:4]), "utf-8")


def is_utf8(raw: bytes) -> bool:
    """Return whether a text is certainly UTF-8: it has its mark, or several valid letters beyond ASCII.

    Crawlers cut pages at any byte, and paste in some bytes of others: one in ten letters may be damaged.
    """
    if raw.startswith(codecs.BOM_UTF8):
        return True
    text = "" if raw.isascii() else raw.decode("utf-8", "surrogateescape")
    letters, bad = len(BEYOND_ASCII.findall(text)), len(_BAD.findall(text))
    return letters - bad >= max(_SEVERAL, _LETTERS_A_DAMAGE * bad)


def _declared_encoding(raw: bytes, of_server: str) -> str:
    """Return the encoding that a page or its server declares, unless it is UTF-8."""
    # Many pages declare the encoding in which they were once written, but are UTF-8, as the server's header
    # says. A page with a readable declaration is not UTF-16, whatever it declares, and none is UTF-7.
    for label in chain([of_server] if of_server else [], _labels(raw[:_DECLARED_WITHIN])):
        try:
            name = codec_of(label)
        except (LookupError, ValueError):
            continue
        return "utf-8" if _ASCII.decode(name, "replace") != _ASCII.decode() or is_utf8(raw) else name
    return _escape_encoding(raw)


def _labels(head: bytes) -> Iterator[str]:
    """Yield the encodings that a page declares, the first one first."""
    for meta in _META.finditer(_COMMENT.sub(b"", head)):
        found = {name.lower(): value.strip(b"\"' /") for name, value in _ATTRIBUTE.findall(meta[1])}
        if b"charset" in found:
            yield found[b"charset"].decode("ascii", "replace")
        elif found.get(b"http-equiv", b"").lower() == b"content-type" and (
            match := _CHARSET.search(found.get(b"content", b""))
        ):
            yield match[1].decode("ascii")
    if match := _XML.match(head):
        yield match[1].decode("ascii")


def _escape_encoding(raw: bytes) -> str:
    """Return the encoding of a text in ASCII whose escape sequences announce other letters, else UTF-8."""
    found = (name for sign, name in _ESCAPES.items() if sign in raw and raw.isascii())
    return next((name for name in found if _decodes(raw, name)), "utf-8")


def _wide(raw: bytes) -> str:
    """Return UTF-16 or UTF-32 with its byte order if a text has the zero bytes of one, else ""."""
    head = raw[:_SAMPLE]
    if b"\0" not in head:
        return ""
    zeros = [head[place::4].count(0) for place in range(4)]
    characters = len(head) / 4
    # The upper half of a character is zero in UTF-32, the upper byte of Latin letters and spaces in UTF-16.
    if min(zeros[:2]) > 0.9 * characters or min(zeros[2:]) > 0.9 * characters:
        name = "utf-32-be" if zeros[0] > zeros[3] else "utf-32-le"
        return name if _decodes(raw, name) else ""
    even, odd = zeros[0] + zeros[2], zeros[1] + zeros[3]
    name = "utf-16-le" if odd > even else "utf-16-be"
    is_utf8_text = _decodes(raw, "utf-8")
    # ASCII with some zero bytes; UTF-16 of other letters looks like control characters.
    is_ascii = is_utf8_text and max(even, odd) < 1.5 * characters and not _CONTROL.search(head)
    # Chinese has few zero bytes, and those of 一 (4E 00) are the lower ones.
    if max(even, odd) < characters and not is_utf8_text:
        for order in ("utf-16-le", "utf-16-be"):
            if _is_east_asian(head.decode(order, "ignore")) and _decodes(raw, order):
                return order
    if not is_ascii and max(even, odd) > 2 * characters * _ZEROS_OF_LATIN > min(even, odd):
        return name if _decodes(raw, name) else ""
    # A text without spaces has few zero bytes, all at one place.
    if bool(even) == bool(odd) or is_utf8_text:
        return ""
    return name if _decodes(raw, name) and _reads(head.decode(name, "ignore")) else ""


def _decodes(raw: bytes, encoding: str) -> bool:
    """Return whether a text is valid; its last character may be cut off."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(raw)
    except UnicodeDecodeError:
        return False
    return True


def _reads(text: str) -> bool:
    """Return whether nearly all characters are usual in texts."""
    good = sum(
        one.isalnum() or one.isspace() or one in "，。、；：？！（）「」《》“”—…,.;:!?()-" for one in text
    )
    return good >= 0.95 * len(text)


def _is_east_asian(text: str) -> bool:
    """Return whether nearly all characters are Chinese, Japanese, Korean, or ASCII among them."""
    return len(_EAST_ASIAN.findall(text)) >= 0.95 * len(text) > 2 * sum(map(str.isascii, text))
