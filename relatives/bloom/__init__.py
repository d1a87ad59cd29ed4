"""Bloom filters: compact sets of shingles with false positives, but without false negatives."""

from shinglefold.relatives.bloom.filters import (
    BitSlicedRows,
    ClassicFilter,
    CountingFilter,
    MatrixFilter,
    Shape,
    pseudo_matrix_rows,
)
from shinglefold.relatives.bloom.pseudo_matrix import PseudoMatrixFilter

__all__ = [
    "BitSlicedRows",
    "ClassicFilter",
    "CountingFilter",
    "MatrixFilter",
    "PseudoMatrixFilter",
    "Shape",
    "pseudo_matrix_rows",
]
