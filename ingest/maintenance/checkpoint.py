"""How far a backfill is, in a file that survives whatever ends the process."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shinglefold.errors import ConfigError, InputError
from shinglefold.ingest.maintenance.counts import BackfillCounts
from shinglefold.ingest.maintenance.kept import KeptFile
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
        data = self._file.read()
        if data is None:
            return None
        found = self._parsed(data)
        if found.job != job:
            raise another_job("backfill", self.path, asdict(found.job), asdict(job))
        return found

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the file in one step: whoever reads it meets the old checkpoint or the new.

        Raises:
            InputError: it can't be written.
        """
        self._file.write({"format": _FORMAT, **_to_json(checkpoint)})

    def remove(self) -> None:
        """Remove the file: the job is done."""
        self._file.remove()

    @property
    def _file(self) -> KeptFile:
        return KeptFile(self.path)

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
            raise self._file.unreadable(error) from error


def _to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "job": asdict(checkpoint.job),
        "place": asdict(checkpoint.place),
        "counts": checkpoint.counts.to_json(),
    }


def another_job(
    what: str, path: Path | None, theirs: Mapping[str, Any], ours: Mapping[str, Any]
) -> ConfigError:
    """Return the error that a checkpoint is of another job, and in what."""
    told = [
        f"{name} {theirs.get(name)!r}, not {ours[name]!r}" for name in ours if theirs.get(name) != ours[name]
    ]
    return ConfigError(
        f"the checkpoint {path} is of another {what} ({'; '.join(told)}): finish that one, "
        "delete the file, or give this one a checkpoint of its own"
    )
