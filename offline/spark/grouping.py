"""Group signed documents on Spark: run the stages, store each one, and count."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shinglefold.errors import ConfigError, InputError, SchemeMismatch
from shinglefold.model.linkage import Linkage
from shinglefold.model.recipe import FIELD
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import Int64s
from shinglefold.offline.spark.candidate_pairs import (
    Bounds,
    candidates,
    crowd_counts,
    nominations,
    originals,
    verify_candidates,
)
from shinglefold.offline.spark.fingerprint_rows import FOREIGN, SIGNED, UNREADABLE, UNSIGNED, numbers, prints
from shinglefold.offline.spark.session import Batch, Frame, StageStore, totals
from shinglefold.options.validation import check_int

_SCHEMA = "a long, b long, moved long"
#: The most rounds; more would be a bug, because even a path of 2⁶⁴ documents takes fewer.
_MOST = 100


def connected_components(
    edges: Frame, work: StageStore, told: Callable[[int, int], None] = lambda _round, _moved: None
) -> Frame:
    """Return the components of a graph as (number, root); the root is the least number of a component.

    A large star links the greater neighbours of a node to its least neighbour, or to the node itself. A small
    star links the lesser neighbours, and the node, to the least. Alternating, they leave one star for each
    component.

    Args:
        edges: (a, b), numbers of documents; in any order, repeated or not.
        work: stores each round.
        told: called with the number of each round and how many edges it moved.

    Cost: a round is two shuffles of at most two rows an edge. In all trials the rounds grew with the
    logarithm of the longest path.

    Source: Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii 2014, "Connected Components in MapReduce and
    Beyond", the alternating algorithm. Rows are sorted and scanned here, so a node of any degree needs no
    memory.
    """
    edges = work.keep(edges.where("a != b").selectExpr("greatest(a, b) AS a", "least(a, b) AS b"), "edges-0")
    for number in range(1, _MOST + 1):
        both = edges.selectExpr("a", "b").union(edges.selectExpr("b AS a", "a AS b"))
        large = _star_edges(both.selectExpr("a", "b", "0L AS moved"), "large")
        edges = work.keep(_star_edges(large, "small"), f"edges-{number % 2}")
        moved = totals(edges, moved="sum(moved)")["moved"]
        told(number, moved)
        if not moved:
            roots = edges.selectExpr("b AS number", "b AS root").distinct()
            return edges.selectExpr("a AS number", "b AS root").union(roots)
    raise ConfigError(f"groups were not settled after {_MOST} rounds: please report this, with the scheme")


def _star_edges(edges: Frame, kind: Literal["large", "small"]) -> Frame:
    ordered = edges.repartition("a").sortWithinPartitions("a", "b")
    return ordered.mapInArrow(_Star(kind == "large"), _SCHEMA)


@dataclass(frozen=True, slots=True)
class _Star:
    """Links the neighbours of each node to the least of them; the edges (a, b) come sorted by a, then b.

    ``large``: link only neighbours greater than the node, to the least of neighbours and node. Otherwise all
    neighbours are less than the node: link them and the node. ``moved`` counts new edges; the first row adds
    the count of the step before.
    """

    large: bool

    def __call__(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        node, least, last = -1, -1, -1
        for batch in batches:
            a, b, moved = (numbers(batch.column(name)) for name in ("a", "b", "moved"))
            if not len(a):
                continue
            fresh = np.concatenate(([a[0] != node or b[0] != last], (a[1:] != a[:-1]) | (b[1:] != b[:-1])))
            # A row with a count is kept, even if it repeats the row before.
            fresh[0] |= moved.any()
            first = np.concatenate(([a[0] != node], a[1:] != a[:-1]))
            begins = np.flatnonzero(first)
            run = np.cumsum(first) - 1
            leasts = np.where(run >= 0, np.minimum(a, b)[begins][run] if len(begins) else least, least)
            node, least, last = int(a[-1]), int(leasts[-1]), int(b[-1])
            yield self._link_edges(a[fresh], b[fresh], leasts[fresh], first[fresh], int(moved.sum()))

    def _link_edges(
        self, a: Int64s, b: Int64s, leasts: Int64s, first: NDArray[np.bool_], before: int
    ) -> Batch:
        if self.large:
            greater = b > a
            return _batch(b[greater], leasts[greater], (leasts != a)[greater], before)
        # The least neighbour needs no link to itself: its row links the node.
        linked = np.where(first | (b == leasts), a, b)
        return _batch(linked, leasts, linked != a, before)


def _batch(a: Int64s, b: Int64s, moved: NDArray[np.bool_], before: int) -> Batch:
    counts = moved.astype(np.int64)
    counts[:1] += before
    return pa.RecordBatch.from_arrays([pa.array(a), pa.array(b), pa.array(counts)], ["a", "b", "moved"])


#: A function that receives a line of text for each stage.
Report = Callable[[str], None]
_STATES = {"signed": SIGNED, "unsigned": UNSIGNED, "unreadable": UNREADABLE, "foreign": FOREIGN}


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """Columns and limits of a grouping.

    ``target``: the column of fingerprints. ``id_field``: the column of ids; if empty, ``_id`` or else ``id``.
    ``bounds``: limits for crowded supershingles. ``min_size``: groups of fewer documents are left out; at
    least 2.
    """

    target: str = FIELD
    id_field: str = ""
    bounds: Bounds = field(default_factory=Bounds)
    min_size: int = 2

    def __post_init__(self) -> None:
        check_int("min_size", self.min_size, 2, 2**31 - 1)


@dataclass(slots=True)
class SparkSummary:
    """Counts of a grouping.

    ``read``: all documents. Each is ``signed``; ``unsigned``, too short or without a fingerprint;
    ``unreadable``, damaged or sealed; or ``foreign``, of another scheme. ``copies``: documents with the
    canonical text of an earlier one. ``nominated``, ``crowded``, ``held``, ``skipped``: see ``crowd_counts``.
    ``pairs``: verified pairs. ``rounds``: how many ``connected_components`` took. ``groups``, ``members``:
    the groups returned, and their documents. ``linkage``: how these were made.
    """

    read: int = 0
    signed: int = 0
    unsigned: int = 0
    unreadable: int = 0
    foreign: int = 0
    copies: int = 0
    nominated: int = 0
    crowded: int = 0
    held: int = 0
    skipped: int = 0
    pairs: int = 0
    rounds: int = 0
    groups: int = 0
    members: int = 0
    linkage: Linkage = "connected"

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON."""
        return asdict(self)

    def take(self, counts: Mapping[str, int]) -> None:
        """Set the counts with these names."""
        for name, count in counts.items():
            setattr(self, name, count)


