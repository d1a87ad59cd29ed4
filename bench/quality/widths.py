"""Single words beside pairs of words, exact and in 84 bytes; ``python -m bench quality.widths``.

A rule is a weight of single words and a threshold. Each corpus is judged by the rule that is best on the
others, so nothing is learned where it is tried.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bench.quality import templates
from bench.quality.corpus import POSITIVE, candidates, corpus, fingerprinter, names
from bench.table import Row
from shinglefold.model.scheme import SketchOptions
from shinglefold.model.values import Int64s, TokenBatch
from shinglefold.registry import make_scheme
from shinglefold.sketch import Sketcher, length_ratio, resemblance, shingle_set, similarity
from shinglefold.sketch.b_bit_minhash import corrected, low_bits, pack

#: The two-bit values of single words and of pairs of words: 84 bytes each.
SPLITS = ((0, 336), (336, 0), (168, 168), (112, 224), (224, 112))
_SEEDS = 12
_WEIGHTS = np.arange(0, 1.01, 0.1)
_THRESHOLDS = np.arange(0.3, 0.96, 0.0025)
#: How many releases lie between the two pages of a pair.
_APART = ("of one release", "a release apart", "two releases apart")
#: Sets with fewer duplicates say little.
_FEWEST = 100
#: The threshold that is best where both widths have half of the values.
_EVEN = 0.645
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Documents, candidate pairs (P, 2) of them, which are duplicates (P,), and the pairs of each set."""

    tokens: TokenBatch
    pairs: Int64s
    duplicates: NDArray[np.bool_]
    sets: Mapping[str, Int64s]

    def exact(self) -> Floats:
        """Return the exact resemblance of single words and of pairs, repeats counted: (P, 2)."""
        documents = np.split(self.tokens.hashes, self.tokens.offsets[1:-1])
        columns = []
        for width in (1, 2):
            bags = [shingle_set(one, width, counted=True) for one in documents]
            columns.append([resemblance(bags[a], bags[b]) for a, b in self.pairs.tolist()])
        return np.array(columns).T

    def estimated(self, split: tuple[int, int], seed: int) -> Floats:
        """Return the estimates of both by a signature: (P, 2); 0 where it has no values."""
        found = np.zeros((len(self.pairs), 2))
        for column, kept in enumerate(_values(self.tokens, split, seed)):
            if kept.shape[1]:
                same = kept[self.pairs[:, 0]] == kept[self.pairs[:, 1]]
                found[:, column] = corrected(same.mean(axis=1), 2)
        return found

    def curve(self, scores: Floats, rows: Int64s) -> Floats:
        """Return F1 in a set by threshold."""
        lengths = np.diff(self.tokens.offsets) - 1
        a, b = self.pairs[rows].T
        near = length_ratio(lengths[a], lengths[b]) >= make_scheme().decision.min_length_ratio
        reached = np.searchsorted(_THRESHOLDS, np.where(near, scores[rows], 0.0), "right")
        duplicates = self.duplicates[rows]
        folds, right = _from(reached), _from(reached[duplicates])
        return 2 * right / (folds + duplicates.sum())


def _from(reached: Int64s) -> Int64s:
    """Return how many pairs reach each threshold."""
    return np.bincount(reached, minlength=len(_THRESHOLDS) + 1)[::-1].cumsum()[::-1][1:]


def _values(tokens: TokenBatch, split: tuple[int, int], seed: int) -> list[NDArray[np.uint32]]:
    made = []
    for width, count in zip((1, 2), split, strict=True):
        options = SketchOptions(
            values=count or 2, groups=1, group_size=1, min_shingles=1, seed=2 * seed + width
        )
        minima = Sketcher(options).sketch(tokens.hashes, tokens.offsets, width).minima
        made.append(low_bits(minima, options.bits)[:, :count])
    return made


def measure() -> list[Row]:
    """Return what exact values reach, and what signatures do, in the mean over sets and over seeds."""
    known = {**{name: _corpus(name) for name in names()}, "templates": _templates()}
    rows = [*_rows("exact values", known, [{name: one.exact() for name, one in known.items()}], (1, 1))]
    for split in SPLITS:
        drawn = [
            {name: one.estimated(split, seed) for name, one in known.items()} for seed in range(1, _SEEDS + 1)
        ]
        rows += _rows(f"{split[0]} values of single words, {split[1]} of pairs", known, drawn, split)
    return [*rows, *(row for name in names() for row in _unrelated(name))]


