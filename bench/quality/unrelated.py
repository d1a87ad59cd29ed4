"""How many pairs of unrelated texts fold: texts of words drawn as often as those of a corpus are."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from bench.quality.corpus import Corpus
from bench.quality.ours import fingerprinter, pairs
from bench.table import Row
from shinglefold.ingest.fingerprinter import FingerprintArrays
from shinglefold.model.scheme import Scheme
from shinglefold.registry import make_scheme
from shinglefold.sketch import bit_planes, differing, length_ratio
from shinglefold.sketch.b_bit_minhash import corrected
from shinglefold.testing.edits.spelling import EditedPassage

#: Texts of a corpus' words; their pairs are 7.2·10⁷.
_TEXTS = 12_000
_LEAST, _MOST = 40, 300
_ROWS = 256


def measure(whole: Corpus) -> Iterator[Row]:
    """Compare all pairs by signature, and find pairs as ``groups --pairs`` does, by text."""
    scheme = make_scheme()
    prints = fingerprinter(scheme).fingerprint_arrays(_drawn(whole))
    count = _TEXTS * (_TEXTS - 1) // 2
    folded, highest = _by_signature(prints, scheme)
    note = f"{folded} of {count:,} pairs; the highest estimate is {highest:.2f}"
    yield Row(f"{whole.name}: unrelated texts, by signature", folded / count, "fold", note)
    found = len(pairs(prints, scheme))
    yield Row(f"{whole.name}: unrelated texts, by text", found / count, "fold", f"{found} of {count:,} pairs")


def _drawn(whole: Corpus) -> list[str]:
    """Return texts of 40 to 300 words; Chinese characters count as words."""
    counts = Counter(word for text in whole.texts for word in EditedPassage.of(text).words)
    words, weights = list(counts), np.fromiter(counts.values(), np.float64, len(counts))
    chance = np.random.default_rng(84)
    lengths = chance.integers(_LEAST, _MOST + 1, _TEXTS)
    drawn = chance.choice(len(words), int(lengths.sum()), p=weights / weights.sum()).tolist()
    ends = np.cumsum(lengths).tolist()
    starts = [0, *ends[:-1]]
    gap = "" if whole.languages[0].startswith("zh") else " "
    return [gap.join(words[at] for at in drawn[a:b]) for a, b in zip(starts, ends, strict=True)]


def _by_signature(prints: FingerprintArrays, scheme: Scheme) -> tuple[int, float]:
    """Return how many of all pairs fold, and the highest estimate of pairs near enough in length."""
    sketch, decision = scheme.sketch, scheme.decision
    planes = bit_planes(prints.signatures, sketch.bits)
    folded, fewest = 0, sketch.values
    for begin in range(0, len(prints), _ROWS):
        end = min(begin + _ROWS, len(prints))
        apart = differing(planes[:, :, begin:end], planes[:, :, begin:])
        alike = length_ratio(prints.shingles[begin:end, None], prints.shingles[None, begin:])
        later = np.arange(len(prints) - begin)[None, :] > np.arange(end - begin)[:, None]
        near = later & (alike >= decision.min_length_ratio)
        estimates = corrected(1 - apart / sketch.values, sketch.bits)
        folded += int(np.count_nonzero(near & (estimates >= decision.min_resemblance)))
        fewest = min(fewest, int(apart[near].min(initial=sketch.values)))
    return folded, float(corrected(1 - fewest / sketch.values, sketch.bits))
