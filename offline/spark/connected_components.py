"""Connected components of a graph that no machine holds: large stars and small stars in turn."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shinglefold.errors import ConfigError
from shinglefold.model.values import Int64s
from shinglefold.offline.spark.arrow_arrays import numbers
from shinglefold.offline.spark.session import Batch, Frame, totals
from shinglefold.offline.spark.stage_store import StageStore

_SCHEMA = "a long, b long, moved long"
#: Rounds after which something must be wrong: a path of 2⁶⁴ documents would take fewer.
_MOST = 100


def connected(
    edges: Frame, work: StageStore, told: Callable[[int, int], None] = lambda _round, _moved: None
) -> Frame:
    """Return the components of a graph as (number, root): the root is the least number that is connected.

    A large star has each neighbour of a node that is greater point to the least one known to the node; a
    small star does so with the lesser neighbours and the node itself. In turn they leave a star a component.

    Args:
        edges: (a, b), numbers of documents; in any order, and as often as they come.
        work: where each round is kept.
        told: is told the number of each round and the edges that it moved.

    Cost: a round is two shuffles of at most two rows an edge; the rounds grow with the logarithm of the
    longest path in all that was tried.

    Source: Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii 2014, "Connected Components in MapReduce and
    Beyond", the alternating algorithm; GraphFrames does the same by groups and joins. Here rows are sorted
    and walked through, so that a node with all the neighbours there are needs no memory.
    """
    edges = work.keep(edges.where("a != b").selectExpr("greatest(a, b) AS a", "least(a, b) AS b"), "edges-0")
    for number in range(1, _MOST + 1):
        both = edges.selectExpr("a", "b").union(edges.selectExpr("b AS a", "a AS b"))
        large = _starred(both.selectExpr("a", "b", "0L AS moved"), "large")
        edges = work.keep(_starred(large, "small"), f"edges-{number % 2}")
        moved = totals(edges, moved="sum(moved)")["moved"]
        told(number, moved)
        if not moved:
            roots = edges.selectExpr("b AS number", "b AS root").distinct()
            return edges.selectExpr("a AS number", "b AS root").union(roots)
    raise ConfigError(f"groups were not settled after {_MOST} rounds: please report this, with the scheme")


def _starred(edges: Frame, kind: Literal["large", "small"]) -> Frame:
    ordered = edges.repartition("a").sortWithinPartitions("a", "b")
    return ordered.mapInArrow(_Star(kind == "large"), _SCHEMA)


@dataclass(frozen=True, slots=True)
class _Star:
    """Links the neighbours of nodes to the least of them, from edges (a, b) sorted by both.

    ``large``: only neighbours greater than the node, to the least of all of them and the node. Else all, as
    all are lesser; and the node. ``moved`` counts edges that were not so before; those of the star before
    are added to whichever row comes first.
    """

    large: bool

    def __call__(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        node, least, last = -1, -1, -1
        for batch in batches:
            a, b, moved = (numbers(batch.column(name)) for name in ("a", "b", "moved"))
            if not len(a):
                continue
            fresh = np.concatenate(([a[0] != node or b[0] != last], (a[1:] != a[:-1]) | (b[1:] != b[:-1])))
            # A row that carries a count is not dropped, though its like was there.
            fresh[0] |= moved.any()
            first = np.concatenate(([a[0] != node], a[1:] != a[:-1]))
            begins = np.flatnonzero(first)
            run = np.cumsum(first) - 1
            leasts = np.where(run >= 0, np.minimum(a, b)[begins][run] if len(begins) else least, least)
            node, least, last = int(a[-1]), int(leasts[-1]), int(b[-1])
            yield self._linked(a[fresh], b[fresh], leasts[fresh], first[fresh], int(moved.sum()))

    def _linked(self, a: Int64s, b: Int64s, leasts: Int64s, first: NDArray[np.bool_], before: int) -> Batch:
        if self.large:
            greater = b > a
            return _batch(b[greater], leasts[greater], (leasts != a)[greater], before)
        # The least neighbour has the node itself linked to it.
        linked = np.where(first | (b == leasts), a, b)
        return _batch(linked, leasts, linked != a, before)


def _batch(a: Int64s, b: Int64s, moved: NDArray[np.bool_], before: int) -> Batch:
    counts = moved.astype(np.int64)
    counts[:1] += before
    return pa.RecordBatch.from_arrays([pa.array(a), pa.array(b), pa.array(counts)], ["a", "b", "moved"])