def _corpus(name: str) -> Labelled:
    whole = corpus(name)
    pairs = np.array(sorted({*map(tuple, candidates(whole).tolist()), *whole.truth}), np.int64)
    similar = np.array([whole.truth.get((a, b), 0.0) for a, b in pairs.tolist()])
    releases = [one.split("/")[1] for one in whole.ids]
    order = sorted(set(releases), key=lambda one: [int(part) for part in one.split("-")[0].split(".")])
    number = np.array([order.index(one) for one in releases])
    apart = abs(number[pairs[:, 0]] - number[pairs[:, 1]])
    sets = {f"{name} {told}": np.flatnonzero(apart == far) for far, told in enumerate(_APART)}
    duplicates = similar >= POSITIVE
    kept = {told: rows for told, rows in sets.items() if duplicates[rows].sum() >= _FEWEST}
    return Labelled(_tokens(whole.texts), pairs, duplicates, kept)


def _templates() -> Labelled:
    made = templates.documents()
    pairs = [(a, b) for a, b in combinations(range(len(made)), 2) if made[a].template == made[b].template]
    numbers: dict[str, int] = {}
    words = [[numbers.setdefault(word, len(numbers)) for word in one.words] for one in made]
    duplicates = [similarity(words[a], words[b], POSITIVE) >= POSITIVE for a, b in pairs]
    tokens = _tokens([" ".join(one.words) for one in made])
    return Labelled(tokens, np.array(pairs), np.array(duplicates), {"templates": np.arange(len(pairs))})


def _tokens(texts: Sequence[str]) -> TokenBatch:
    return fingerprinter().canonicalizer.hash_batch(texts)


def _rows(
    name: str, known: Mapping[str, Labelled], drawn: Sequence[Mapping[str, Floats]], split: tuple[int, int]
) -> Iterator[Row]:
    """Yield the scores of single words, of pairs and of both, as far as there are values of them."""
    ways = {"single words": [1.0], "pairs": [0.0], "both": _WEIGHTS.tolist()}
    possible = list(ways) if split == (1, 1) else [("single words", "pairs", "both")[_way(split)]]
    for way in possible:
        found = [_held_out(known, one, ways[way]) for one in drawn]
        means = {told: float(np.mean([one[told] for one in found])) for told in found[0]}
        alone = means.pop("templates")
        spread = np.std([np.mean([one[told] for told in means]) for one in found])
        sets = ", ".join(f"{told} {value:.3f}" for told, value in means.items())
        note = f"± {spread:.4f} over {len(drawn)} draws; templates {alone:.3f}; {sets}"
        yield Row(f"{name}: {way}", float(np.mean(list(means.values()))), "F1", note)


def _way(split: tuple[int, int]) -> int:
    return 2 if all(split) else int(split[1] > 0)


def _held_out(
    known: Mapping[str, Labelled], found: Mapping[str, Floats], weights: Sequence[float]
) -> dict[str, float]:
    """Return F1 in each set by the rule that is best on those of the other corpora; none learns templates."""
    curves = {
        (name, told): np.array([one.curve(found[name] @ (weight, 1 - weight), rows) for weight in weights])
        for name, one in known.items()
        for told, rows in one.sets.items()
    }
    scores = {}
    for (name, told), curve in curves.items():
        others = [one for (other, _), one in curves.items() if other not in {name, "templates"}]
        mean = np.mean(others, axis=0)
        scores[told] = float(curve[np.unravel_index(mean.argmax(), mean.shape)])
    return scores


def _unrelated(name: str) -> Iterator[Row]:
    scheme = make_scheme().with_options(min_resemblance=_EVEN)
    texts = templates.drawn(corpus(name))
    prints = fingerprinter(scheme).fingerprint_arrays(texts)
    even = np.hstack(_values(_tokens(texts), (168, 168), 1))
    folded, highest = templates.by_signature(replace(prints, signatures=pack(even, 2)), scheme)
    note = f"the highest estimate is {highest:.2f}, {_EVEN} is needed"
    yield Row(f"{name}: unrelated texts by 168 and 168 values", folded, "pairs", note)
