"""Near-copies whose classes are known: graded edits of parts of dissimilar pages."""

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from bench import corpora
from shinglefold.canon import strip_html
from shinglefold.grouping.rules import Rules
from shinglefold.grouping.similarity import SimilarityModel
from shinglefold.ingest import Pipeline

#: Words of a text, and how many of them are replaced in its last copy.
_WORDS, _EDITS = 150, 3
#: Originals resemble each other less; copies resemble each other so much more than the scheme asks.
_UNLIKE, _ROOM = 0.35, 0.03
#: Whose pages the texts are pieces of.
_CORPORA = ("libreoffice-ru", "gnome-uk")


def near_copies(pipeline: Pipeline, classes: int, copies: int, seed: int) -> list[dict[str, Any]]:
    """Return texts in random order, with ids ``class-copy``: of each class the original and edited copies."""
    for name in _CORPORA:
        if not corpora.available(name):
            pytest.skip(f"no labelled corpus {name} here; set SHINGLEFOLD_DATA to the folder that has it")
    chance = random.Random(seed)
    made: list[list[str]] = []
    for original in _unlike(pipeline, _pieces(chance, 4 * classes + 50)):
        several = _edited(original, copies, chance)
        if _alike(pipeline, several):
            made.append(several)
        if len(made) == classes:
            break
    assert len(made) == classes, f"only {len(made)} of {classes} classes: the corpora have no more"
    documents = [
        {"id": f"{number}-{copy}", "body": text}
        for number, several in enumerate(made)
        for copy, text in enumerate(several)
    ]
    chance.shuffle(documents)
    return documents


def _pieces(chance: random.Random, number: int) -> list[str]:
    """Return pieces of random pages, and read no more of those than it takes."""
    pages = _unrelated_pages()
    made: list[str] = []
    for page in chance.sample(pages, len(pages)):
        if len(made) >= number:
            break
        words = (strip_html(page["body"]) if page["format"] == "html" else page["body"]).split()
        made += [" ".join(words[begin : begin + _WORDS]) for begin in range(0, len(words) - _WORDS, _WORDS)]
    return made[:number]


@cache
def _unrelated_pages() -> list[dict[str, Any]]:
    """Return one revision of each page."""
    return list({page["family"]: page for name in _CORPORA for page in corpora.pages(name)}.values())


def _unlike(pipeline: Pipeline, texts: Sequence[str]) -> list[str]:
    """Return the texts that resemble none before them."""
    gone: set[int] = set()
    for one, other in _pairs(pipeline, texts, _UNLIKE):
        if one not in gone:
            gone.add(other)
    return [text for at, text in enumerate(texts) if at not in gone]


def _alike(pipeline: Pipeline, texts: Sequence[str]) -> bool:
    found = _pairs(pipeline, texts, pipeline.scheme.decision.min_resemblance + _ROOM)
    return len(found) == len(texts) * (len(texts) - 1) // 2


def _pairs(pipeline: Pipeline, texts: Sequence[str], least: float) -> list[tuple[int, int]]:
    likeness = SimilarityModel(pipeline.scheme, "_dedup", Rules(least))
    outcomes = [
        outcome
        for begin in range(0, len(texts), 300)
        for outcome in pipeline.run_block([{"body": text} for text in texts[begin : begin + 300]])
    ]
    found = likeness.similar_within(
        likeness.batch([likeness.query_document(outcome.document) for outcome in outcomes])
    )
    return sorted((pair.one, pair.other) for pair in found)


def _edited(text: str, copies: int, chance: random.Random) -> list[str]:
    words = text.split()
    made = []
    for copy in range(copies):
        edited = list(words)
        for _ in range(copy * _EDITS // max(1, copies - 1)):
            edited[chance.randrange(len(edited))] = f"edit{chance.randrange(10**6)}"
        made.append(" ".join(edited))
    return made
