"""Scans JSON lines for the code points of their texts, in one compiled pass.

It reads plain lines only: valid UTF-8, one JSON object of strings, numbers and literals. All other lines
are reported as odd, and read by the other readers.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Bytes, Int64s
from shinglefold.runtime.optional_imports import compile_function

#: Code points of a block; a line with more is odd.
CODES = 1 << 17
#: The number of code points, and of lines, after which a block is full.
_ENOUGH, _LINES = 1 << 16, 1024
_QUOTE, _BACKSLASH, _LINE_END, _COMMA, _COLON = (ord(one) for one in '"\\\n,:')
_OPEN, _CLOSE, _ZERO, _NINE, _MINUS, _DOT = (ord(one) for one in "{}09-.")
_HTML = np.frombuffer(b"html", np.uint8)
_LITERALS = np.frombuffer(b"true false null ", np.uint8)
#: The code points that one-letter escapes stand for, by the letter.
_NAMED = np.zeros(256, np.uint8)
_NAMED[list(b'bfnrt"\\/')] = list(b'\b\f\n\r\t"\\/')
_HEXADECIMAL = ord("u")
#: A number of at most this many digits is exact as a double.
_DIGITS = 15
_ONE, _TWO = np.uint64(1), np.uint64(2)
#: A line with more names is odd.
_MOST_NAMES = 64
#: The parameters of the hash FNV-1a.
_BASIS, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
#: The positions of the names that follow those of the text fields.
_LANGUAGE, _FORMAT, _ID, _GIVEN_ID, _SOURCE, _TARGET = range(6)


class FieldNames(NamedTuple):
    """Names of fields as bytes without separators, and the end of each.

    The first ``texts`` names are those of text fields.
    """

    joined: Bytes
    ends: Int64s
    texts: int

    @classmethod
    def of(cls, fields: Sequence[str], language: str, target: str) -> "FieldNames | None":
        """Return the names; None if they are ambiguous to the scanner."""
        names = [*fields, language, "format", "id", "_id", "_source", target]
        if len(set(names)) < len(names) or any("." in name for name in names):
            return None
        if any(name.startswith(target) for name in names[:-1]):
            return None
        encoded = [name.encode() for name in names]
        ends = np.cumsum([len(one) for one in encoded])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), ends, len(fields))


class Scanned(NamedTuple):
    """A block of L lines.

    ``starts``, ``ends``: int64 (L,), the begin of each line and its closing brace, or the end of an odd line.
    ``odd``: bool (L,). ``languages``: int64 (L, 2), begin and end of the declared language, −1 for none.
    ``codes``: the texts of the P plain lines, with a line end before, between and after them. ``origins``:
    int64 (P,), the begin of each text. ``present``: which fields any line has. ``next``: the begin of the
    next block.
    """

    starts: Int64s
    ends: Int64s
    odd: NDArray[np.bool_]
    languages: Int64s
    codes: NDArray[np.uint32]
    origins: Int64s
    present: NDArray[np.bool_]
    next: int


class Scanner:
    """Scans the lines of a range, block by block, into the same memory.

    Args:
        names: the fields to look for.
        longest: a line of more bytes is odd.
    """

    def __init__(self, names: FieldNames, longest: int) -> None:
        self._names = names
        self._longest = longest
        self._codes = np.empty(CODES, np.uint32)
        self._lines = np.empty((5, _LINES), np.int64)

    def scan(self, data: Bytes, begin: int) -> Scanned:
        """Return the next block.

        Args:
            data: uint8, whole lines, the last one with its line end.
            begin: the first byte of the block.
        """
        present = np.zeros(self._names.texts, np.bool_)
        lines = self._lines
        after, count, used = _scan(
            data, begin, tuple(self._names), self._longest, self._codes, lines, present
        )
        starts, ends, first, last, origins = lines[:, :count]
        languages = np.stack((first, last), axis=1)
        odd = origins < 0
        return Scanned(starts, ends, odd, languages, self._codes[:used], origins[~odd], present, after)


@compile_function
def _scan(data, at, names, longest, codes, lines, present):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, C901, PLR0912, PLR0915, PLR0917
    joined, name_ends, texts = names
    seen = np.zeros(len(name_ends), np.bool_)
    hashes = np.empty(_MOST_NAMES, np.uint64)
    codes[0] = _LINE_END
    used, count, plain = 1, 0, 0
    while at < len(data) and count < lines.shape[1] and used < _ENOUGH:
        origin, line, full = used, at, False
        first_language = last_language = np.int64(-1)
        names_before = 0
        seen[:] = False
        last_text = -1
        good = False
        start = at = brace = _past_blanks(data, at)
        if data[at] == _OPEN:
            at = _past_blanks(data, at + 1)
            while True:
                # A name.
                if data[at] != _QUOTE:
                    break
                name = at + 1
                at, escaped = _string_end(data, name)
                if at < 0 or escaped:
                    break
                if _is_repeated(data, name, at, hashes, names_before):
                    break
                names_before += 1
                which = _name_position(data, name, at, joined, name_ends)
                at = _past_blanks(data, at + 1)
                if data[at] != _COLON:
                    break
                at = _past_blanks(data, at + 1)
                if which >= 0:
                    if seen[which] or which - texts >= _SOURCE:
                        break
                    seen[which] = True
                # Its value.
                if data[at] == _QUOTE:
                    value = at + 1
                    if 0 <= which < texts:
                        if which < last_text:
                            break
                        if last_text >= 0:
                            codes[used] = _LINE_END
                            used += 1
                        last_text = which
                        at, used = _decode_string(data, value, codes, used)
                        if at < 0:
                            full = at == -2
                            break
                    else:
                        at, escaped = _string_end(data, value)
                        if at < 0:
                            break
                        if which >= texts:
                            kind = which - texts
                            if escaped or (kind in (_ID, _GIVEN_ID) and at == value):
                                break
                            if kind == _LANGUAGE:
                                first_language, last_language = value, at
                            elif kind == _FORMAT and _same(data, value, at, _HTML, 0, 4):
                                break
                    at += 1
                else:
                    if which >= 0 and which - texts not in (_ID, _GIVEN_ID):
                        break
                    at = _simple_end(data, at, which >= 0)
                    if at < 0:
                        break
                at = _past_blanks(data, at)
                if data[at] == _COMMA:
                    at = _past_blanks(data, at + 1)
                    continue
                if data[at] == _CLOSE:
                    brace = at
                    at = _past_blanks(data, at + 1)
                    good = data[at] == _LINE_END and at - line <= longest
                break
        if full and plain > 0:
            # The line may fit into the next block.
            at = line
            used = origin
            break
        if good:
            lines[0, count], lines[1, count], lines[4, count] = start, brace, origin
            lines[2, count], lines[3, count] = first_language, last_language
            for text in range(texts):
                present[text] |= seen[text]
            codes[used] = _LINE_END
            used += 1
            plain += 1
        else:
            at = start
            while data[at] != _LINE_END:
                at += 1
            lines[0, count], lines[1, count], lines[4, count] = line, at, -1
            used = origin
        at += 1
        count += 1
    return at, count, used


@compile_function
def _past_blanks(data, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    # A space, a tab, a carriage return.
    while data[at] == 32 or data[at] == 9 or data[at] == 13:
        at += 1
    return at


@compile_function
def _same(data, begin, end, other, first, last):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917
    if end - begin != last - first:
        return False
    for place in range(end - begin):  # noqa: SIM110
        if data[begin + place] != other[first + place]:
            return False
    return True


@compile_function
def _is_repeated(data, first, last, hashes, count):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return whether a name is one of the names before, or one too many; add its hash to theirs."""
    if count == len(hashes):
        return True
    own = _BASIS
    for at in range(first, last):
        own = (own ^ np.uint64(data[at])) * _PRIME
    hashes[count] = own
    return (hashes[:count] == own).any()


