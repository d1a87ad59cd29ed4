"""Bloom filters: sets of shingles in a few bits each, which never deny what they hold."""

from shinglefold.bloom.classic import ClassicFilter
from shinglefold.bloom.counting import CountingFilter
from shinglefold.bloom.lanes import Lanes
from shinglefold.bloom.matrix import MatrixFilter
from shinglefold.bloom.pseudo_matrix import PseudoMatrixFilter
from shinglefold.bloom.shape import Shape, matrix_rows, pseudo_matrix_rows

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
