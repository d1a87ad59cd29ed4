"""What folds of short texts: copies of cards, headlines and messages, and others of the same form."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.corpora import WORD
from bench.quality.corpus import pairs
from bench.table import Row
from shinglefold.ingest.fingerprinter import Fingerprinter
from shinglefold.ingest.processors.texts import NeverDiffer
from shinglefold.model.profiles import profile_of
from shinglefold.registry import make_scheme

TEXTS, HELD_OUT = map(Path(__file__).with_name, ("short_texts.toml", "short_held_out.toml"))
#: Words, or Chinese characters, from which to which texts are told together.
LENGTHS = ((1, 9), (10, 29), (30, 80))


class Labelled(NamedTuple):
    """Two short texts, and whether they are copies."""

    one: str
    other: str
    same: bool

    @property
    def length(self) -> int:
        """Return the words of the first."""
        return len(WORD.findall(self.one))


def labelled(texts: Path = TEXTS) -> list[Labelled]:
    """Return the labelled pairs."""
    groups = tomllib.loads(texts.read_text("utf-8"))["group"]
    return [
        Labelled(group["text"], text, kind == "same")
        for group in groups
        for kind in ("same", "other")
        for text in group[kind]
    ]


def _folds(pair: Labelled, tool: Fingerprinter, facts: NeverDiffer) -> bool:
    texts = [pair.one, pair.other]
    made = tool.fingerprint_arrays(texts, facts=facts.facts(texts, [{}, {}]))
    return bool(pairs(made, tool.scheme))


def measure() -> Iterator[Row]:
    """Yield by length what folds of copies and of others, also with the profile for products."""
    known, held_out = labelled(), labelled(HELD_OUT)
    products = profile_of("products")
    signature = {"verify": "signature"}
    ways: list[tuple[str, Mapping[str, Any], Sequence[str]]] = [
        ("text", {}, ()),
        ("signature", signature, ()),
        ("text, products", products.decision, products.never_differ),
        ("signature, products", signature, products.never_differ),
    ]
    for verify, options, names in ways:
        tool, facts = Fingerprinter(make_scheme().with_options(**options)), NeverDiffer.parse(names)
        for low, high in LENGTHS:
            some = [one for one in known if low <= one.length <= high]
            yield from _shares(f"short texts of {low} to {high} words", verify, some, tool, facts)
        yield from _shares("short texts held out", verify, held_out, tool, facts)


def _shares(
    name: str, verify: str, known: Sequence[Labelled], tool: Fingerprinter, facts: NeverDiffer
) -> Iterator[Row]:
    for same in (True, False):
        folds = [_folds(one, tool, facts) for one in known if one.same is same]
        told = f"{name}, {'copies' if same else 'others'}, by {verify}"
        yield Row(told, sum(folds) / len(folds), "fold", f"{len(folds)} pairs")