@compile_function
def _name_position(data, begin, end, joined, ends):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the position of a name, −1 if it is unknown. The last name also matches as a prefix."""
    first = 0
    for which in range(len(ends) - 1):
        if _same(data, begin, end, joined, first, ends[which]):
            return which
        first = ends[which]
    length = ends[-1] - first
    if end - begin >= length and _same(data, begin, begin + length, joined, first, ends[-1]):
        return len(ends) - 1
    return -1


@compile_function
def _string_end(data, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the end of a string, −1 if its line is odd, and whether the string has escapes."""
    escaped = False
    while True:
        byte = data[at]
        if byte == _QUOTE:
            return at, escaped
        if byte == _BACKSLASH:
            escaped = True
            _, width = _escape(data, at)
        else:
            _, width = _character(data, at)
        if width < 0:
            return -1, escaped
        at += width


@compile_function
def _decode_string(data, at, codes, used):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the end of a string (−1: odd, −2: the block is full) and the new number of code points."""
    most = len(codes) - 4
    spot, put = np.uint64(at), np.uint64(used)
    while put < most:
        byte = data[spot]
        if 0xC2 <= byte < 0xE0:
            second = data[spot + _ONE]
            if second & 0xC0 != 0x80:
                return -1, used
            codes[put] = ((np.uint32(byte) & np.uint32(0x1F)) << np.uint32(6)) | (
                np.uint32(second) & np.uint32(0x3F)
            )
            spot += _TWO
        elif byte == _QUOTE:
            return np.int64(spot), np.int64(put)
        elif 0x20 <= byte < 0x80 and byte != _BACKSLASH:
            codes[put] = byte
            spot += _ONE
        else:
            at = np.int64(spot)
            code, width = _escape(data, at) if byte == _BACKSLASH else _character(data, at)
            if width < 0:
                return -1, used
            codes[put] = code
            spot += np.uint64(width)
        put += _ONE
    return -2, used


@compile_function
def _character(data, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0911
    """Return the code point at a position and the number of its bytes, −1 for invalid UTF-8.

    Nothing is read beyond the first invalid byte, so the scan never leaves its line.
    """
    first = np.uint32(data[at])
    if first < 0x80:
        return first, (1 if first >= 0x20 else -1)
    if first < 0xC2:
        return first, -1
    second = np.uint32(data[at + 1])
    if second & 0xC0 != 0x80:
        return first, -1
    if first < 0xE0:
        return ((first & np.uint32(0x1F)) << np.uint32(6)) | (second & np.uint32(0x3F)), 2
    third = np.uint32(data[at + 2])
    if third & 0xC0 != 0x80:
        return first, -1
    code = ((second & np.uint32(0x3F)) << np.uint32(6)) | (third & np.uint32(0x3F))
    if first < 0xF0:
        code |= (first & np.uint32(0x0F)) << np.uint32(12)
        return code, (3 if code >= 0x800 and not 0xD800 <= code < 0xE000 else -1)
    fourth = np.uint32(data[at + 3])
    if fourth & 0xC0 != 0x80 or first > 0xF4:
        return first, -1
    code = ((first & np.uint32(0x07)) << np.uint32(18)) | (code << np.uint32(6)) | (fourth & np.uint32(0x3F))
    return code, (4 if 0x10000 <= code < 0x110000 else -1)


@compile_function
def _escape(data, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the code point of an escape and the number of its bytes, −1 if it is invalid or a surrogate."""
    kind = data[at + 1]
    if _NAMED[kind]:
        return np.uint32(_NAMED[kind]), 2
    if kind != _HEXADECIMAL:
        return np.uint32(0), -1
    code = np.uint32(0)
    for place in range(2, 6):
        digit = np.uint32(data[at + place])
        if 48 <= digit <= 57:
            digit -= np.uint32(48)
        elif 65 <= digit <= 70:
            digit -= np.uint32(55)
        elif 97 <= digit <= 102:
            digit -= np.uint32(87)
        else:
            return np.uint32(0), -1
        code = (code << np.uint32(4)) | digit
    return code, (6 if not 0xD800 <= code < 0xE000 else -1)


@compile_function
def _simple_end(data, at, whole):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, C901
    """Return the end of a number or literal, −1 if its line is odd.

    A line is odd if the number is long or has an exponent; with ``whole`` also if it is not an integer.
    """
    if not whole:
        first = 0
        for place in range(len(_LITERALS)):
            if _LITERALS[place] == 32:
                if _same(data, at, at + place - first, _LITERALS, first, place):
                    return at + place - first
                first = place + 1
    begin = at
    if data[at] == _MINUS:
        at += 1
    digits = at
    while _ZERO <= data[at] <= _NINE:
        at += 1
    if at == digits or (data[digits] == _ZERO and at > digits + 1):
        return -1
    if data[at] == _DOT:
        if whole:
            return -1
        at += 1
        digits = at
        while _ZERO <= data[at] <= _NINE:
            at += 1
        if at == digits:
            return -1
    return at if at - begin <= _DIGITS else -1
