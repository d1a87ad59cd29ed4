"""The placement experiment: documents kept whole in one row, or split over two?"""

from collections.abc import Callable, Iterator

import numpy as np

from bench.generated import Vocabulary, hashes_of
from bench.table import Row
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.relatives.bloom import PseudoMatrixFilter, Shape
from shinglefold.sketch import shingle_hashes

#: A tenth of the literature's scale: documents, words of each at least and at most, elements a row.
_DOCUMENTS, _SHORTEST, _LONGEST, _ELEMENTS = 1_443, 1_000, 6_600, 12_300
_QUERIES, _WORDS, _WIDTH = 1_000, 3_800, 5
#: Shares of a query that were copied from one document, and passages they are spread over.
_COPIED, _PASSAGES = (0.01, 0.2), 10
#: Standard errors of a full row's chance hits that a row's share must exceed.
_ERRORS = 2.75

Query = tuple[int, Uint64s]
#: The rows of each document, int64 (documents, rows a document).
Rows = Int64s


def placed() -> Iterator[Row]:
    """Yield false positives and negatives of both placements, on the same texts at the same threshold."""
    vocabulary = Vocabulary.of(50_000)
    texts = _texts(vocabulary)
    queries = [_query(vocabulary, texts, number) for number in range(_QUERIES)]
    whole, rows = _filled([[text] for text in texts])
    yield from _judged("documents whole", whole, rows, queries, np.all)
    halves, rows = _filled([np.array_split(text, 2) for text in texts])
    yield from _judged("documents split, both rows", halves, rows, queries, np.all)
    yield from _judged("documents split, either row", halves, rows, queries, np.any)


def _filled(texts: list[list[Int64s]]) -> tuple[PseudoMatrixFilter, Rows]:
    """Return a filter of documents in parts, and their rows; who shares one row shares no other."""
    filled = PseudoMatrixFilter(Shape.of(_ELEMENTS, 0.05))
    parts = range(len(texts[0]))
    for part in parts:
        for number in np.random.default_rng(part).permutation(len(texts)).tolist():
            filled.insert(f"{number}/{part}", _shingles(texts[number][part]))
    rows = [[filled.pieces(f"{number}/{part}")[0].row for part in parts] for number in range(len(texts))]
    return filled, np.array(rows)


def _texts(vocabulary: Vocabulary) -> list[Int64s]:
    lengths = np.random.default_rng(1).integers(_SHORTEST, _LONGEST + 1, _DOCUMENTS).tolist()
    return [vocabulary.drawn(length, 50_000 + number) for number, length in enumerate(lengths)]


def _query(vocabulary: Vocabulary, texts: list[Int64s], number: int) -> Query:
    """Return a document, and the shingles of a new text with passages of it, spread over it evenly."""
    chance = np.random.default_rng(900_000 + number)
    source = int(chance.integers(len(texts)))
    length = min(int(_WORDS * chance.uniform(*_COPIED)), len(texts[source])) // _PASSAGES
    passages = [part[:length] for part in np.array_split(texts[source], _PASSAGES)]
    own = np.array_split(vocabulary.drawn(_WORDS - length * _PASSAGES, 700_000 + number), _PASSAGES)
    mixed = [part for pair in zip(own, passages, strict=True) for part in pair]
    return source, _shingles(np.concatenate(mixed))


def _judged(
    name: str, filled: PseudoMatrixFilter, rows: Rows, queries: list[Query], rule: Callable[..., np.ndarray]
) -> Iterator[Row]:
    threshold = _ERRORS * np.sqrt(0.05 * 0.95 / _WORDS)
    missed = strangers = neighbours = 0
    for source, shingles in queries:
        answered = rule(filled.row_shares(shingles)[rows] > threshold, axis=1)
        missed += not answered[source]
        beside = np.isin(rows, rows[source]).any(axis=1)
        beside[source] = False
        neighbours += int((answered & beside).sum())
        answered[source] = False
        strangers += int((answered & ~beside).sum())
    pairs = len(queries) * (len(rows) - 1)
    note = f"{filled.rows} rows; a row's share above {threshold:.2%}; {missed} of {len(queries)} missed"
    yield Row(f"placement: {name}, false negatives", missed / len(queries) * 100, "%", note)
    note = f"of {pairs:,} pairs; {neighbours / pairs:.3%} of them share a row with what was copied"
    yield Row(f"placement: {name}, false positives", (strangers + neighbours) / pairs * 100, "%", note)


def _shingles(words: Int64s) -> Uint64s:
    return shingle_hashes(hashes_of(words), _WIDTH)
