"""What the tables say of each character, told one by one from Unicode's own data."""

import unicodedata

import pytest

from shinglefold.canon.unicode_tables import (
    APOSTROPHE,
    COMPOSING,
    INVISIBLE,
    UNIT,
    WORD,
    characters,
    fold_character,
)

#: A plane and a half, where the scripts are, and a part of what is taken by range.
_CODES = [*range(0x20100), *range(0x2F800, 0x2FA1E)]
_FILLERS = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10)}


@pytest.fixture(scope="module")
def plain() -> list[int]:
    """Letters, marks and numbers that are seen and join no letters."""
    facts = characters()
    apart = facts.kind & (APOSTROPHE | INVISIBLE) > 0
    kept = [code for code in _CODES if unicodedata.category(chr(code))[0] in "LMN" and not apart[code]]
    return sorted(kept + [code for code in _CODES if _stands_for_letters(chr(code))])


def _stands_for_letters(character: str) -> bool:
    """Whether a character is a symbol for letters or numbers, and no mark above a word, nor the sign №."""
    folded = fold_character(character)
    lettered = folded != character and any(unicodedata.category(c)[0] in "LN" for c in folded)
    above = unicodedata.decomposition(character).startswith("<super>")
    return unicodedata.category(character)[0] == "S" and lettered and not above and character != "№"


def test_letters_marks_and_numbers_are_of_words_and_nothing_else_is(plain):
    kind = characters().kind
    assert [code for code in _CODES if kind[code] & (WORD | UNIT)] == plain
    assert not [code for code in plain if kind[code] & WORD and kind[code] & UNIT]


def test_each_is_compared_by_its_own_fold_or_written_out(plain):
    facts = characters()
    for code in plain:
        folded = fold_character(chr(code))
        assert facts.fold[code] == (ord(folded) if len(folded) == 1 else code), hex(code)
        assert len(folded) == 1 or facts.kind[code] & COMPOSING, hex(code)


def test_whatever_normalization_changes_beside_a_letter_is_composed_first(plain):
    kind = characters().kind
    moved = [code for code in plain if unicodedata.combining(chr(code))]
    moved += [
        ord(unicodedata.normalize("NFD", chr(code))[1]) for code in range(0xC0, 0x250) if _composed(code)
    ]
    assert len(moved) > 800
    assert not [hex(code) for code in moved if not kind[code] & COMPOSING]


def test_the_script_is_that_of_the_letter_it_is_compared_by(plain):
    facts = characters()
    told = {"CYRILLIC": "Cyrl", "LATIN": "Latn", "GREEK": "Grek", "CJK": "Hani", "HEBREW": "Hebr"}
    told["HANGUL"] = "Hang"
    for code in plain:
        folded = chr(facts.fold[code])
        name = unicodedata.name(folded, "").partition(" ")[0]
        if unicodedata.category(folded)[0] != "L":
            assert facts.script_of(chr(code)) == "Zyyy", hex(code)
        elif name in told:
            assert facts.script_of(chr(code)) == told[name], hex(code)


def test_what_is_never_seen_is_told_from_what_is():
    kind = characters().kind
    formats = {code for code in _CODES if unicodedata.category(chr(code)) == "Cf"}
    assert {code for code in _CODES if kind[code] == INVISIBLE} == formats | _FILLERS


def _composed(code: int) -> bool:
    return len(unicodedata.normalize("NFD", chr(code))) == 2
