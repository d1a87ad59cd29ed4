"""Tables by code point: kind, fold and script; and homoglyphs, letters of several scripts that look alike.

The tables are built once a process from Python's Unicode data. Unified Han characters and Korean syllables
are handled by range, and so are the planes above 1, which contain no other text today.
"""

import re
import unicodedata
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain, pairwise, repeat
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Uint64s

CODE_POINTS = 0x110000
#: Kinds, as bits: part of a word; a token by itself; joins letters; typed for an apostrophe; belongs to the
#: short word before it (C++); breaks a word at a line end; invisible; must be composed first.
WORD, UNIT, APOSTROPHE, STAND_IN, SIGN, HYPHEN, INVISIBLE, COMPOSING = (1 << bit for bit in range(8))
#: ISO 15924 codes for letters of unlisted scripts, and for characters of all scripts (digits, marks).
OTHER, COMMON = "Zzzz", "Zyyy"

_APOSTROPHES = "'’‘ʼʹ`´′‛＇ꞌ՚ʻʽʾʿˈˊˋʺ׳\u0374"
_STAND_INS, _HYPHENS = '"＂*＊“”„‟‚″˝', "-\u2010\u2011"
#: Each sign with its other forms. The minus is never typed for a dash.
SIGNS = MappingProxyType({"+": "+＋﹢⁺₊", "#": "#＃﹟♯", "−": "−⁻₋"})
#: The numero sign is typed "№ 5", "N5" or left out; spelled out, it would join the number after it.
_NUMERO = "№"
_GRAVE, _STRESS = "0300", frozenset("\u0300\u0301")
_LAST_READ = 0x20000
_HAN = (range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0x20000, 0x323B0))
_SYLLABLES, _PRIVATE = range(0xAC00, 0xD7A4), range(0xD800, 0xF900)
_COMPATIBILITY_HAN = range(0x2F800, 0x2FA20)
#: The characters above fold to themselves; those with a script are below.
SELF_FOLDED, SCRIPTED = _COMPATIBILITY_HAN.stop, _HAN[-1].stop
_INVISIBLE_RANGES = (range(0xFE00, 0xFE10), range(0xE0000, 0xE0200))
_INVISIBLE = frozenset({0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0})


@dataclass(frozen=True, slots=True)
class Characters:
    """Tables of ``CODE_POINTS`` entries each.

    Attributes:
        kind: uint8 bits, with the usual unit of each script.
        fold: uint32, the code point after folding case, width, compatibility forms and apostrophes.
        value: uint64, a pseudo-random number for the fold; hashes of tokens are computed from it.
        script: uint8 index into ``scripts``; 0 is COMMON.
    """

    kind: NDArray[np.uint8]
    fold: NDArray[np.uint32]
    value: Uint64s
    script: NDArray[np.uint8]
    scripts: tuple[str, ...]

    def script_of(self, character: str) -> str:
        """Return the ISO 15924 code of a character's script."""
        return self.scripts[int(self.script[ord(character)])]


