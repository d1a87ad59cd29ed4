"""Columns of names and digests: what a million documents are called, without an object for each."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shinglefold.ingest.maintenance.stored import Key
from shinglefold.model import Int64s


@dataclass(slots=True)
class Keys:
    """What names documents: ids, and by code the index and the routing that many have in common."""

    _ids: list[str] = field(default_factory=list)
    _places: dict[tuple[str, str | None], int] = field(default_factory=dict)
    _codes: "array[int]" = field(default_factory=lambda: array("i"))

    def append(self, key: Key) -> None:
        """Add the name of a document."""
        self._ids.append(key.id)
        self._codes.append(self._places.setdefault((key.index, key.routing), len(self._places)))

    def __len__(self) -> int:
        return len(self._ids)

    def several(self, places: Sequence[int]) -> list[Key]:
        """Return the names of the documents at some places."""
        known = list(self._places)
        found = []
        for place in places:
            index, routing = known[self._codes[place]]
            found.append(Key(index, self._ids[place], routing))
        return found

    def __getitem__(self, place: int) -> Key:
        (key,) = self.several([place])
        return key

    def by_id(self) -> Int64s:
        """Return all places by id, of equal ones by index and routing: int64 (D,)."""
        named = sorted(self._places, key=lambda one: (one[0], one[1] or ""))
        rank = np.empty(len(named), np.int64)
        rank[[self._places[one] for one in named]] = np.arange(len(named))
        codes = np.frombuffer(self._codes, np.int32) if self._codes else np.zeros(0, np.int32)
        places = np.argsort(rank[codes], kind="stable").tolist()
        places.sort(key=self._ids.__getitem__)
        return np.array(places, np.int64)


@dataclass(slots=True)
class Digests:
    """The digests of documents, one after the other; where one has none, nothing."""

    _told: bytearray = field(default_factory=bytearray)
    _lengths: "array[int]" = field(default_factory=lambda: array("i"))

    def append(self, digest: str) -> None:
        """Add that of a document, empty for none."""
        made = digest.encode("utf-8", "surrogatepass")
        self._told += made
        self._lengths.append(len(made))

    def coded(self) -> tuple[Int64s, NDArray[np.bytes_]]:
        """Return a code a document, −1 for none, and the distinct digests by code: int64 (D,), bytes (T,)."""
        lengths = np.frombuffer(self._lengths, np.int32) if self._lengths else np.zeros(0, np.int32)
        there = np.flatnonzero(lengths)
        codes = np.full(len(lengths), -1, np.int64)
        if not len(there):
            return codes, np.zeros(0, "S1")
        width = int(lengths.max())
        if bool((lengths[there] == width).all()):
            told = np.frombuffer(self._told, f"S{width}")
        else:
            ends = np.cumsum(lengths)[there].tolist()
            begins = (np.cumsum(lengths) - lengths)[there].tolist()
            told = np.array([bytes(self._told[a:b]) for a, b in zip(begins, ends, strict=True)], f"S{width}")
        distinct, codes[there] = np.unique(told, return_inverse=True)
        return codes, distinct
