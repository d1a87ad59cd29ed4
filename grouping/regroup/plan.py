"""From who leads whom to numbers: groups keep theirs where they can, and only what differs is a change."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from shinglefold.errors import InputError
from shinglefold.grouping.numbering import numbers_of
from shinglefold.grouping.regroup.census import NO_GROUP, Census
from shinglefold.grouping.regroup.options import RegroupCounts
from shinglefold.maintenance.checkpoint import Checkpoint, replace_lines
from shinglefold.maintenance.reconcile import DocumentKey
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import Fingerprint, Int64s


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A document to get another number or role, its version, and the digest of the text that decided."""

    key: DocumentKey
    version: tuple[int, int]
    digest: str
    group: int
    leads: bool


def plan(
    census: Census, leaders: Int64s, scheme: Scheme, reserved: set[int], counts: RegroupCounts
) -> Iterator[GroupChange]:
    """Yield what is to be written, and add to the counts first.

    A group keeps the number that most of its documents have, and each number goes to one group; a group
    without one gets a number of the text that founds it, which no other group has.

    Args:
        leaders: the place of the one that leads, for each document.
        reserved: numbers of documents that are left as they are.
    """
    numbers = _numbers(census, leaders, scheme, reserved)
    wanted = numbers[leaders]
    leads = leaders == np.arange(len(census))
    moved = wanted != census.groups
    role = leads != census.leads
    _count(census, leaders, counts)
    counts.numbered += int(np.count_nonzero(moved & (census.groups == NO_GROUP)))
    counts.moved += int(np.count_nonzero(moved & (census.groups != NO_GROUP)))
    counts.relabelled += int(np.count_nonzero(role & ~moved))
    changes = np.flatnonzero(moved | role)
    counts.planned += len(changes)
    return (
        GroupChange(
            census.keys[place],
            (int(census.seq_nos[place]), int(census.terms[place])),
            census.digest(place),
            int(wanted[place]),
            bool(leads[place]),
        )
        for place in changes.tolist()
    )


def _numbers(census: Census, leaders: Int64s, scheme: Scheme, reserved: set[int]) -> Int64s:
    """Return int64 (D,): the number of each group, at the place of the document that leads it."""
    numbers = np.full(len(census), NO_GROUP, np.int64)
    had = np.flatnonzero(census.groups != NO_GROUP)
    given: set[int] = set()
    for place, number in _claims(census, leaders, had):
        if numbers[place] == NO_GROUP and number not in given:
            numbers[place] = number
            given.add(number)
    taken = reserved | set(census.groups[had].tolist())
    for place in np.flatnonzero((leaders == np.arange(len(census))) & (numbers == NO_GROUP)).tolist():
        number = next(one for one in _choices(census, place, scheme) if one not in taken)
        numbers[place] = number
        taken.add(number)
    return numbers


def _claims(census: Census, leaders: Int64s, had: Int64s) -> Iterator[tuple[int, int]]:
    """Yield groups and numbers that documents of theirs have, the best claim first.

    That is the one of most documents; of as many, that of the document that leads; then the least number.
    """
    pairs = np.stack((leaders[had], census.groups[had]), axis=1)
    if not len(pairs):
        return
    found, sizes = np.unique(pairs, axis=0, return_counts=True)
    own = census.groups[found[:, 0]] == found[:, 1]
    for row in np.lexsort((found[:, 0], found[:, 1], ~own, -sizes)).tolist():
        yield int(found[row, 0]), int(found[row, 1])


def _choices(census: Census, place: int, scheme: Scheme) -> Iterator[int]:
    """Yield the numbers a document may found a group with, as it would have them when it is indexed."""
    code = int(census.scopes[place])
    scope: Sequence[Sequence[Any]] = census.values[code] if code >= 0 else [()]
    key = census.keys[place]
    made = Fingerprint(scheme.id, "", 0, census.digest(place))
    yield from numbers_of(made, scope, key.index, key.id, key.routing)
    for more in count():
        id_ = key.id if not more else f"{key.id}\0{more}"
        yield from numbers_of(Fingerprint(scheme.id, "", 0), scope, key.index, id_, key.routing)


