"""Look-alike letters smuggled into words of another script: found and folded back."""

from collections.abc import Container, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from shinglefold.canon.text.unicode_tables import COMMON, characters


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
