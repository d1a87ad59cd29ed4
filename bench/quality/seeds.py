"""How much of an order of ways to decide by sketches is chance: the same ones under other seeds.

A sketch draws its functions once. Where a corpus has a few hundred pairs, a handful of them changes sides
with the draw, so one draw of each way says little of which is better.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.quality.corpus import MANY, Corpus, corpus, names
from bench.quality.ours import candidates, fingerprinter, pairs
from bench.quality.peers import SWEEP
from bench.quality.scores import pair_f1
from bench.table import Row
from shinglefold.canon import Canonicalizer
from shinglefold.model.values import Uint64s
from shinglefold.registry import make_scheme
from shinglefold.sketch import shingle_set
from shinglefold.sketch.minhash import Affine32, minima

SEEDS = range(1, 9)
_WIDTH = 2


def measure() -> list[Row]:
    """Return F1 of ours, of 128 values of 32 bits and of 64 of 2 bits, over eight seeds on each corpus."""
    return [row for name in names() for row in _rows(corpus(name))]


def _rows(whole: Corpus) -> Iterator[Row]:
    sample = whole.sample(6 if len(whole) > MANY else 1)
    yield _row(sample, "shinglefold by signature, one threshold for all", list(map(_ours(sample), SEEDS)))
    batch = Canonicalizer.as_written(make_scheme()).hash_batch(sample.texts)
    sets = [shingle_set(one, _WIDTH) for one in np.split(batch.hashes, batch.offsets[1:-1])]
    nominated = candidates(sample)
    for name, values, bits in (("as Milvus, 128×32 bits", 128, 32), ("as Fess, 64×2 bits", 64, 2)):
        swept = np.array([_swept(sample, sets, nominated, seed, values, bits) for seed in SEEDS])
        yield _row(sample, f"{name}, the best threshold of each seed", swept.max(axis=1))
        fixed = int(swept.mean(axis=0).argmax())
        yield _row(sample, f"{name}, t={SWEEP[fixed]}, the best of all seeds here", swept[:, fixed])


def _ours(sample: Corpus) -> Callable[[int], float]:
    def scored(seed: int) -> float:
        scheme = make_scheme().with_options(verify="signature", seed=seed)
        return pair_f1(sample, pairs(fingerprinter(scheme).fingerprint_arrays(sample.texts), scheme))

    return scored


def _swept(  # noqa: PLR0917 - what a sketch is of
    sample: Corpus,
    sets: Sequence[Uint64s],
    nominated: NDArray[np.int64],
    seed: int,
    values: int,
    bits: int,
) -> list[float]:
    """Return F1 at each threshold."""
    filled = [one if len(one) else np.zeros(1, np.uint64) for one in sets]
    starts = np.cumsum([0, *map(len, filled)])[:-1].astype(np.int64)
    kept = minima(np.concatenate(filled), starts, Affine32.of(values, seed)) & np.uint32(2**bits - 1)
    share = (kept[nominated[:, 0]] == kept[nominated[:, 1]]).mean(axis=1)
    alike = (share - 2.0**-bits) / (1 - 2.0**-bits)
    return [pair_f1(sample, {(a, b) for a, b in nominated[alike >= least].tolist()}) for least in SWEEP]


def _row(sample: Corpus, name: str, scores: Sequence[float] | NDArray[np.float64]) -> Row:
    note = f"mean of {len(scores)} seeds, {min(scores):.3f} to {max(scores):.3f}"
    return Row(f"{sample.name}: {name}", float(np.mean(scores)), "F1", note)
