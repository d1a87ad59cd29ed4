"""Texts of made-up words and graded edits of them, as a gate meets them: new ones, copies, near-copies."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from bench.generated import Vocabulary
from shinglefold.ingest import Pipeline
from shinglefold.testing.edits import edited

#: Words of a text; the share of them that is replaced in edits, which leaves .95, .85 and .75.
WORDS, SHARES = 300, (0.05, 0.15, 0.25)
_VOCABULARY = 20_000
#: One in so many texts is an edit.
EDITS = 5


def pipeline() -> Pipeline:
    """Return what makes the fingerprints of these texts."""
    return Pipeline.from_json({"processors": [{"supershingle": {"fields": ["body"]}}]})


def texts(number: int, seed: int = 1, words: int = WORDS) -> list[str]:
    """Return so many texts that have nothing in common but frequent words."""
    vocabulary = Vocabulary.of(_VOCABULARY)
    known = [word.decode() for word in vocabulary.words]
    drawn = vocabulary.drawn(number * words, seed).tolist()
    bounds = pairwise(range(0, len(drawn) + 1, words))
    return [" ".join([known[place] for place in drawn[begin:end]]) for begin, end in bounds]


def arriving(number: int, stored: Sequence[str], seed: int) -> list[str]:
    """Return texts of which each fifth is an edit of one that is stored, by one share after the other."""
    fresh = texts(number, seed)
    for place in range(EDITS - 1, number, EDITS):
        turn = place // EDITS
        original = stored[(seed * 7919 + turn) % len(stored)]
        share = SHARES[turn % len(SHARES)]
        fresh[place] = edited(original, "words replaced", share, "en", seed=seed + turn).text
    return fresh


def documents(name: str, bodies: Sequence[str], made_by: Pipeline) -> list[dict[str, Any]]:
    """Return texts as documents with their fingerprints."""
    given = [{"_id": f"{name}-{at}", "body": body} for at, body in enumerate(bodies)]
    made = made_by.run_block(given)
    return [{**outcome.document, "_id": one["_id"]} for one, outcome in zip(given, made, strict=True)]
