"""What a text and a document have in common: passages, and the share of each that is found in the other."""

from dataclasses import dataclass

import numpy as np

from shinglefold.model.values import Int64s
from shinglefold.passages.alignment import Passage, passages_between, passages_of
from shinglefold.passages.chaining import GAP
from shinglefold.passages.shingle_positions import Elements


@dataclass(frozen=True, slots=True)
class PassageCoverage:
    """What a text and a document have in common.

    ``share``: of the text's tokens that are in matched elements; ``of_document``: of the document's.
    ``passages``: in the order of the text.
    """

    document: str
    share: float
    of_document: float
    passages: tuple[Passage, ...]


def matched(name: str, a: Elements, b: Elements, pairs: Int64s) -> PassageCoverage:
    """Return what pairs of elements say of a text and a document.

    Args:
        pairs: int64 (P, 2), ordinals in the text and in the document.
    """
    return PassageCoverage(
        name, covered(pairs[:, 0], a), covered(pairs[:, 1], b), tuple(passages_of(pairs, a, b))
    )


def compared(name: str, a: Elements, b: Elements, gap: int = GAP) -> PassageCoverage:
    """Return what a text and a document have in common, in time that grows with their lengths alone."""
    return PassageCoverage(name, *shares(a, b), tuple(passages_between(a, b, gap=gap).passages))


def shares(a: Elements, b: Elements) -> tuple[float, float]:
    """Return the share of each of two texts that is in elements the other has, too."""
    return (
        covered(np.flatnonzero(np.isin(a.hashes, b.hashes)), a),
        covered(np.flatnonzero(np.isin(b.hashes, a.hashes)), b),
    )


def covered(ordinals: Int64s, of: Elements) -> float:
    """Return the share of a text's tokens that are in any of these elements."""
    if not of.tokens:
        return 0.0
    held = np.zeros(of.tokens, np.bool_)
    for place in range(of.width):
        held[ordinals + place] = True
    return float(held.mean())
