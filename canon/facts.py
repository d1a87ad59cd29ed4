"""The facts of a text that numbers tell: model numbers, sizes, prices, dates."""

import re
import unicodedata
from collections.abc import Iterable

import numpy as np
import xxhash

from shinglefold.model import Uint64s

#: Digits with the letters before them (S23); those behind are mostly units, which stand apart as often.
_NUMBER = re.compile(r"[^\W\d_\u3400-\u9fff]*\d+")


def numbers_of(text: str) -> frozenset[str]:
    """Return the numbers of a text with the letters before them, of whatever script, width and case."""
    return frozenset(_NUMBER.findall(unicodedata.normalize("NFKC", text).casefold()))


def facts_of(texts: Iterable[str]) -> Uint64s:
    """Return for each text a hash of its numbers: equal where the same ones stand in both.

    Cost: about 10 ns a character.
    """
    return np.array([_hash(numbers_of(text)) for text in texts], np.uint64)


def _hash(numbers: frozenset[str]) -> int:
    return xxhash.xxh3_64_intdigest("\0".join(sorted(numbers)).encode("utf-8", "surrogatepass"))
