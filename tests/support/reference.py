"""Segmentation once more, character by character, as a reference for the vectorised one."""

import re
import unicodedata

from shinglefold.canon.segmentation import LONGEST_SIGNED, LONGEST_WORD
from shinglefold.canon.unicode_tables import (
    APOSTROPHE,
    INVISIBLE,
    SIGN,
    STAND_IN,
    UNIT,
    WORD,
    characters,
    fold_character,
)

_STAND_IN = "[бвгґджзйклмнпрстфхцчшщ][яюєїеёі]"


def words(text: str) -> list[str]:
    """The folded words and single characters of a text that is NFC, without marks of its own."""
    visible = [c for c in text if not characters().kind[ord(c)] & INVISIBLE]
    found: list[str] = []
    current = ""
    for number, character in enumerate(visible):
        kind = int(characters().kind[ord(character)])
        joins = kind & (APOSTROPHE | STAND_IN)
        if kind & WORD or (joins and _between_letters(visible, number)):
            current += "'" if joins else fold_character(character)
            continue
        if kind & SIGN and 0 < len(current.rstrip("+#−")) <= LONGEST_SIGNED and _ends_a_word(visible, number):
            current += chr(characters().fold[ord(character)])
            continue
        found += [current] if current else []
        current = ""
        if kind & UNIT:
            found.append(fold_character(character))
    return [word for word in [*found, current] if word and len(word) <= LONGEST_WORD]


def _between_letters(visible: list[str], number: int) -> bool:
    around = visible[number - 1 : number] + visible[number + 1 : number + 2]
    if characters().kind[ord(visible[number])] & STAND_IN:
        return re.fullmatch(_STAND_IN, "".join(around).lower()) is not None
    return number > 0 and len(around) == 2 and all(characters().kind[ord(c)] & WORD for c in around)


def _ends_a_word(visible: list[str], number: int) -> bool:
    """Whether no letter follows the signs from here on."""
    kinds = [int(characters().kind[ord(c)]) for c in visible[number:]]
    return not next((kind for kind in kinds if not kind & SIGN), 0) & (WORD | UNIT)


def plain(text: str) -> str:
    """The text composed, without combining marks and without characters that fold to several."""
    composed = unicodedata.normalize("NFC", text)
    return "".join(c for c in composed if not unicodedata.combining(c) and len(fold_character(c)) == 1)
