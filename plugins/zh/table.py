"""One table from Traditional and variant characters to the Simplified form they are compared by."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from shinglefold.plugins.resources import read_lines


@cache
def simplified() -> Mapping[int, str]:
    """Return code point → Simplified character, about 4.1 k entries; no value is itself a key.

    Regional forms go through the Traditional form they vary. Where the choice depends on the word, the first
    candidate is taken: which one matters little, as long as both prints of a text take the same.

    Source: OpenCC's character tables, and ``variants.txt``. Cost: about 3 ms, once a process.
    """
    table = _characters("TSCharacters.txt")
    for name in ("TWVariantsRev.txt", "HKVariantsRev.txt"):
        taken = set(table.values())
        for variant, standard in _characters(name).items():
            if variant not in table and variant not in taken:
                table[variant] = standard
    for line in read_lines("zh", "variants.txt"):
        variant, standard = line.split()
        table[variant] = standard
    closed = {key: _last(table, key) for key in table}
    return MappingProxyType({ord(key): value for key, value in closed.items() if key != value})


def _last(table: Mapping[str, str], character: str) -> str:
    seen = {character}
    while (following := table.get(character, character)) not in seen:
        seen.add(following)
        character = following
    return character


def _characters(name: str) -> dict[str, str]:
    lines = files("opencc").joinpath("dictionary", name).read_text("utf-8").splitlines()
    pairs = (line.split()[:2] for line in lines if line.strip())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and len(pair[0]) == len(pair[1]) == 1}
