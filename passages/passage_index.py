"""An inverted index of the elements of a collection, and how much two texts have in common."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shinglefold.errors import ConfigError
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.passages.alignment import GAP, Passage, passages_between, passages_of
from shinglefold.passages.seeds import DISTANCE, expand_ranges
from shinglefold.passages.shingle_positions import Elements
from shinglefold.relatives.hamming_index import HammingIndex


@dataclass(frozen=True, slots=True)
class PassageCoverage:
    """What a text and a document have in common.

    ``share``: the share of the text's tokens that are in matched elements. ``of_document``: the share of the
    document's tokens. ``passages``: in the order of the text.
    """

    document: str
    share: float
    of_document: float
    passages: tuple[Passage, ...]


def coverage_of_pairs(name: str, a: Elements, b: Elements, pairs: Int64s) -> PassageCoverage:
    """Return what a text and a document have in common, by their pairs of equal elements.

    Args:
        pairs: int64 (P, 2), ordinals in the text and in the document.
    """
    return PassageCoverage(
        name, covered_share(pairs[:, 0], a), covered_share(pairs[:, 1], b), tuple(passages_of(pairs, a, b))
    )


def coverage_between(name: str, a: Elements, b: Elements, gap: int = GAP) -> PassageCoverage:
    """Return what a text and a document have in common. Cost: grows with their lengths only."""
    return PassageCoverage(name, *covered_shares(a, b), tuple(passages_between(a, b, gap=gap).passages))


def covered_shares(a: Elements, b: Elements) -> tuple[float, float]:
    """Return the share of each of two texts that is in elements of the other, too."""
    return (
        covered_share(np.flatnonzero(np.isin(a.hashes, b.hashes)), a),
        covered_share(np.flatnonzero(np.isin(b.hashes, a.hashes)), b),
    )


def covered_share(ordinals: Int64s, of: Elements) -> float:
    """Return the share of a text's tokens that are in any of these elements."""
    if not of.tokens:
        return 0.0
    is_covered = np.zeros(of.tokens, np.bool_)
    for place in range(of.width):
        is_covered[ordinals + place] = True
    return float(is_covered.mean())


class PassageIndex:
    """The elements of a collection, each with its documents and ordinals.

    Args:
        documents: by name; made with one width.
        tolerant: also find elements whose simhashes differ in at most three bits; all elements must have
            simhashes.

    Cost: 16 bytes for each element and each token; a tolerant index 72 bytes more for each element.
    """

    def __init__(self, documents: Sequence[tuple[str, Elements]], tolerant: bool = False) -> None:
        self._names = [name for name, _ in documents]
        self._elements = [elements for _, elements in documents]
        self._begins = np.cumsum([0, *map(len, self._elements)])
        hashes = _concatenated([elements.hashes for elements in self._elements])
        # Elements are numbered through the collection; ``_begins`` has the first number of each document.
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]
        near = _concatenated([elements.near for elements in self._elements])
        if tolerant and len(near) != len(hashes):
            raise ConfigError("a tolerant index needs elements made with tolerant=True")
        self._near = HammingIndex(near, DISTANCE) if tolerant else None

    def __len__(self) -> int:
        return len(self._names)

    def pairs(self, text: Elements) -> tuple[Int64s, Int64s, Int64s]:
        """Return the pairs of equal elements of the text and of documents.

        Returns:
            Three int64 (P,): documents, ordinals in the text, ordinals in the document, in ascending order.

        Cost: x log N, plus the pairs found.
        """
        text_ordinals, numbers = (
            self._equal(text.hashes) if self._near is None else self._near.within(text.near)
        )
        documents = np.searchsorted(self._begins, numbers, "right") - 1
        ordinals = numbers - self._begins[documents]
        order = np.lexsort((ordinals, text_ordinals, documents))
        return documents[order], text_ordinals[order], ordinals[order]

    def matches(self, text: Elements, least: float = 0.05) -> list[PassageCoverage]:
        """Return the documents that contain at least this share of the text, the largest share first."""
        documents, text_ordinals, ordinals = self.pairs(text)
        found = []
        for begin, end in _documents_with_enough(documents, text_ordinals, least * text.tokens / text.width):
            number = int(documents[begin])
            pairs = np.stack((text_ordinals[begin:end], ordinals[begin:end]), axis=1)
            found.append(coverage_of_pairs(self._names[number], text, self._elements[number], pairs))
        kept = [match for match in found if match.share >= least]
        return sorted(kept, key=lambda match: (-match.share, match.document))

    def between(self, text: Elements, name: str) -> Int64s:
        """Return the pairs of ordinals of the text and one document, int64 (P, 2).

        Raises:
            KeyError: there is no such document.
        """
        if name not in self._names:
            raise KeyError(name)
        documents, text_ordinals, ordinals = self.pairs(text)
        chosen = documents == self._names.index(name)
        return np.stack((text_ordinals[chosen], ordinals[chosen]), axis=1)

    def _equal(self, hashes: Uint64s) -> tuple[Int64s, Int64s]:
        first = np.searchsorted(self._hashes, hashes, "left")
        counts = np.searchsorted(self._hashes, hashes, "right") - first
        return np.repeat(np.arange(len(hashes)), counts), self._order[expand_ranges(first, counts)]


def _documents_with_enough(documents: Int64s, text_ordinals: Int64s, least: float) -> list[tuple[int, int]]:
    """Return begin and end of the pairs of each document that has at least this many elements of the text.

    An element has ``width`` tokens, so a share of the text takes at least ``share · tokens / width``
    elements.
    """
    new_document = np.diff(documents, prepend=-1) != 0
    distinct = np.cumsum(new_document | (np.diff(text_ordinals, prepend=-1) != 0))
    begins = np.flatnonzero(new_document)
    ends = np.append(begins[1:], len(documents))[: len(begins)]
    counts = distinct[ends - 1] - distinct[begins] + 1
    kept = counts >= least
    return list(zip(begins[kept].tolist(), ends[kept].tolist(), strict=True))


def _concatenated(parts: Sequence[Uint64s]) -> Uint64s:
    return np.concatenate([np.zeros(0, np.uint64), *parts])
