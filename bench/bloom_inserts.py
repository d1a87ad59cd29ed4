"""The insertion experiment: which of 500 documents took 5 to 50 % of their text from one of 50 sources?"""

from collections.abc import Iterator

import numpy as np

from bench.generated import Vocabulary, hashes_of
from bench.pictures import keep, scatter
from bench.table import Row
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.relatives.bloom import MatrixFilter, Shape
from shinglefold.sketch import shingle_set

DOCUMENTS, SOURCES, LENGTH, WIDTH = 500, 50, 4_000, 5
#: Shares of a document that come from its source: ten a source.
SHARES = tuple(percent / 100 for percent in range(5, 51, 5))
_RATE = 0.05


def sources(vocabulary: Vocabulary) -> list[Int64s]:
    """Return the sources, as numbers of words."""
    return [vocabulary.drawn(LENGTH, 10_000 + number) for number in range(SOURCES)]


def documents(vocabulary: Vocabulary, origins: list[Int64s]) -> list[tuple[int, float, Int64s]]:
    """Return each document with its source and the share it took from it, in one passage somewhere."""
    chance = np.random.default_rng(7)
    made = []
    for number in range(DOCUMENTS):
        source, share = number % SOURCES, SHARES[number // SOURCES]
        taken = int(LENGTH * share)
        begin, place = chance.integers(0, LENGTH - taken + 1), chance.integers(0, LENGTH - taken + 1)
        own = vocabulary.drawn(LENGTH - taken, number)
        passage = origins[source][begin : begin + taken]
        made.append((source, share, np.concatenate((own[:place], passage, own[place:]))))
    return made


def inserted() -> Iterator[Row]:
    """Yield how far the documents that copied a source stand above those that did not."""
    vocabulary = Vocabulary.of(50_000)
    origins = sources(vocabulary)
    made = documents(vocabulary, origins)
    rows = MatrixFilter(Shape.of(LENGTH, _RATE))
    for number, (_, _, words) in enumerate(made):
        rows.insert(str(number), _shingles(words))
    found = np.array([_found(rows, _shingles(origin)) for origin in origins])
    copied = np.zeros(found.shape, bool)
    copied[[source for source, _, _ in made], np.arange(DOCUMENTS)] = True
    least = np.where(copied, found, 1.0).min(axis=1)
    highest = np.where(copied, 0.0, found).max(axis=1)
    apart = int((least > highest).sum())
    note = f"each of their ten inserts above all {DOCUMENTS - len(SHARES)} other documents"
    yield Row("inserts: sources that stand out", apart, f"of {SOURCES}", note)
    note = f"share of a source found in a document that did not copy it; at most {found[~copied].max():.1%}"
    yield Row("inserts: background", found[~copied].mean(), "share", note)
    smallest = copied & (np.array([share for _, share, _ in made]) == SHARES[0])
    note = f"{int((smallest.any(axis=0)).sum())} documents with inserts of 5 %; the least"
    yield Row("inserts: 5 % of a document", found[smallest].min(), "share", note)
    _draw(found, copied)


def _shingles(words: Int64s) -> Uint64s:
    return shingle_set(hashes_of(words), WIDTH)


def _found(rows: MatrixFilter, shingles: Uint64s) -> list[float]:
    counts = rows.counts(shingles)
    return [counts[str(number)] / len(shingles) for number in range(DOCUMENTS)]


def _draw(found: np.ndarray, copied: np.ndarray) -> None:
    """Draw the documents side by side, those of one source in the order of their shares."""
    order = np.arange(DOCUMENTS).reshape(len(SHARES), SOURCES).T.ravel()
    at = {int(document): place for place, document in enumerate(order)}
    background = [
        (at[document], float(np.where(copied[:, document], 0.0, found[:, document]).max()))
        for document in range(DOCUMENTS)
    ]
    inserts = [
        (at[int(document)], float(found[source, document])) for source, document in np.argwhere(copied)
    ]
    title = "50 sources with ten inserts each, of 5 to 50 % of a document"
    axes = ("document, ten a source", "share of the source found")
    groups = [("highest stranger", background), ("its source", inserts)]
    keep("inserts", scatter(title, axes, groups, DOCUMENTS, 0.6))
