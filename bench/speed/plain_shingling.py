"""Plain shingling, every shingle compared through an inverted index, beside supershingles: how the gap grows.

The literature has 150 million pages in three hours by supershingles, 30 million in ten days by shingles: 400
times as many an hour. Both sides begin with the same token hashes and are numpy alone.
"""

import numpy as np

from bench.clock import processor_time
from bench.speed.samples import samples
from bench.table import Row
from shinglefold.ingest import Fingerprinter
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.registry import make_scheme
from shinglefold.sketch import Sketcher, find_pairs

SIZES = (500, 2_000, 8_000)
#: What the literature has between its two rates.
_LITERATURE = 400
_LEAST, _REPLACED = 0.61, 0.02


def measure() -> list[Row]:
    """Return the processor time of both for collections of some sizes, a tenth of them copies."""
    rows, measured = [], []
    sample = next(iter(samples()))
    for size in SIZES:
        hashes, offsets = _collection(sample.texts, size)
        plain, ours = _Plain(hashes, offsets), _Ours(hashes, offsets)
        times = processor_time(plain), processor_time(ours)
        assert plain.found <= ours.found, "a pair that shingles find is missing"
        measured.append(times)
        note = f"{size:,} generated documents of 500 words, {len(plain.found)} pairs"
        rows += [
            Row("plain shingling: token hashes → pairs", times[0] / size * 1e6, "µs / document", note),
            Row("supershingles: token hashes → pairs", times[1] / size * 1e6, "µs / document", note),
            Row("plain shingling ÷ supershingles", times[0] / times[1], "times", note),
        ]
    each = [(plain / size, ours / size) for size, (plain, ours) in zip(SIZES, measured, strict=True)]
    slope, base = np.polyfit(SIZES, [plain for plain, _ in each], 1)
    enough = (_LITERATURE * each[-1][1] - base) / slope
    note = "plain shingling's cost a document grows with their number, by a straight line through the above"
    return [*rows, Row(f"documents from which on the factor is {_LITERATURE}", enough, "documents", note)]


def _collection(texts: tuple[str, ...], size: int) -> tuple[Uint64s, Int64s]:
    """Return token hashes of documents of words drawn anew; each tenth is an edited copy of the last."""
    batch = Fingerprinter(make_scheme()).canonicalizer.hash_batch(texts)
    chance = np.random.default_rng(84)
    words = batch.hashes[chance.integers(0, len(batch.hashes), (size, 500))]
    copies = np.arange(9, size, 10)
    words[copies] = words[copies - 1]
    changed = chance.random((len(copies), 500)) < _REPLACED
    words[copies] = np.where(changed, chance.choice(batch.hashes, changed.shape), words[copies])
    return words.ravel(), np.arange(size + 1) * 500


class _Plain:
    """Count the shingles in common of each document and all before it, by the lists of who has each."""

    def __init__(self, hashes: Uint64s, offsets: Int64s) -> None:
        self.hashes, self.offsets = hashes, offsets
        self.found: set[tuple[int, int]] = set()

    def __call__(self) -> None:
        documents = len(self.offsets) - 1
        sets = [self._shingles(document) for document in range(documents)]
        sizes = np.array(list(map(len, sets)))
        owners = np.repeat(np.arange(documents, dtype=np.int32), sizes)
        shingles = np.concatenate(sets)
        order = np.argsort(shingles, kind="stable")
        ranked, lists = shingles[order], owners[order]
        for document, own in enumerate(sets):
            begins, ends = np.searchsorted(ranked, own), np.searchsorted(ranked, own, "right")
            postings = np.concatenate(
                [lists[a:b] for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
            )
            common = np.bincount(postings, minlength=documents)[:document]
            alike = common / (sizes[document] + sizes[:document] - common)
            self.found.update((other, document) for other in np.flatnonzero(alike >= 0.8).tolist())

    def _shingles(self, document: int) -> Uint64s:
        from shinglefold.sketch import shingle_set

        return shingle_set(self.hashes[self.offsets[document] : self.offsets[document + 1]], 2, counted=True)


class _Ours:
    """Sketch, and decide by signature the pairs that supershingles nominate."""

    def __init__(self, hashes: Uint64s, offsets: Int64s) -> None:
        self.hashes, self.offsets = hashes, offsets
        self.found: set[tuple[int, int]] = set()

    def __call__(self) -> None:
        scheme = make_scheme()
        sketcher = Sketcher(scheme.sketch)
        made = sketcher.sketch(self.hashes, self.offsets)
        pairs = find_pairs(
            sketcher.supershingles(made, every=True),
            sketcher.signatures(made),
            made.shingles,
            sketcher.digests(self.hashes, self.offsets),
            scheme.sketch,
            scheme.decision,
            made.valid,
            None,
        )
        self.found = set(zip(pairs.a.tolist(), pairs.b.tolist(), strict=True))
