"""What a regrouping means to write and how far it is, in two files that survive whatever ends the process."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shinglefold.errors import InputError
from shinglefold.grouping.regroup.options import RegroupCounts
from shinglefold.grouping.regroup.plan import GroupChange
from shinglefold.maintenance.checkpoint import Checkpoint, replace_lines
from shinglefold.maintenance.reconcile import DocumentKey

#: How a plan begins.
_BEGINNING = b'{"passes": '


@dataclass(frozen=True, slots=True)
class Left:
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

    def load(self) -> Left | None:
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

    def _left(self, saved: Mapping[str, Any]) -> Left:
        assert self.path is not None
        passes, done = saved["passes"], saved["done"]
        changes = _changes(self._beside(self.path), passes)[done:]
        return Left(changes, done, passes, RegroupCounts.from_json(saved["counts"]))

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
