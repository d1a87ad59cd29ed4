"""What folds of labelled corpora and of edited texts, by us and by peers; ``python -m bench quality``."""

from collections.abc import Iterator

import numpy as np

from bench.quality import edits, pages, short, templates
from bench.quality.corpus import MANY, Corpus, candidates, corpus, names, run
from bench.quality.peers import all_of
from bench.quality.scores import BANDS, Scores, pair_f1, scores
from bench.table import Row
from shinglefold.canon import Canonicalizer
from shinglefold.registry import make_scheme
from shinglefold.testing.edits.spelling import EditedPassage


def measure() -> list[Row]:
    """Return the scores of ours on each corpus, those of the peers on a sample, and the edits that fold."""
    rows = [row for name in names() for row in _corpus(corpus(name))]
    more = (part(corpus(name)) for name in names() for part in (pages.measure, templates.measure_unrelated))
    alone = (part.measure() for part in (short, templates, edits))
    return [*rows, *(row for part in (*more, *alone) for row in part)]


def _corpus(whole: Corpus) -> Iterator[Row]:
    for verify in ("text", "signature", "keywords"):
        made = run(whole, verify)
        found = scores(whole, made.folded)
        cost = f"{made.printing:.0f} + {made.pairing:.0f} µs a document"
        yield Row(
            f"{whole.name}: shinglefold by {verify}", found.f1, "F1", f"{_describe_scores(found)}; {cost}"
        )
    sample = whole.sample(6 if len(whole) > MANY else 1)
    for verify in ("text", "signature"):
        made = run(sample, verify)
        note = f"{made.printing + made.pairing:.0f} µs, 84 bytes a document"
        yield Row(f"{sample.name}: shinglefold by {verify}", pair_f1(sample, made.folded), "F1", note)
    batch = Canonicalizer.as_written(make_scheme()).hash_batch(sample.texts)
    hashes = np.split(batch.hashes, batch.offsets[1:-1])
    words = [[word.lower() for word in EditedPassage.of(text).words] for text in sample.texts]
    for peer in all_of(sample, words, hashes, candidates(sample)):
        note = f"{peer.setting}; {peer.micros:,.0f} µs, {peer.size:,} bytes a document"
        yield Row(f"{sample.name}: {peer.name}", pair_f1(sample, peer.folded), "F1", note)


def _describe_scores(found: Scores) -> str:
    bands = ", ".join(
        f"{share:.3f} of {low}" + ("+" if high > 1 else f"–{high}")
        for (low, high), share in zip(BANDS, found.bands, strict=True)
    )
    return (
        f"P {found.precision:.4f}, R {found.recall:.4f}; folded {bands}; "
        f"ARI {found.rand:.3f}, B³ {found.b_cubed:.3f}"
    )
