"""What folds of short texts: copies of cards, headlines and messages, and others of the same form."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.quality.corpus import fingerprinter, pairs
from bench.table import Row
from shinglefold.registry import make_scheme

TEXTS = Path(__file__).with_name("short_texts.toml")
#: Words, or Chinese characters, from which to which texts are told together.
LENGTHS = ((1, 9), (10, 29), (30, 80))
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")


class Labelled(NamedTuple):
    """Two short texts, and whether they are copies."""

    one: str
    other: str
    same: bool

    @property
    def length(self) -> int:
        """Return the words of the first."""
        return len(_WORD.findall(self.one))


def labelled() -> list[Labelled]:
    """Return the labelled pairs."""
    groups = tomllib.loads(TEXTS.read_text("utf-8"))["group"]
    return [
        Labelled(group["text"], text, kind == "same")
        for group in groups
        for kind in ("same", "other")
        for text in group[kind]
    ]


def measure() -> Iterator[Row]:
    """Yield by length what folds of copies and of others, also with equal numbers asked for."""
    known = labelled()
    ways = {"text": {}, "signature": {"verify": "signature"}, "text, equal numbers": {"facts": "numbers"}}
    for verify, options in ways.items():
        scheme = make_scheme().with_options(**options)
        tool = fingerprinter(scheme)
        folds = [bool(pairs(tool.fingerprint_arrays([one.one, one.other]), scheme)) for one in known]
        for low, high in LENGTHS:
            for same in (True, False):
                rows = [
                    (fold, one)
                    for fold, one in zip(folds, known, strict=True)
                    if low <= one.length <= high and one.same is same
                ]
                share = sum(fold for fold, _ in rows) / len(rows)
                name = f"short texts of {low} to {high} words, {'copies' if same else 'others'}, by {verify}"
                yield Row(name, share, "fold", f"{len(rows)} pairs")
