"""Documents that copied passages of sources, and what each search for a source must find."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import Engine
from shinglefold.ingest.pipeline.pipeline import Pipeline, default_definition
from shinglefold.model.recipe import FIELD, TEXTS, Recipe, with_passages
from shinglefold.passages.alignment import covered_shares
from shinglefold.passages.shingle_positions import elements_of
from shinglefold.registry import make_scheme
from shinglefold.rerank.matching import MatchOptions, MatchPage, MatchSearch

WORDS, DOCUMENTS, SOURCES, LENGTH = 4_000, 90, 6, 400


@dataclass(frozen=True)
class Copied:
    """``sources``: texts; ``documents``: bodies by id, each with a copy of one of them, or of none."""

    sources: list[str]
    documents: dict[str, str]

    @cached_property
    def shares(self) -> list[dict[str, float]]:
        """By source, how much of it each document contains: a second's work, so not done at import."""
        canonicalizer = Canonicalizer.of(make_scheme())
        theirs = {id_: elements_of(canonicalizer.tokens(text)) for id_, text in self.documents.items()}
        ours = [elements_of(canonicalizer.tokens(text)) for text in self.sources]
        return [{id_: covered_shares(one, other)[0] for id_, other in theirs.items()} for one in ours]

    def wanted(self, source: int, least: float) -> set[str]:
        """The documents that contain so much of a source, by comparing it with each."""
        return {id_ for id_, share in self.shares[source].items() if share >= least}


def recipe_of(fields: Sequence[str] = TEXTS) -> Recipe:
    return pipeline_of(fields).recipe(FIELD)


def pipeline_of(fields: Sequence[str] = TEXTS) -> Pipeline:
    return Pipeline.from_json(with_passages(default_definition(FIELD, fields), FIELD), make_scheme())


def make(seed: int = 1, *, chinese: bool = False) -> Copied:
    """Return generated texts: copies are of 25 to 200 words, some edited every 30 words."""
    rng = random.Random(seed)
    alphabet = "".join(map(chr, range(0x4E00, 0x5E00))) if chinese else "abcdefghijklmnoprstuvwz"
    glue = "" if chinese else " "
    words = [
        rng.choice(alphabet) if chinese else "".join(rng.choices(alphabet, k=rng.randint(4, 9)))
        for _ in range(WORDS)
    ]
    sources = [rng.choices(words, k=LENGTH) for _ in range(SOURCES)]
    documents: dict[str, str] = {}
    for number in range(DOCUMENTS):
        body = rng.choices(words, k=200)
        if number % 3:
            source, length = sources[number // 3 % SOURCES], rng.randint(25, 200)
            begin = rng.randrange(LENGTH - length)
            copy = source[begin : begin + length]
            for at in range(0, length, 30) if number % 2 else ():
                copy[at] = rng.choice(words)
            place = rng.randrange(200)
            body[place:place] = copy
        documents[f"d{number:03}"] = glue.join(body)
    return Copied([glue.join(source) for source in sources], documents)


def find_matches(engine: Engine, index: str, text: str, **options: Any) -> MatchPage:
    """The first page of documents with passages of a text, by a search of its own."""
    return MatchSearch(engine).find(index, text, MatchOptions(**options))
