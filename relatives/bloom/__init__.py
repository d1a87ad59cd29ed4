"""Bloom filters: compact sets of shingles with false positives, but without false negatives."""

from shinglefold.relatives.bloom.matrix import BitSlicedRows, MatrixFilter, Shape, pseudo_matrix_rows
from shinglefold.relatives.bloom.pseudo_matrix import PseudoMatrixFilter
from shinglefold.relatives.bloom.set_filters import ClassicFilter, CountingFilter

__all__ = [
    "BitSlicedRows",
    "ClassicFilter",
    "CountingFilter",
    "MatrixFilter",
    "PseudoMatrixFilter",
    "Shape",
    "pseudo_matrix_rows",
]
