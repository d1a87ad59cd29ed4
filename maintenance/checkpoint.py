"""Store the progress of a job in a small JSON file that survives crashes."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from shinglefold.errors import ConfigError, InputError, reason_of
from shinglefold.runtime.durable_files import atomic_write

_FORMAT = 3
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint of one job.

    ``path``: the file; None stores nothing. ``kind``: the name of the job in messages. ``job``: its identity;
    checkpoints of other jobs are rejected.
    """

    path: Path | None
    kind: str
    job: Mapping[str, Any]

    def load(self, parse: Callable[[Mapping[str, Any]], T]) -> T | None:
        """Return the result of ``parse`` for the saved state; None if there is no checkpoint.

        Raises:
            ConfigError: the file belongs to another job.
            InputError: it can't be read.
        """
        if self.path is None:
            return None
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(
                f"cannot read the checkpoint {self.path}: {reason_of(error)}; name another file"
            ) from error
        try:
            found = json.loads(content)
            version, job, state = found["format"], dict(found["job"]), found["state"]
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise InputError(
                f"{self.path} holds something else than a checkpoint: name another file"
            ) from error
        if version != _FORMAT:
            raise self._useless(f"has format {version!r}, and this version reads {_FORMAT}")
        if job != self.job:
            differences = [
                f"{name} {job.get(name)!r}, not {value!r}"
                for name, value in self.job.items()
                if job.get(name) != value
            ]
            raise ConfigError(
                f"the checkpoint {self.path} is of another {self.kind} ({'; '.join(differences)}): finish "
                "that one, delete the file, or give this one a checkpoint of its own"
            )
        try:
            return parse(state)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._useless("is damaged") from error

    def save(self, state: Mapping[str, Any]) -> None:
        """Replace the file atomically: a reader sees the old state or the new one."""
        if self.path is not None:
            replace_lines(self.path, [json.dumps({"format": _FORMAT, "job": self.job, "state": state})])

    def remove(self) -> None:
        """Remove the file when the job is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _useless(self, why: str) -> InputError:
        return InputError(f"the checkpoint {self.path} {why}: delete it to start from the beginning")


def replace_lines(path: Path, lines: Iterable[str]) -> None:
    """Replace the content of a file atomically and durably."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise InputError(
            f"cannot write the checkpoint {path}: {error.strerror}; give another path"
        ) from error