@cache
def characters() -> Characters:
    """Return the tables. Cost: about 0.06 s, once a process; 15 MB."""
    names, unit_scripts = _script_names()
    scripts = (COMMON, OTHER, *dict.fromkeys(names.values()))
    number = {script: index for index, script in enumerate(scripts)}
    kind = np.zeros(CODE_POINTS, np.uint8)
    fold = np.arange(CODE_POINTS, dtype=np.uint32)
    script = np.zeros(CODE_POINTS, np.uint8)
    categories = _categories()
    parts = dict(zip(categories, map(unicodedata.decomposition, map(chr, categories)), strict=True))
    apostrophes = list(map(ord, _APOSTROPHES))
    invisible = [*_INVISIBLE, *(code for code, category in categories.items() if category == "Cf")]
    excluded = {*apostrophes, *invisible}
    words = [code for code, category in categories.items() if category[0] in "LMN" and code not in excluded]
    words += _lettered_symbols(categories, parts)
    joining = _joining_codes(categories, parts)
    kind[[code for code in words if code in joining]] = COMPOSING
    # All others fold to themselves.
    changing = [code for code in words if parts[code] or code in _shapes() or _has_cases(chr(code))]
    for code, folded in zip(changing, fold_characters(map(chr, changing)), strict=True):
        if len(folded) != 1 or ord(folded) in joining:
            kind[code] = COMPOSING
        if len(folded) == 1:
            fold[code] = ord(folded)
    places = np.array(words)
    kind[places] |= WORD
    # By the fold: a Roman numeral that folds to a letter is a letter, else one key would have two forms.
    letters = [code for code in set(fold[places].tolist()) if categories.get(code, "L")[0] == "L"]
    first_words = (name.partition(" ")[0] for name in map(unicodedata.name, map(chr, letters), repeat("")))
    script[letters] = [number[names.get(word, OTHER)] for word in first_words]
    script[places] = script[fold[places]]
    kind[invisible], script[invisible] = INVISIBLE, number[COMMON]
    kind[apostrophes], fold[apostrophes], script[apostrophes] = APOSTROPHE, ord("'"), number[COMMON]
    stand_ins = list(map(ord, _STAND_INS))
    kind[stand_ins], fold[stand_ins], kind[list(map(ord, _HYPHENS))] = STAND_IN, ord("'"), HYPHEN
    for sign, forms in SIGNS.items():
        kind[list(map(ord, forms))], fold[list(map(ord, forms))] = SIGN, ord(sign)
    for own, span in (*(("Hani", han) for han in _HAN), ("Hang", _SYLLABLES)):
        kind[span.start : span.stop] |= WORD
        script[span.start : span.stop] = number[own]
    for unseen in _INVISIBLE_RANGES:
        kind[unseen.start : unseen.stop] = INVISIBLE
    as_unit = has_script(script, [number[name] for name in unit_scripts]) & (kind & WORD > 0)
    kind[as_unit] ^= WORD | UNIT
    value = fold.astype(np.uint64) + np.uint64(1)
    # Plane by plane: memory outside the cache costs more than the work.
    for plane in np.split(value, 17):
        plane[:] = mix(plane)
    return Characters(kind, fold, value, script, scripts)


def has_script(script: NDArray[np.uint8], wanted: Sequence[int]) -> NDArray[np.bool_]:
    """Return which characters have one of the scripts, by their numbers."""
    found = np.zeros(len(script), np.bool_)
    for number in wanted:
        found[:SCRIPTED] |= script[:SCRIPTED] == number
    return found


def _has_cases(character: str) -> bool:
    return character.casefold() != character


def fold_character(character: str) -> str:
    """Return a character with case and compatibility form folded; it may become several.

    Radicals become ideographs, circled numbers and letters plain ones, and stressed ѐ and ѝ lose the accent.
    """
    plain = unicodedata.normalize("NFKC", character.translate(_shapes())).casefold()
    return unicodedata.normalize("NFKC", plain).translate(_stressed_letters())


@cache
def _shapes() -> Mapping[int, str]:
    """Return the forms of characters that NFKC does not know: radicals and circled characters."""
    table = {ord(row[0]): row[1] for row in rows("radicals.txt")}
    for code in chain(range(0x2460, 0x3300), range(0x1F100, 0x1F200)):
        name = unicodedata.name(chr(code), "")
        if "CIRCLED" not in name and not name.startswith("NEGATIVE SQUARED LATIN CAPITAL LETTER "):
            continue
        if unicodedata.decomposition(chr(code)):
            continue
        letter = name.rpartition(" LETTER ")[2]
        value = unicodedata.numeric(chr(code), None)
        if value is not None:
            table[code] = str(int(value))
        elif len(letter) == 1:
            table[code] = letter
    return MappingProxyType(table)


