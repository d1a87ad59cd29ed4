"""Clusters hits in rank order into groups, with leader or connected linkage."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError
from shinglefold.model.recipe import FIELD
from shinglefold.model.scheme import Scheme, checked_scheme
from shinglefold.model.seal import Seal, check_seal
from shinglefold.model.values import Int64s
from shinglefold.options.validation import check_options, check_str
from shinglefold.rerank.fold.leader_groups import (
    GroupByLeader,
    LeaderGroups,
    Neighbours,
    leader_groups,
    places,
)
from shinglefold.rerank.fold.matcher import ROWS, Compared, Matcher, nonzero
from shinglefold.rerank.hits import (
    FingerprintColumns,
    FingerprintCounts,
    FingerprintReader,
    Hit,
    identity,
    mark,
    stored_fingerprint,
)
from shinglefold.rerank.representatives import Candidate, choose, load_policies
from shinglefold.rerank.request.arguments import hits_of
from shinglefold.rerank.request.bodies import complete_tie_groups
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.sketch.clustering import connected_components

#: The number of hits compared with each other at a time.
BLOCK = 1000
_log = logging.getLogger("shinglefold.rerank.fold.clustering")
#: Options that need a search, so ``collapse`` refuses them.
_OF_SEARCHES = ("verify", "mode", "fold", "cursor", "members_from")


class Group(NamedTuple):
    """A group, by positions in the list of hits: the representative, and all members including it.

    Groups are in the order of their best-ranked members.
    """

    representative: int
    members: tuple[int, ...]


class Collapsed(NamedTuple):
    """The groups of a list of hits, and counts of the hits."""

    groups: tuple[Group, ...]
    counts: FingerprintCounts

    @property
    def folded(self) -> int:
        """How many hits are not representatives."""
        return sum([len(members) for _, members in self.groups]) - len(self.groups)


def collapse(
    hits: Sequence[Hit] | Mapping[str, Any],
    scheme: Scheme,
    options: FoldOptions | None = None,
    field: str = FIELD,
    seal: Seal | None = None,
) -> Collapsed:
    """Fold a list of hits in rank order, from any source.

    Args:
        hits: hits with the stored fingerprint in ``fields`` (as ``docvalue_fields`` return it) or in
            ``_source``; or a whole response.
        scheme: the scheme of the index; hits of other schemes are counted and not folded.
        field: the object field of the fingerprint.
        seal: the seal with the key of the index; fingerprints without that seal are unreadable.

    A document that is in the list twice, as after several searches, counts where it ranks best; its other
    positions are in no group. Equal ids of different indices are different documents.

    With ``leader`` linkage no two representatives match, and every member matches its representative.
    Signatures decide, since no texts are read. A warning is logged if no hit has a fingerprint.

    Raises:
        ConfigError: the options are not valid, or they need a search, such as ``verify`` by text.

    Cost: about 1 ms for 200 hits, 3 to 9 ms for 1,000.
    """
    check_options(options, FoldOptions)
    check_str("field", field)
    check_seal(seal)
    options = options or FoldOptions()
    _refuse_options_of_searches(options)
    folding = folding_of(checked_scheme(scheme), options, field, seal=seal)
    folding.add(found := hits_of(hits))
    if len(found) > 1 and not any(stored_fingerprint(hit, field) for hit in found):
        _log.warning(
            "none of these %d hits brings a fingerprint, so that none folds: search with "
            '"docvalue_fields": ["%s.digest", "%s.signature"], or with the field in _source',
            len(found), field, field,
        )  # fmt: skip
    return folding.collapsed()


def _refuse_options_of_searches(options: FoldOptions) -> None:
    usual = FoldOptions()
    for name in _OF_SEARCHES:
        value = getattr(options, name)
        heeded = {getattr(usual, name), "signature"} if name == "verify" else {getattr(usual, name), "auto"}
        if value not in heeded:
            raise ConfigError(
                f"collapse folds the hits it is given by their signatures, and cannot heed {name} {value!r}: "
                "leave it out, or let FoldedSearch search"
            )


def folding_of(
    scheme: Scheme,
    options: FoldOptions,
    field: str,
    earlier: Sequence[Hit] = (),
    seal: Seal | None = None,
    *,
    lead: GroupByLeader = leader_groups,
    fields: Sequence[str] | None = None,
) -> "LeaderFolding | ConnectedFolding":
    """Return the folding for the linkage of the options.

    Args:
        earlier: hits shown on earlier pages; hits that match them are left out. For ``leader`` linkage.
        lead: groups hits by leader if no policy chooses the representative.
        fields: the only fields to read, from ``fields`` of hits; None reads all of them, and sources.
    """
    reader = FingerprintReader(scheme, field, options.scope, seal, fields)
    if options.linkage == "connected":
        return ConnectedFolding(scheme, options, reader)
    return LeaderFolding(scheme, options, reader, earlier, lead=lead)


class _Folding:
    """The hits of a folding and their fingerprints."""

    def __init__(self, scheme: Scheme, options: FoldOptions, reader: FingerprintReader) -> None:
        self.hits: list[Hit] = []
        self._matcher = Matcher.of(scheme, options)
        self._policies = load_policies(options.representative)
        self._reader = reader
        #: The identities of the first ``_identified`` hits.
        self._seen: set[tuple[object, ...]] = set()
        self._identified = 0
        self._repeated = 0

    def _free(self, hits: Sequence[Hit]) -> bytearray:
        """Add the next hits; return a byte for each: 0 if the document is in the list already."""
        begin = len(self.hits)
        self.hits.extend(hits)
        free = bytearray(b"\1") * len(hits)
        ids = {hit.get("_id") for hit in hits}
        if ids == {None}:
            # Hits without ids can't be compared.
            return free
        if len(self.hits) == len(ids):
            # The identities of the first hits matter only when more hits follow.
            return free
        self._seen.update(map(identity, self.hits[self._identified : begin]))
        self._identified = len(self.hits)
        names = [identity(hit) for hit in hits]
        if len(set(names)) < len(names) or not self._seen.isdisjoint(names):
            for place, name in enumerate(names):
                free[place] = name[1] is None or name not in self._seen
                self._seen.add(name)
        self._seen.update(names)
        self._repeated += free.count(0)
        return free

    def columns(self, places: Sequence[int]) -> FingerprintColumns:
        """Return the fingerprints of the given hits."""
        # Hits must not be counted twice.
        seen, self._reader.counts = self._reader.counts, FingerprintCounts()
        prints = self._reader.read([self.hits[place] for place in places])
        self._reader.counts = seen
        return prints

    def _choose(self, places: Iterable[int], prints: FingerprintColumns, base: int) -> int:
        """Return the representative among hits of a block that begins at ``base``."""
        candidates = [
            Candidate(place, int(prints.shingles[place]), self._reader.narrow(self.hits[base + place]))
            for place in places
        ]
        return choose(self._policies, candidates).rank


class LeaderFolding(_Folding):
    """Leader clustering, block by block; later blocks do not change the groups of earlier ones.

    In rank order, each free hit (one in no group) begins a group. A policy chooses the representative among
    that hit and the free hits of its block that match it. The members are the free hits that match the
    representative. Hits of later blocks join the first group whose representative they match.
    """

    def __init__(
        self,
        scheme: Scheme,
        options: FoldOptions,
        reader: FingerprintReader,
        earlier: Sequence[Hit],
        *,
        lead: GroupByLeader,
    ) -> None:
        super().__init__(scheme, options, reader)
        self._lead = lead
        self._shown: list[int] = []
        self._members: list[list[int]] = []
        #: The fingerprints of earlier pages' hits and of representatives, without those of the last block.
        self._prints = self._reader.read(earlier) if earlier else None
        self._reader.counts = FingerprintCounts()
        self._earlier = len(earlier)
        self._earlier_marks = {mark(hit) for hit in earlier}
        self._joined = 0
        self._waiting: tuple[FingerprintColumns, int] | None = None

    def __len__(self) -> int:
        return len(self._shown)

    def add(self, hits: Sequence[Hit]) -> None:
        """Fold the next hits in rank order, in blocks of at most 1,000 to bound memory."""
        for begin in range(0, len(hits), BLOCK):
            self._add(hits[begin : begin + BLOCK])

    def collapsed(self) -> Collapsed:
        """Return the groups so far."""
        # A named tuple's own constructor is a Python function: twice as slow.
        make = partial(tuple.__new__, Group)
        groups = tuple(map(make, zip(self._shown, map(tuple, self._members), strict=True)))
        return Collapsed(groups, self._reader.counts)

    def columns(self, places: Sequence[int]) -> FingerprintColumns:
        """Return the fingerprints of the given hits; those of the last block are still in memory."""
        if self._waiting is not None and all(place >= self._waiting[1] for place in places):
            prints, base = self._waiting
            return prints.take([place - base for place in places])
        return super().columns(places)

    def _add(self, hits: Sequence[Hit]) -> None:
        base = len(self.hits)
        free = self._free(hits)
        prints = self._reader.read(hits)
        self._reader.counts.repeated = self._repeated
        block = self._matcher.prepare(prints)
        if self._earlier_marks:
            self._leave_out_earlier(hits, free)
        self._join_groups(block, base, free)
        self._begin_groups(block, base, free)
        self._waiting = prints, base

    def _leave_out_earlier(self, hits: Sequence[Hit], free: bytearray) -> None:
        """Leave out hits that earlier pages showed.

        They are recognized by index and id, because a hit without a signature does not match itself.
        """
        for place, hit in enumerate(hits):
            if free[place] and mark(hit) in self._earlier_marks:
                free[place] = 0
                self._reader.counts.earlier += 1

    def _join_groups(self, block: Compared, base: int, free: bytearray) -> None:
        """Add hits to the groups of earlier blocks."""
        shown = self._shown_prints()
        if shown is None:
            return
        others = self._matcher.prepare(shown)
        for begin in range(0, len(block), ROWS):
            rows = np.arange(begin, min(begin + ROWS, len(block)))
            near = self._matcher.matches(block, rows, others)
            # A hit that matches several groups joins the first.
            for row, column in zip(rows.tolist(), near.argmax(axis=1).tolist(), strict=True):
                if near[row - begin, column] and free[row]:
                    free[row] = 0
                    self._join(base + row, column)

    def _join(self, place: int, shown: int) -> None:
        if shown < self._earlier:
            self._reader.counts.earlier += 1
        else:
            self._members[shown - self._earlier].append(place)

    def _shown_prints(self) -> FingerprintColumns | None:
        """Return the fingerprints of all representatives, with those of the last block added."""
        begun = self._shown[self._joined :]
        if self._waiting is not None and begun:
            block, base = self._waiting
            taken = block.take([place - base for place in begun])
            self._prints = taken if self._prints is None else self._prints.join(taken)
            self._joined += len(begun)
        return self._prints

    def _begin_groups(self, block: Compared, base: int, free: bytearray) -> None:
        """Begin new groups with the free hits of a block."""
        waiting = [place for place, one in enumerate(free) if one]
        for shown, members in self._new_groups(block, base, waiting):
            self._shown += [base + one for one in shown] if base else shown
            self._members += [[base + one for one in group] for group in members] if base else members

    def _new_groups(self, block: Compared, base: int, waiting: list[int]) -> Iterator[LeaderGroups]:
        if not self._policies:
            yield from self._lead(self._matcher, block, waiting)
            return
        neighbours = Neighbours(self._matcher, block, sum(1 << place for place in waiting))
        while neighbours.free:
            shown, members = self._next_group(neighbours, block, base)
            yield [shown], [members]

    def _next_group(self, neighbours: Neighbours, block: Compared, base: int) -> tuple[int, list[int]]:
        """Remove the next group from the free hits; return its representative by policy, and its members."""
        shown = leader = (neighbours.free & -neighbours.free).bit_length() - 1
        if near := neighbours.of(leader):
            shown = self._choose(places(near | 1 << leader), block.prints, base)
            near = near if shown == leader else neighbours.of(shown)
        return shown, neighbours.take(near | 1 << shown)


class ConnectedFolding(_Folding):
    """Connected components: a hit that matches any member is a member.

    Later hits may connect two groups, so groups are final only at the end.
    """

    def __init__(self, scheme: Scheme, options: FoldOptions, reader: FingerprintReader) -> None:
        super().__init__(scheme, options, reader)
        self._first_occurrence = bytearray()

    def __len__(self) -> int:
        return len(self.collapsed().groups)

    def add(self, hits: Sequence[Hit]) -> None:
        """Add the next hits in rank order."""
        self._first_occurrence += self._free(hits)

    def collapsed(self) -> Collapsed:
        """Return the groups of all hits."""
        self._reader.counts = FingerprintCounts(repeated=self._repeated)
        prints = self._reader.read(self.hits)
        members: dict[int, list[int]] = {}
        for place, label in enumerate(
            connected_components(*_pairs(self._matcher, prints), len(prints)).tolist()
        ):
            if self._first_occurrence[place]:
                members.setdefault(label, []).append(place)
        found = (Group(self._representative(group, prints), tuple(group)) for group in members.values())
        return Collapsed(tuple(found), self._reader.counts)

    def _representative(self, group: list[int], prints: FingerprintColumns) -> int:
        return self._choose(group, prints, 0) if len(group) > 1 and self._policies else group[0]


def _pairs(matcher: Matcher, prints: FingerprintColumns) -> tuple[Int64s, Int64s]:
    """Return all matching pairs, a < b, comparing a few rows at a time to bound memory."""
    all_ = matcher.prepare(prints)
    found = [np.zeros((2, 0), np.int64)]
    for begin in range(0, len(prints), ROWS):
        rows = np.arange(begin, min(begin + ROWS, len(prints)))
        row, column = nonzero(matcher.matches(all_, rows, all_, begin))
        upper = row < column
        found.append(np.stack((row[upper], column[upper])) + begin)
    a, b = np.concatenate(found, axis=1)
    return a, b


class BlockwiseFolding:
    """Hits of which complete blocks are folded.

    A block ends after ``window`` hits, or earlier if the last ones have the same sort values as the next.

    Attributes:
        pending: hits that are read and wait for the rest of their block.
    """

    def __init__(self, folding: LeaderFolding | ConnectedFolding, window: int) -> None:
        self.folding = folding
        self.pending: list[JSON] = []
        self._window = window
        self._borders: list[int] = []

    @property
    def groups(self) -> int | None:
        """How many groups there are; None if later hits may join two of them."""
        return len(self.folding) if isinstance(self.folding, LeaderFolding) else None

    def begin_of(self, place: int) -> int:
        """Return where the block of a hit begins."""
        return max((begin for begin in self._borders if begin <= place), default=0)

    def fold(self, tail: Sequence[JSON], *, last: bool, ties: bool) -> None:
        """Fold the complete blocks of the pending hits, and with ``last`` the rest.

        Args:
            tail: the hits that follow.
            ties: whether equal sort values stay in one block.
        """
        while self.pending and (last or len(self.pending) + len(tail) > self._window):
            count = self._size([*self.pending, *tail]) if ties else self._window
            if not last and count > len(self.pending):
                return
            self._borders.append(len(self.folding.hits))
            self.folding.add(self.pending[:count])
            del self.pending[:count]

    def _size(self, hits: Sequence[JSON]) -> int:
        """Return how many of the next hits are a block."""
        window = self._window
        if count := complete_tie_groups(hits[: window + 1], window):
            return count
        # All of them are equal: the block ends with the first hit that differs from the one before it.
        ends = (at for at in range(window + 1, len(hits)) if hits[at]["sort"] != hits[at - 1]["sort"])
        return next(ends, len(hits))
