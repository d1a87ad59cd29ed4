"""The numbers of a text, as facts that must not differ: model numbers, sizes, prices, dates."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
import xxhash

from shinglefold.canon.unicode_tables import INVISIBLE, characters, homoglyph_map
from shinglefold.model.values import Uint64s

_LETTER = r"[^\W\d_\u3040-\u30ff\u3400-\u9fff]"
#: Digits with the letters before them (S23). Letters after them are usually units, which often stand apart.
#: Without letters, following groups of three digits belong to the number, whatever separates them. A match
#: starts at the first letter, so long runs of letters take no time.
_NUMBER = re.compile(rf"((?<!{_LETTER}){_LETTER}++\d+)|(\d+(?:[ ,.'’]\d{{3}}(?!\d))*)")
_DIGITS = re.compile(r"\d+")


def numbers_of(text: str) -> frozenset[str]:
    """Return the numbers of a text with the letters before them, in any script, width and case.

    Homoglyphs are folded. Numbers without letters are split into groups of three digits: 1 500, 1,500 and
    1500 are the same, and so are ``14 128`` and ``14, 128``, which may be one number or two.
    """
    # NFKC would turn the sign into letters before the number.
    seen = text.replace("№", " ")
    if not seen.isascii() and not _invisible().isdisjoint(seen):
        seen = "".join([letter for letter in seen if letter not in _invisible()])
    plain = unicodedata.normalize("NFKC", seen).casefold()
    return frozenset(_facts(plain))


def facts_of(texts: Iterable[str]) -> Uint64s:
    """Return for each text a hash of its set of numbers.

    Cost: about 10 ns a character.
    """
    return np.array([_hash(numbers_of(text)) for text in texts], np.uint64)


def _facts(plain: str) -> Iterator[str]:
    latin = str.maketrans(dict(homoglyph_map()["Latn"]))
    for model, number in _NUMBER.findall(plain):
        if model:
            yield model.translate(latin)
        else:
            yield from _numbered(group for digits in _DIGITS.findall(number) for group in _groups(digits))


def _groups(digits: str) -> list[str]:
    """Return digits in groups of three from the right."""
    first = len(digits) % 3
    return [digits[:first]] * bool(first) + [digits[at : at + 3] for at in range(first, len(digits), 3)]


def _numbered(groups: Iterable[str]) -> Iterator[str]:
    """Yield the groups of a number; number repeated groups, so that 1 000 000 differs from 1 000."""
    seen: Counter[str] = Counter()
    for group in groups:
        yield f"{group}+{seen[group]}" if seen[group] else group
        seen[group] += 1


@cache
def _invisible() -> frozenset[str]:
    return frozenset(map(chr, np.flatnonzero(characters().kind == INVISIBLE).tolist()))


def _hash(numbers: frozenset[str]) -> int:
    return xxhash.xxh3_64_intdigest("\0".join(sorted(numbers)).encode("utf-8", "surrogatepass"))
