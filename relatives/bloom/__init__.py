"""Bloom filters: sets of shingles in a few bits each, which never deny what they hold."""

from shinglefold.relatives.bloom.bit_sliced_rows import Lanes
from shinglefold.relatives.bloom.matrix import MatrixFilter
from shinglefold.relatives.bloom.pseudo_matrix import PseudoMatrixFilter
from shinglefold.relatives.bloom.set_filters import ClassicFilter, CountingFilter
from shinglefold.relatives.bloom.sizing import Shape, matrix_rows, pseudo_matrix_rows

__all__ = [
    "ClassicFilter",
    "CountingFilter",
    "Lanes",
    "MatrixFilter",
    "PseudoMatrixFilter",
    "Shape",
    "matrix_rows",
    "pseudo_matrix_rows",
]
