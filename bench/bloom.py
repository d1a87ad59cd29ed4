"""Bloom filters: the literature's table and its two experiments."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.bloom_inserts import inserted
from bench.bloom_placement import placed
from bench.clock import best, once
from bench.table import Row
from shinglefold.model.values import Uint64s
from shinglefold.relatives.bloom import PseudoMatrixFilter, Shape, pseudo_matrix_rows

#: The literature's table 1: false positives, elements a row, documents, words a document, rows it gives.
_RATE, _ELEMENTS, _DOCUMENTS, _WORDS, _ROWS = 0.05, 123_000, 14_428, 38_000, 4_489
_SCALE = 10


def measure() -> list[Row]:
    """Return table 1 as computed and in memory, and both experiments."""
    return [*_computed(), *_in_memory(), *inserted(), *placed()]


def _computed() -> Iterator[Row]:
    shape = Shape.of(_ELEMENTS, _RATE)
    yield Row("table 1: m", shape.bits, "bits", f"{shape.bits:,}; literature 766,933; k = {shape.hashes}")
    yield _size("the literature's rows", _ROWS, shape, f"its {_ROWS:,} rows for {_DOCUMENTS:,} documents")
    split = pseudo_matrix_rows([_WORDS] * _DOCUMENTS, _ELEMENTS)
    yield _size("documents split", split, shape, f"⌈{_DOCUMENTS:,} · {_WORDS:,} / {_ELEMENTS:,}⌉ rows")
    whole = -(-_DOCUMENTS // (_ELEMENTS // _WORDS))
    yield _size("documents whole", whole, shape, f"{_ELEMENTS // _WORDS} documents a row")
    yield _size("the matrix filter", _DOCUMENTS, shape, "a row a document")


def _size(name: str, rows: int, shape: Shape, note: str) -> Row:
    size = rows * shape.bits / 8
    ratio = f"1 : {_DOCUMENTS / rows:.2f} against the matrix filter"
    return Row(
        f"table 1: {name}", rows, "rows", f"{note}; {size / 1e6:,.0f} MB ({size / 2**20:,.0f} MiB); {ratio}"
    )


def _in_memory() -> Iterator[Row]:
    shape = Shape.of(_ELEMENTS // _SCALE, _RATE)
    for whole in (False, True):
        filled = PseudoMatrixFilter(shape, whole)
        seconds, _ = once(partial(_fill, filled))
        for document in range(0, _DOCUMENTS, 997):
            _assert_held(filled, document)
        how = "whole" if whole else "split"
        size = filled.bit_rows.nbytes / 1e6
        note = f"{size:,.1f} MB with empty rows; {seconds / _DOCUMENTS * 1e6:,.0f} µs to take a document in"
        yield Row(f"1/10 in memory: documents {how}", filled.rows, "rows", note)
    text = _elements(_DOCUMENTS)
    rate = (filled.counts(text) / len(text))[:: filled.rows // 50].mean()
    note = (
        f"{len(text):,} elements against {filled.rows:,} rows; strangers found in {rate:.1%} of a full row's"
    )
    yield Row(
        "1/10 in memory: comparing a text with all rows",
        best(lambda: filled.counts(text), 3) * 1e3,
        "ms",
        note,
    )


def _fill(filled: PseudoMatrixFilter) -> None:
    for document in range(_DOCUMENTS):
        filled.insert(str(document), _elements(document))


def _elements(document: int) -> Uint64s:
    return np.random.default_rng(document).integers(0, 2**64, _WORDS // _SCALE, np.uint64)


def _assert_held(filled: PseudoMatrixFilter, document: int) -> None:
    elements = _elements(document)
    for piece in filled.pieces(str(document)):
        if not filled.bit_rows.contains(piece.row, elements[piece.begin : piece.end]).all():
            raise AssertionError(f"the filter denies what document {document} holds")
