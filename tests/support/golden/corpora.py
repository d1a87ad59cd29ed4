"""The labelled corpora, commands run on them as they are typed, and short stand-ins for long results.

Nothing of a corpus is kept, and a difference can still be located.
"""

import gzip
import json
import os
import subprocess
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from support.commands import PROGRAM

#: The smallest first.
CORPORA = ("gnome-uk", "libreoffice-zh-cn", "libreoffice-ru")


def file_of(folder: Path, corpus: str) -> Path:
    return folder / f"{corpus}.jsonl.gz"


def pages_of(path: Path) -> list[dict[str, Any]]:
    """Return the pages of a corpus in the order of its file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def printed(*arguments: str | Path) -> bytes:
    """Return what a command prints in an empty folder, without the settings of the one who tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHINGLEFOLD_")}
    with TemporaryDirectory() as empty:
        ran = subprocess.run(
            [*PROGRAM, *map(str, arguments)],
            cwd=empty,
            env=environment,
            stdout=subprocess.PIPE,
            check=False,
        )
    assert ran.returncode == 0, arguments
    return ran.stdout


def digest(value: Any) -> str:
    """Return 16 hexadecimal digits that stand for bytes, or for the JSON of anything else."""
    raw = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
    return sha256(raw).hexdigest()[:16]


def in_blocks(rows: Sequence[Any], size: int) -> list[str]:
    """Return a digest of each block of so many rows."""
    return [digest(rows[begin : begin + size]) for begin in range(0, len(rows), size)]