@dataclass(frozen=True, slots=True)
class Grouped:
    """The result: ``groups`` has ``_id``, ``group`` (the least id of its group) and ``size``.

    ``pairs`` has the verified pairs, as numbers of documents; ``prints`` has the id of each number.
    """

    groups: Frame
    pairs: Frame
    prints: Frame
    summary: SparkSummary


_USUAL = GroupOptions()


def groups(
    signed: Frame,
    scheme: Scheme,
    work: StageStore,
    options: GroupOptions = _USUAL,
    report: Report = lambda _: None,
) -> Grouped:
    """Return the groups of near-duplicates of signed documents; documents in a chain of pairs are one group.

    They equal the groups of ``shinglefold groups --linkage connected`` with the same scheme, as long as no
    supershingle is crowded. Leaders would have to be chosen one after another, by one machine. If texts
    decide, the documents need the column ``beside``, see ``sign``.

    Raises:
        SchemeMismatch: all fingerprints are of another scheme.
        InputError: there are no documents.
    """
    summary = SparkSummary()
    report("reading fingerprints")
    rows = _fingerprint_rows(signed, scheme, work, options, summary)
    whole = work.keep(originals(rows), "originals")
    summary.take(totals(whole, copies="count_if(number != first)"))
    report(f"looking for candidates among {summary.signed:,} documents")
    pairs = _find_pairs(whole, rows, scheme, work, bounds=options.bounds, summary=summary)
    exact = whole.where("number != first").selectExpr("number AS a", "first AS b")

    report(f"connecting {summary.pairs:,} pairs and {summary.copies:,} exact copies")

    def report_round(number: int, changed: int) -> None:
        summary.rounds = number
        report(f"connecting: round {number} moved {changed:,} edges")

    labels = connected_components(pairs.select("a", "b").union(exact), work, report_round)
    report("naming groups")
    found = _name_groups(labels, whole, work, options.min_size, summary)
    return Grouped(found, pairs, whole, summary)


def _fingerprint_rows(
    signed: Frame, scheme: Scheme, work: StageStore, options: GroupOptions, summary: SparkSummary
) -> Frame:
    rows = work.keep(prints(signed, scheme, target=options.target, id_field=options.id_field), "prints")
    states = {name: f"count_if(state = {state})" for name, state in _STATES.items()}
    summary.take(totals(rows, read="count(1)", **states))
    if not summary.read:
        raise InputError("there are no documents: check the path")
    if summary.foreign == summary.read:
        raise SchemeMismatch(
            found="another one",
            expected=scheme.id,
            where="every fingerprint",
            remedy="Name theirs with --preset or in the settings, or sign the documents again.",
        )
    return rows


def _find_pairs(
    whole: Frame, rows: Frame, scheme: Scheme, work: StageStore, *, bounds: Bounds, summary: SparkSummary
) -> Frame:
    nominated = work.keep(nominations(whole, scheme, bounds), "nominated")
    summary.take(crowd_counts(nominated, bounds))
    kept = work.keep(verify_candidates(candidates(nominated, scheme), whole, rows, scheme, work), "pairs")
    summary.take(totals(kept, pairs="count(1)"))
    return kept


def _name_groups(labels: Frame, whole: Frame, work: StageStore, least: int, summary: SparkSummary) -> Frame:
    named = labels.join(whole.selectExpr("number", "id AS _id"), "number")
    of_group = "OVER (PARTITION BY root)"
    told = (f"min(_id) {of_group} AS `group`", f"count(1) {of_group} AS size", "number = root AS counts")
    kept = work.keep(named.selectExpr("_id", *told).where(f"size >= {least}"), "groups")
    # Count the roots, because documents of several groups may have the same id.
    summary.take(totals(kept, members="count(1)", groups="count_if(counts)"))
    return kept.drop("counts")
