"""How far a backfill is, in a file that survives whatever ends the process."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shinglefold.errors import ConfigError, InputError, why
from shinglefold.ingest.maintenance.counts import BackfillCounts
from shinglefold.ingest.maintenance.scan import Place

_FORMAT = 2


@dataclass(frozen=True, slots=True)
class Job:
    """What a backfill is about: a checkpoint is good for the same job only."""

    index: str
    scheme: str
    field: str
    part: str
    only_missing: bool
    sealed: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a job is: the place behind the last page written, and the counts until there."""

    job: Job
    place: Place
    counts: BackfillCounts


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """The file; without a path nothing is kept."""

    path: Path | None

    def load(self, job: Job) -> Checkpoint | None:
        """Return the checkpoint of a job, or None where there is none.

        Raises:
            ConfigError: the file belongs to another job.
            InputError: it can't be read.
        """
        if self.path is None:
            return None
        try:
            data = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error
        found = self._parsed(data)
        if found.job != job:
            raise ConfigError(_another(str(self.path), found.job, job))
        return found

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the file in one step: whoever reads it meets the old checkpoint or the new.

        Raises:
            InputError: it can't be written.
        """
        if self.path is None:
            return
        part = self.path.with_name(f"{self.path.name}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("w", encoding="utf-8") as file:
                json.dump({"format": _FORMAT, **_to_json(checkpoint)}, file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.path)
        except OSError as error:
            raise InputError(
                f"cannot write the checkpoint {self.path}: {error.strerror}; give another path"
            ) from error

    def remove(self) -> None:
        """Remove the file: the job is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _parsed(self, data: Mapping[str, Any]) -> Checkpoint:
        try:
            if data["format"] != _FORMAT:
                raise InputError(f"format {data['format']!r}, this version reads {_FORMAT}")
            place = dict(data["place"])
            after = place.pop("after")
            return Checkpoint(
                Job(**data["job"]),
                Place(**place, after=None if after is None else tuple(after)),
                BackfillCounts.from_json(data["counts"]),
            )
        except (KeyError, TypeError, ValueError, InputError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> InputError:
        return InputError(f"cannot read the checkpoint {self.path}: {why(error)}; delete it to begin anew")


def _to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "job": asdict(checkpoint.job),
        "place": asdict(checkpoint.place),
        "counts": checkpoint.counts.to_json(),
    }


def _another(path: str, found: Job, wanted: Job) -> str:
    theirs, ours = asdict(found), asdict(wanted)
    told = [f"{name} {theirs[name]!r}, not {ours[name]!r}" for name in ours if theirs[name] != ours[name]]
    return (
        f"the checkpoint {path} is of another backfill ({'; '.join(told)}): finish that one, "
        "delete the file, or give this one a checkpoint of its own"
    )
