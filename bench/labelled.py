"""The labelled corpora as canonical tokens, and how well similarities of all pairs agree with the labels."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bench import corpora
from shinglefold.canon import Canonicalizer
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.registry import make_scheme
from shinglefold.sketch import shingle_set
from shinglefold.sketch.b_bit_minhash import length_ratio

Similarities = NDArray[np.float32]
#: Pairs count as duplicates from this edit similarity up.
POSITIVE = 0.8
_LENGTH_GATE = 0.8
_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """The pages of a corpus that its labels speak of.

    ``hashes``, ``offsets``: their canonical tokens. ``shingles``: their sets. ``one``, ``other``,
    ``similarity``: the labelled pairs, one < other.
    """

    name: str
    texts: tuple[str, ...]
    hashes: Uint64s
    offsets: Int64s
    shingles: tuple[Uint64s, ...]
    one: Int64s
    other: Int64s
    similarity: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.texts)

    def shingle_batch(self) -> tuple[Uint64s, Int64s]:
        """Return the shingle sets one after another, and their offsets."""
        offsets = np.cumsum([0, *map(len, self.shingles)])
        return np.concatenate(self.shingles), offsets


@cache
def labelled(name: str) -> Labelled:
    """Return the labelled pages of a corpus."""
    ids = [page["id"] for page in corpora.pages(name)]
    paired = {page for pair in corpora.labels(name) for page in pair}
    # The labels speak of pages of 30 tokens and more, and of some that have fewer when counted so.
    kept = [
        at
        for at, text in enumerate(corpora.texts(name))
        if ids[at] in paired or len(_TOKEN.findall(text)) >= 30
    ]
    texts = tuple(corpora.texts(name)[at] for at in kept)
    tokens = Canonicalizer.of(make_scheme()).hash_batch(texts)
    places = {ids[at]: place for place, at in enumerate(kept)}
    rows = [(*sorted((places[a], places[b])), s) for (a, b), s in corpora.labels(name).items()]
    one, other, similarity = (np.array(column) for column in zip(*rows, strict=True))
    documents = np.split(tokens.hashes, tokens.offsets[1:-1])
    shingles = tuple(shingle_set(document, 2) for document in documents)
    return Labelled(name, texts, tokens.hashes, tokens.offsets, shingles, one, other, similarity)


def available() -> list[Labelled]:
    """Return the corpora that are at hand."""
    return [labelled(name) for name in corpora.LABELLED if corpora.available(name)]


def f1(corpus: Labelled, found: Similarities, thresholds: Sequence[float]) -> list[float]:
    """Return the F1 of folding all pairs that reach a threshold and the length gate, for each threshold.

    Args:
        found: float32 (D, D), of which the part above the diagonal is read.
    """
    sizes = np.array([len(shingles) for shingles in corpus.shingles])
    upper = np.triu(length_ratio(sizes[:, None], sizes[None, :]) >= _LENGTH_GATE, 1)
    every = found[upper]
    positive = corpus.similarity >= POSITIVE
    one, other = corpus.one[positive], corpus.other[positive]
    true = np.where(upper[one, other], found[one, other], -1.0)
    scores = []
    for threshold in thresholds:
        right, folded = int((true >= threshold).sum()), int((every >= threshold).sum())
        scores.append(2 * right / max(1, folded + len(true)))
    return scores


def best_threshold(
    measured: Sequence[tuple[Labelled, Similarities]], thresholds: Sequence[float]
) -> tuple[float, list[float]]:
    """Return the one threshold with the best mean F1 over all corpora, and the F1 of each there."""
    scores = np.array([f1(corpus, found, thresholds) for corpus, found in measured])
    at = int(scores.mean(axis=0).argmax())
    return thresholds[at], scores[:, at].tolist()
