"""Token hashes for the tests of sketches: random collections, and pairs of a known resemblance."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from shinglefold.model.scheme import SketchOptions
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.sketch.sketcher import Sketcher

Batch = tuple[Uint64s, Int64s]


def batch(documents: list[Uint64s]) -> Batch:
    """Lay documents one after another, with their offsets."""
    offsets = np.concatenate(([0], np.cumsum([len(document) for document in documents]))).astype(np.int64)
    return np.concatenate([np.zeros(0, np.uint64), *documents]).astype(np.uint64), offsets


def random_tokens(seed: int, count: int) -> Uint64s:
    return np.random.default_rng(seed).integers(1, 2**64, count, dtype=np.uint64)


def pairs_of_resemblance(resemblance: float, pairs: int, seed: int = 7) -> tuple[Batch, Batch, float]:
    """Pairs of sets of single tokens (width 1), 300 in the union of each, and their exact resemblance."""
    union = 300
    shared = round(resemblance * union)
    drawn = np.random.default_rng(seed).integers(1, 2**64, (pairs, union), dtype=np.uint64)
    half = shared + (union - shared) // 2
    ones = [row[:half] for row in drawn]
    others = [np.concatenate((row[:shared], row[half:])) for row in drawn]
    return batch(ones), batch(others), shared / union


def revisions(seed: int, families: int, versions: int, most_edits: float = 0.3) -> list[Uint64s]:
    """Families of documents: a first version, and versions with a random share of its tokens replaced."""
    rng = np.random.default_rng(seed)
    documents = []
    for _ in range(families):
        first = rng.integers(1, 2**64, rng.integers(0, 150), dtype=np.uint64)
        for version in range(versions):
            edited = first.copy()
            places = rng.random(len(first)) < rng.random() * most_edits * (version > 1)
            edited[places] = rng.integers(1, 2**64, np.count_nonzero(places), dtype=np.uint64)
            documents.append(edited)
    return documents


def sketcher(**options: int) -> Sketcher:
    """Make a sketcher of sets and minima, unless told."""
    plain: dict[str, Any] = {"counted": False, "both_ends": False, "values": 168, "bits": 4, **options}
    return Sketcher(SketchOptions(**plain))


def words_of_a_text(least: int = 0, most: int = 60) -> st.SearchStrategy[Uint64s]:
    """Return hashes of the words of texts, some of which come again."""
    word = st.integers(0, 2**64 - 1) | st.integers(0, 5)
    return st.lists(word, min_size=least, max_size=most).map(lambda words: np.array(words, np.uint64))
