"""How well what folds agrees with what is to fold: by pairs, by bands of similarity, by groups."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from bench.quality.corpus import Corpus, Pair
from shinglefold.sketch.clustering import connected_components

#: Edit similarities from which to which recall is told.
BANDS = ((0.95, 1.01), (0.9, 0.95), (0.8, 0.9), (0.7, 0.8))


@dataclass(frozen=True, slots=True)
class Scores:
    """Precision, recall and F1 of pairs; ``bands``: the share that folds of each band; and of groups the
    adjusted Rand index (Hubert and Arabie 1985) and the F1 of B-cubed (Bagga and Baldwin 1998).
    """

    precision: float
    recall: float
    f1: float
    bands: tuple[float, ...]
    rand: float
    b_cubed: float


def pair_f1(corpus: Corpus, folded: set[Pair]) -> float:
    """Return the F1 of the pairs that fold; a pair without a label is a false one."""
    positive = corpus.positive
    return 2 * len(folded & positive) / max(1, len(folded) + len(positive))


def scores(corpus: Corpus, folded: set[Pair]) -> Scores:
    """Return all scores of the pairs that fold."""
    positive = corpus.positive
    right = len(folded & positive)
    bands = tuple(
        _share({p for p, s in corpus.truth.items() if low <= s < high}, folded) for low, high in BANDS
    )
    told, true = _groups(corpus, folded), _groups(corpus, positive)
    return Scores(
        right / max(1, len(folded)),
        right / max(1, len(positive)),
        pair_f1(corpus, folded),
        bands,
        rand_index(told, true),
        b_cubed(told, true),
    )


def _share(pairs: set[Pair], folded: set[Pair]) -> float:
    return len(pairs & folded) / max(1, len(pairs))


def _groups(corpus: Corpus, pairs: Iterable[Pair]) -> list[int]:
    rows = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return connected_components(rows[:, 0], rows[:, 1], len(corpus)).tolist()


def rand_index(told: Sequence[int], true: Sequence[int]) -> float:
    """Return the adjusted Rand index of two partitions: 1 where they are the same, 0 by chance."""
    both = sum(comb(n, 2) for n in Counter(zip(told, true, strict=True)).values())
    one = sum(comb(n, 2) for n in Counter(told).values())
    other = sum(comb(n, 2) for n in Counter(true).values())
    expected = one * other / max(1, comb(len(told), 2))
    most = (one + other) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)


def b_cubed(told: Sequence[int], true: Sequence[int]) -> float:
    """Return the F1 of B-cubed: precision and recall of each document's group, averaged over documents."""
    both = Counter(zip(told, true, strict=True))
    sizes, wanted = Counter(told), Counter(true)
    precision = sum(n * n / sizes[group] for (group, _), n in both.items()) / len(told)
    recall = sum(n * n / wanted[group] for (_, group), n in both.items()) / len(told)
    return 2 * precision * recall / (precision + recall)
