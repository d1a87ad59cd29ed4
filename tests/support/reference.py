"""Segmentation once more, character by character, as a reference for the vectorised one."""

import unicodedata

from shinglefold.canon.segmentation import LONGEST_WORD
from shinglefold.canon.unicode_tables import APOSTROPHE, INVISIBLE, UNIT, WORD, characters, fold_character


def words(text: str) -> list[str]:
    """The folded words and single characters of a text that is NFC, without marks of its own."""
    visible = [c for c in text if not characters().kind[ord(c)] & INVISIBLE]
    found: list[str] = []
    current = ""
    for number, character in enumerate(visible):
        kind = int(characters().kind[ord(character)])
        if kind & WORD or (kind & APOSTROPHE and _between_letters(visible, number)):
            current += "'" if kind & APOSTROPHE else fold_character(character)
            continue
        found += [current] if current else []
        current = ""
        if kind & UNIT:
            found.append(fold_character(character))
    return [word for word in [*found, current] if word and len(word) <= LONGEST_WORD]


def _between_letters(visible: list[str], number: int) -> bool:
    around = visible[number - 1 : number] + visible[number + 1 : number + 2]
    return number > 0 and len(around) == 2 and all(characters().kind[ord(c)] & WORD for c in around)


def plain(text: str) -> str:
    """The text composed, without combining marks and without characters that fold to several."""
    composed = unicodedata.normalize("NFC", text)
    return "".join(c for c in composed if not unicodedata.combining(c) and len(fold_character(c)) == 1)