def _count(census: Census, leaders: Int64s, counts: RegroupCounts) -> None:
    had = census.groups != NO_GROUP
    counts.groups = int(np.count_nonzero(leaders == np.arange(len(census))))
    counts.shared = int(np.count_nonzero(np.bincount(leaders, minlength=1) > 1))
    if counts.groups_before < 0:
        counts.groups_before = len(np.unique(census.groups[had]))
    pairs = np.unique(np.stack((leaders[had], census.groups[had]), axis=1), axis=0)
    for column, one, other in ((0, "merged", "merged_from"), (1, "split", "split_into")):
        _, several = np.unique(pairs[:, column], return_counts=True)
        setattr(counts, one, getattr(counts, one) + int(np.count_nonzero(several > 1)))
        setattr(counts, other, getattr(counts, other) + int(several[several > 1].sum()))


#: How a plan begins.
_BEGINNING = b'{"passes": '


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where an earlier run was: what is still to be written, how much was, after how many readings."""

    changes: Sequence[GroupChange]
    done: int
    passes: int
    counts: RegroupCounts


@dataclass(frozen=True, slots=True)
class PlanJournal:
    """The files of one job: the checkpoint, beside it the plan (``….plan``) and verdicts; None keeps nothing.

    The plan is on disk before the first write, and the checkpoint names it, so that a run which is cut short
    goes on with what it had decided, whatever others write in between.
    """

    path: Path | None
    job: Mapping[str, Any]

    def load(self) -> ResumePoint | None:
        """Return where an earlier run of this job was, None where there was none.

        Raises:
            ConfigError: the checkpoint belongs to another job.
            InputError: it can't be read.
        """
        found = self._checkpoint.load(self._left)
        if found is None:
            self._check_beside()
        return found

    def begin(self, changes: Iterable[GroupChange], passes: int, counts: RegroupCounts) -> None:
        """Keep a plan, and that nothing of it is done.

        Raises:
            InputError: it can't be written.
        """
        if self.path is not None:
            replace_lines(self._beside(self.path), [json.dumps({"passes": passes}), *map(_line, changes)])
        self.save(0, passes, counts)

    def save(self, done: int, passes: int, counts: RegroupCounts) -> None:
        """Keep that so many changes of the plan are done.

        Raises:
            InputError: it can't be written.
        """
        self._checkpoint.save({"passes": passes, "done": done, "counts": counts.to_json()})

    def remove(self) -> None:
        """Remove both files: the job is done."""
        self._checkpoint.remove()
        if self.path is not None:
            self._beside(self.path).unlink(missing_ok=True)

    @property
    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(self.path, "regrouping", self.job)

    def _left(self, saved: Mapping[str, Any]) -> ResumePoint:
        assert self.path is not None
        passes, done = saved["passes"], saved["done"]
        changes = _changes(self._beside(self.path), passes)[done:]
        return ResumePoint(changes, done, passes, RegroupCounts.from_json(saved["counts"]))

    def _check_beside(self) -> None:
        """Refuse somebody else's file in the place of the plan: it would be replaced, and removed."""
        if self.path is None or not (plan := self._beside(self.path)).exists():
            return
        try:
            with plan.open("rb") as file:
                ours = file.read(len(_BEGINNING)) == _BEGINNING
        except OSError:
            ours = False
        if not ours:
            raise InputError(
                f"{plan}, where the plan is kept beside the checkpoint, holds something else: give another "
                "checkpoint"
            )

    @property
    def verdicts(self) -> Path | None:
        """Return the file of what texts said, beside the checkpoint (``….texts``)."""
        return None if self.path is None else self.path.with_name(f"{self.path.name}.texts")

    @staticmethod
    def _beside(path: Path) -> Path:
        return path.with_name(f"{path.name}.plan")


def _line(change: GroupChange) -> str:
    key = change.key
    return json.dumps(
        [key.index, key.id, key.routing, *change.version, change.digest, change.group, change.leads]
    )


def _changes(path: Path, passes: int) -> list[GroupChange]:
    """Return a plan; none where the process died between a new plan and the checkpoint that names it."""
    with path.open(encoding="utf-8") as lines:
        if json.loads(next(lines))["passes"] != passes:
            return []
        rows = map(json.loads, lines)
        return [
            GroupChange(DocumentKey(index, id_, routing), (seq_no, term), digest, group, leads)
            for index, id_, routing, seq_no, term, digest, group, leads in rows
        ]
