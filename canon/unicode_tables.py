"""What canon knows of every code point: its kind, its fold, its script.

Tables are indexed by code point and built once a process from Python's own Unicode data. Unified Han
characters are taken by range, and with them the planes above 1, which hold nothing else that is text today.
"""

import unicodedata
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Uint64s

CODE_POINTS = 0x110000
#: Kinds, as bits: part of a word; a token of its own; joins letters; never seen; to be composed first.
WORD, UNIT, APOSTROPHE, INVISIBLE, COMPOSING = 1, 2, 4, 8, 16
#: ISO 15924: letters of no script listed here, and what belongs to all scripts (digits, marks).
OTHER, COMMON = "Zzzz", "Zyyy"

_APOSTROPHES = "'’‘ʼʹ`´′‛＇ꞌ՚"
_LAST_READ = 0x20000
_HAN = (range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0x20000, 0x323B0))
_UNASSIGNED = ("Cn", "Co", "Cs")
_COMPATIBILITY_HAN = range(0x2F800, 0x2FA20)
_INVISIBLE_RANGES = (range(0xFE00, 0xFE10), range(0xE0000, 0xE0200))
_INVISIBLE = frozenset({0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0})


@dataclass(frozen=True, slots=True)
class Characters:
    """Tables of ``CODE_POINTS`` entries each.

    ``kind``: uint8 bits, for languages whose unit is their script's usual one. ``fold``: uint32, the code
    point to compare by (case, width, compatibility forms, apostrophes). ``value``: uint64, a pseudo-random
    number of the fold, what tokens are hashed from. ``script``: uint8 index into ``scripts``; 0 is COMMON.
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
    apostrophes = list(map(ord, _APOSTROPHES))
    invisible = [*_INVISIBLE, *(code for code, category in categories.items() if category == "Cf")]
    apart = {*apostrophes, *invisible}
    words = [code for code, category in categories.items() if category[0] in "LMN" and code not in apart]
    folds = fold_characters(map(chr, words))
    joining = _joining(categories)
    for code, folded in zip(words, folds, strict=True):
        if len(folded) != 1 or code in joining:
            kind[code] = COMPOSING
        if len(folded) == 1:
            fold[code] = ord(folded)
    places = np.array(words)
    kind[places] |= WORD
    # By the fold: a Roman numeral that folds to a letter is one, else one key would have two forms.
    for code in set(fold[places].tolist()):
        script[code] = number[_script(chr(code), names)]
    script[places] = script[fold[places]]
    kind[invisible], script[invisible] = INVISIBLE, number[COMMON]
    kind[apostrophes], fold[apostrophes], script[apostrophes] = APOSTROPHE, ord("'"), number[COMMON]
    for han in _HAN:
        kind[han.start : han.stop] |= WORD
        script[han.start : han.stop] = number["Hani"]
    for unseen in _INVISIBLE_RANGES:
        kind[unseen.start : unseen.stop] = INVISIBLE
    as_unit = np.isin(script, [number[name] for name in unit_scripts]) & (kind & WORD > 0)
    kind[as_unit] ^= WORD | UNIT
    return Characters(kind, fold, mix(fold.astype(np.uint64) + np.uint64(1)), script, scripts)


def fold_character(character: str) -> str:
    """Return what a character is compared by: compatibility form and case folded away; one or several."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())


def fold_characters(characters: Iterable[str]) -> list[str]:
    """Return what each of many characters is compared by, all in one go; see ``fold_character``."""
    # Nothing is composed with a line end, nor reordered across it.
    return fold_character("\n".join(characters)).split("\n")


def mix(numbers: Uint64s) -> Uint64s:
    """Return the numbers scattered over 64 bits, one to one.

    Source: the finalizer of SplitMix64 (Steele, Lea and Flood 2014).
    """
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _categories() -> dict[int, str]:
    """Return the category of each assigned code point that is not taken by range."""
    first, second, _ = _HAN
    between = (range(first.start), range(first.stop, second.start), range(second.stop, _LAST_READ))
    codes = list(chain(*between, _COMPATIBILITY_HAN))
    categories = zip(codes, map(unicodedata.category, map(chr, codes)), strict=True)
    return {code: category for code, category in categories if category not in _UNASSIGNED}


def _script(character: str, names: Mapping[str, str]) -> str:
    if unicodedata.category(character)[0] != "L":
        return COMMON
    return names.get(unicodedata.name(character, "").partition(" ")[0], OTHER)


def _joining(categories: Mapping[int, str]) -> set[int]:
    """Return the code points that normalization may join with, or reorder against, the one before."""
    second = {0x1161 + jamo for jamo in range(21)} | {0x11A8 + jamo for jamo in range(27)}
    marks = {code for code, category in categories.items() if category[0] == "M"}
    for code in categories:
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            second.add(int(parts[1], 16))
    return second | {code for code in marks if unicodedata.combining(chr(code))}


def _script_names() -> tuple[dict[str, str], set[str]]:
    names: dict[str, str] = {}
    units: set[str] = set()
    for line in files("shinglefold.canon").joinpath("scripts.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, script, *unit = line.split()
            names[name] = script
            units |= {script} if unit else set()
    return names, units


class Repaired(NamedTuple):
    """A word of one script, how many letters were replaced, and the script; ``script`` is empty when the
    word mixes scripts and can't be brought to one.
    """

    word: str
    replaced: int
    script: str


def repair(word: str, preferred: Container[str] = ()) -> Repaired:
    """Return the word in one script that all its letters can be drawn in.

    Args:
        word: folded (lower case).
        preferred: scripts to bring it to if that can be; else the one most of its letters are of.
    """
    scripts = [characters().script_of(character) for character in word]
    present = [script for script in scripts if script != COMMON]
    # The order of twins() decides ties: Cyrillic words are the ones tampered with.
    for target in sorted(twins(), key=lambda script: (script not in preferred, -present.count(script))):
        table = twins()[target]
        foreign = [c for c, s in zip(word, scripts, strict=True) if s not in (COMMON, target)]
        if target in present and all(character in table for character in foreign):
            return Repaired(
                word.translate({ord(other): own for other, own in table.items()}), len(foreign), target
            )
    return Repaired(word, 0, "")


@cache
def twins() -> Mapping[str, Mapping[str, str]]:
    """Return, by script, the letters of other scripts that look like one of its own: foreign → own."""
    text = files("shinglefold.canon").joinpath("lookalikes.txt").read_text("utf-8")
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    columns = {"Cyrl": 1, "Latn": 0, "Grek": 2}
    return {script: _column(rows, script, own) for script, own in columns.items()}


def _column(rows: Sequence[Sequence[str]], script: str, own: int) -> dict[str, str]:
    usable = [row for row in rows if row[own] != "-" and (len(row) == 3 or row[3] == script)]
    return {other: row[own] for row in usable for other in row[:3] if other not in ("-", row[own])}
