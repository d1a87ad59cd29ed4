"""Groups by leaders out of a file of pairs: those of one part of the documents after the other."""

from collections.abc import Callable

import numpy as np

from shinglefold.ingest.linking.column import Column
from shinglefold.ingest.linking.equal import Copies
from shinglefold.ingest.linking.shelf import Shelf
from shinglefold.ingest.linking.sorting import Order, Rows, in_order
from shinglefold.ingest.linking.stages import Labels
from shinglefold.model import Int64s
from shinglefold.sketch import led


def leader_labels(
    shelf: Shelf, pairs: Column, copies: Copies, memory: int, check: Callable[[], None]
) -> Labels:
    """Return the leader of each document, int32 (D,).

    Args:
        pairs: of documents that are no copies of others, to the sketch; a copy goes where its first one went.
    """
    leader = np.arange(len(copies.first), dtype=np.int64)
    first, second = _NONE, _NONE
    for rows in in_order(shelf, pairs, _by_second, memory, check):
        first = np.concatenate((first, rows["a"].astype(np.int64)))
        second = np.concatenate((second, rows["b"].astype(np.int64)))
        # The pairs of the last document may go on in the next rows.
        whole = int(np.searchsorted(second, second[-1], "left"))
        led(first[:whole], second[:whole], len(leader), leader)
        first, second = first[whole:], second[whole:]
    led(first, second, len(leader), leader)
    copied = np.flatnonzero(copies.twin)
    leader[copied] = leader[copies.first[copied]]
    return leader.astype(np.int32)


_NONE: Int64s = np.zeros(0, np.int64)


def _by_second(rows: Rows) -> Order:
    none = np.zeros(len(rows), np.int64)
    return Order(none, rows["b"].astype(np.int64), rows["a"].astype(np.int64))
