"""A small JSON file that survives whatever ends the process."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shinglefold.durable import replaced
from shinglefold.errors import InputError, why


@dataclass(frozen=True, slots=True)
class KeptFile:
    """The file; without a path nothing is kept."""

    path: Path | None

    def read(self) -> Any:  # noqa: ANN401 - JSON
        """Return what it holds, None where there is none.

        Raises:
            InputError: it can't be read.
        """
        if self.path is None:
            return None
        try:
            return json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise self.unreadable(error) from error

    def write(self, data: Mapping[str, Any]) -> None:
        """Replace the file in one step: whoever reads it meets the old content or the new.

        Raises:
            InputError: it can't be written.
        """
        if self.path is not None:
            replace_lines(self.path, [json.dumps(data)])

    def remove(self) -> None:
        """Remove the file: the job is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def unreadable(self, error: Exception) -> InputError:
        """Return the error that tells of it."""
        return InputError(
            f"cannot read the checkpoint {self.path}: {why(error)}; name another "
            "file, or delete it to begin anew, if it is one"
        )


def replace_lines(path: Path, lines: Iterable[str]) -> None:
    """Replace a file by some lines, in one step, and have them on disk before this returns.

    Raises:
        InputError: it can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise InputError(
            f"cannot write the checkpoint {path}: {error.strerror}; give another path"
        ) from error
