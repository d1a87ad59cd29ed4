"""The ids of a run, 8 bytes each, to tell which came before."""

from collections.abc import Sequence

import numpy as np
import xxhash

from shinglefold.model import Uint64s


class SeenIds:
    """Tells ids that came before.

    Of 10 million ids two different ones are taken for equal in one of 300,000 runs.

    Cost: sorted runs of hashes, merged when two are of one size, so each hash is merged some 20 times.
    """

    def __init__(self) -> None:
        self._runs: list[Uint64s] = []

    def add(self, ids: Sequence[str]) -> list[int]:
        """Note ids, and return the places of those that came before."""
        if not ids:
            return []
        hashes = np.array(
            [xxhash.xxh3_64_intdigest(one.encode("utf-8", "replace")) for one in ids], np.uint64
        )
        again = np.zeros(len(hashes), np.bool_)
        for run in self._runs:
            again |= run[np.searchsorted(run, hashes).clip(max=len(run) - 1)] == hashes
        fresh, first = np.unique(hashes, return_index=True)
        repeated = np.ones(len(hashes), np.bool_)
        repeated[first] = False
        self._note(fresh)
        return np.flatnonzero(again | repeated).tolist()

    def _note(self, run: Uint64s) -> None:
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.union1d(self._runs.pop(), run)
        self._runs.append(run)
