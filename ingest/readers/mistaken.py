"""Text that is in another encoding than it is read in: told, with the one to try, and never stored."""

import codecs
import re
from collections import Counter
from dataclasses import dataclass, field

from shinglefold.ingest.readers.decode import BEYOND_ASCII, is_utf8

#: What is told apart; the names ``--encoding`` takes are Python's, those said are the usual ones.
_CANDIDATES = {
    "cp1251": "windows-1251",
    "koi8_r": "koi8-r",
    "cp866": "cp866",
    "mac_cyrillic": "mac-cyrillic",
    "cp1252": "windows-1252",
    "cp1250": "windows-1250",
    "gb18030": "gb18030",
    "big5": "big5",
    "shift_jis": "shift_jis",
    "euc_jp": "euc-jp",
    "euc_kr": "euc-kr",
}
#: These two have the same small letters but for one, so that a short text is as sound in either.
_TWINS = ("cp1251", "mac_cyrillic")
_USUAL = re.compile("[А-яЁёІіЇїЄєҐґЎў]")
_ODD_CAPITAL = re.compile("[а-яёіїєґў][А-ЯЁІЇЄҐЎ]")
_BAD = re.compile("[\udc80-\udcff]")
#: Stands in UTF-8 for what could not be decoded from UTF-16.
_FROM_OTHERS = {"\udcff"}
#: Bytes looked at for a guess, and guesses after which the commonest is given.
_ENOUGH, _GUESSES = 16_384, 50


@dataclass(slots=True)
class Guess:
    """Guesses what the texts of one source are encoded in."""

    _votes: Counter[str] = field(default_factory=Counter)

    def mistaken(self, raw: bytes, encoding: str) -> str:
        """Return why bytes are taken for another encoding than they are read in, or nothing.

        UTF-8 that is damaged here and there still has more sound letters beyond ASCII than broken ones. What
        is sound UTF-8 with several letters beyond ASCII is no text in another encoding.
        """
        name = codecs.lookup(encoding).name
        if name != "utf-8":
            said = _CANDIDATES.get(name, name)
            return f"the text is UTF-8, not {said}: try --encoding utf-8" if is_utf8(raw) else ""
        text = raw.decode("utf-8", "surrogateescape")
        bad = _BAD.findall(text)
        if 2 * len(bad) <= len(BEYOND_ASCII.findall(text)) or set(bad) == _FROM_OTHERS:
            return ""
        found = self._guessed(raw)
        remedy = f"it looks like {found}, try --encoding {found}" if found else "say its --encoding"
        return f"the text is not UTF-8 ({len(bad):,} undecodable bytes): {remedy}"

    def _guessed(self, raw: bytes) -> str:
        if self._votes.total() < _GUESSES:
            # Only asked about text that can't be read: importing it takes a while.
            from charset_normalizer import from_bytes

            best = from_bytes(_telling(raw), cp_isolation=list(_CANDIDATES)).best()
            if best is not None:
                self._votes[_of_twins(raw, best.encoding)] += 1
        return _CANDIDATES.get(self._votes.most_common(1)[0][0], "") if self._votes else ""


def _telling(raw: bytes) -> bytes:
    """Return the part of a text that begins with its first letter beyond ASCII."""
    first = next((place for place, byte in enumerate(raw) if byte > 0x7F), 0)
    return raw[max(0, first - 64) :][:_ENOUGH]


def _of_twins(raw: bytes, found: str) -> str:
    """Return that one of the twins in which the capitals are usual ones at the beginning of words."""
    return max(_TWINS, key=lambda encoding: _soundness(raw[:_ENOUGH], encoding)) if found in _TWINS else found


def _soundness(raw: bytes, encoding: str) -> int:
    text = raw.decode(encoding, "replace")
    return len(_USUAL.findall(text)) - 2 * len(_ODD_CAPITAL.findall(text))