@cache
def _stressed_letters() -> Mapping[int, str]:
    """Return Cyrillic letters with a grave accent, which marks stress, and the letters without it."""
    parts = {code: unicodedata.decomposition(chr(code)).split() for code in range(0x400, 0x530)}
    return {code: chr(int(own[0], 16)) for code, own in parts.items() if own[1:] == [_GRAVE]}


def fold_characters(characters: Iterable[str]) -> list[str]:
    """Return the folds of many characters in one call; see ``fold_character``."""
    # Nothing composes with a line end or moves across it.
    return fold_character("\n".join(characters)).split("\n")


def mix(numbers: Uint64s) -> Uint64s:
    """Scramble 64-bit numbers, one to one.

    Source: the finalizer of SplitMix64 (Steele, Lea and Flood 2014).
    """
    numbers = numbers ^ (numbers >> np.uint64(30))
    numbers *= np.uint64(0xBF58476D1CE4E5B9)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(0x94D049BB133111EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers


def _categories() -> dict[int, str]:
    """Return the category of each assigned code point that is not handled by range."""
    first, second, _ = _HAN
    spans = (range(0), first, second, _SYLLABLES, _PRIVATE, range(_LAST_READ, _LAST_READ))
    between = (range(one.stop, following.start) for one, following in pairwise(spans))
    codes = list(chain(*between, _COMPATIBILITY_HAN))
    categories = zip(codes, map(unicodedata.category, map(chr, codes)), strict=True)
    return {code: category for code, category in categories if category != "Cn"}


def _lettered_symbols(categories: Mapping[int, str], parts: Mapping[int, str]) -> list[int]:
    """Return the symbols that stand for letters or numbers (℃, ㎡, ⓐ), but not those set above a word (™).

    Args:
        parts: the decomposition of each code point.
    """
    symbols = [
        code
        for code, category in categories.items()
        if category[0] == "S" and (parts[code] or code in _shapes()) and chr(code) != _NUMERO
    ]
    rows = zip(symbols, fold_characters(map(chr, symbols)), strict=True)
    return [
        code
        for code, folded in rows
        if folded != chr(code)
        and any(unicodedata.category(character)[0] in "LN" for character in folded)
        and not parts[code].startswith("<super>")
    ]


def _joining_codes(categories: Mapping[int, str], parts: Mapping[int, str]) -> set[int]:
    """Return the code points that normalization may compose with, or reorder against, the one before.

    Args:
        parts: the decomposition of each code point.
    """
    second = {0x1161 + jamo for jamo in range(21)} | {0x11A8 + jamo for jamo in range(27)}
    marks = {code for code, category in categories.items() if category[0] == "M"}
    pairs = (own.split() for own in parts.values() if own and own[0] != "<")
    second |= {int(pair[1], 16) for pair in pairs if len(pair) == 2}
    enclosing = {code for code in marks if categories[code] == "Me"}
    return second | enclosing | {code for code in marks if unicodedata.combining(chr(code))}


def _script_names() -> tuple[dict[str, str], set[str]]:
    names: dict[str, str] = {}
    units: set[str] = set()
    for name, script, *unit in rows("scripts.txt"):
        names[name] = script
        units |= {script} if unit else set()
    return names, units


def rows(name: str) -> list[list[str]]:
    """Return the words of each line of a table."""
    text = files("shinglefold.canon").joinpath(name).read_text("utf-8")
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


@cache
def sayings() -> dict[str, str]:
    """Return the meanings of words by their spellings."""
    table = {meaning: spellings for meaning, *spellings in rows("number_words.txt")}
    endings = {"+": table.pop("+"), "~": table.pop("~")}
    return {
        one.rstrip("+~") + ending: meaning
        for meaning, spellings in table.items()
        for one in spellings
        for ending in endings.get(one[-1], [""])
    }


class RepairedWord(NamedTuple):
    """A word, how many homoglyphs were replaced, and its script; empty if it still mixes scripts."""

    word: str
    replaced: int
    script: str


def repair(word: str, preferred: Container[str] = ()) -> RepairedWord:
    """Replace homoglyphs, so that all letters of a word are of one script.

    Args:
        word: folded (lower case).
        preferred: scripts to prefer; otherwise the script of most letters.
    """
    scripts = [characters().script_of(character) for character in word]
    present = [script for script in scripts if script != COMMON]
    # The order of the map decides ties: usually Cyrillic words are tampered with.
    for target in sorted(
        homoglyph_map(), key=lambda script: (script not in preferred, -present.count(script))
    ):
        table = homoglyph_map()[target]
        foreign = [c for c, s in zip(word, scripts, strict=True) if s not in (COMMON, target)]
        if target in present and all(character in table for character in foreign):
            return RepairedWord(
                word.translate({ord(other): own for other, own in table.items()}), len(foreign), target
            )
    return RepairedWord(word, 0, "")


@cache
def homoglyph_map() -> Mapping[str, Mapping[str, str]]:
    """Return for each script the letters of other scripts that look like its own: foreign → own.

    Letters with accents follow from those without: Latin ë is ё in a Cyrillic word, and á is а with a stress.
    """
    columns = {"Cyrl": 1, "Latn": 0, "Grek": 2}
    plain = {script: _column(rows("lookalikes.txt"), script, own) for script, own in columns.items()}
    return {script: {**_accented_letters(table), **table} for script, table in plain.items()}


@cache
def accented_twins() -> Mapping[int, str]:
    """Return the Latin letters with marks whose Cyrillic look-alike has the same marks: ï → ї."""
    rows = homoglyph_map()["Cyrl"].items()
    latin = (row for row in rows if characters().script_of(row[0]) == "Latn")
    return {ord(other): own for other, own in latin if len(unicodedata.normalize("NFD", own)) > 1}


@cache
def merged_letters() -> Mapping[int, str]:
    """Return the Cyrillic letters that share a Latin look-alike with a commoner one: rarer → commoner.

    A Latin h stands for н by its capital and for һ by its small form, so these two can't be told apart.
    """
    first: dict[str, str] = {}
    pairs = [row for row in rows("lookalikes.txt") if "-" not in row[:2] and len(row) == 3]
    for latin, cyrillic, *_ in pairs:
        first.setdefault(latin, cyrillic)
    return {ord(row[1]): first[row[0]] for row in pairs if first[row[0]] != row[1]}


def _column(rows: Sequence[Sequence[str]], script: str, own: int) -> dict[str, str]:
    usable = [row for row in rows if row[own] != "-" and (len(row) == 3 or row[3] == script)]
    # The first row of a letter wins.
    return {other: row[own] for row in usable[::-1] for other in row[:3] if other not in ("-", row[own])}


def _accented_letters(table: Mapping[str, str]) -> dict[str, str]:
    """Return accented letters and their look-alikes, from those of their base letters."""
    found: dict[str, str] = {}
    for code in chain(range(0xC0, 0x530), range(0x1E00, 0x2000)):
        base, *marks = list(unicodedata.normalize("NFD", chr(code)))
        if not marks or base not in table or fold_character(chr(code)) != chr(code):
            continue
        letter = fold_character(unicodedata.normalize("NFC", table[base] + "".join(marks)))
        if len(letter) == 1:
            found[chr(code)] = letter
        elif not set(marks) - _STRESS:
            found[chr(code)] = table[base]
    return found


def fold_case(plain: str) -> str:
    """Return a text without case, of the same length."""
    small = plain.casefold()
    if len(small) == len(plain):
        return small
    return "".join([small if len(small := one.casefold()) == 1 else one for one in plain])


@cache
def invisible() -> re.Pattern[str]:
    """Return the pattern of characters without a shape."""
    codes = np.flatnonzero(characters().kind == INVISIBLE)
    first, last = (codes[np.diff(codes, **end) > 1] for end in ({"prepend": -2}, {"append": 1 << 21}))
    ranges = zip(first.tolist(), last.tolist(), strict=True)
    return re.compile("[" + "".join(f"{chr(start)}-{chr(end)}" for start, end in ranges) + "]")
