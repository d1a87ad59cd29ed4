"""The labelled corpora, commands run on them as they are typed, and short stand-ins for long results.

Nothing of a corpus is kept, and a difference can still be located.
"""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

#: The smallest first: it is searched while the others are indexed.
CORPORA = ("gnome-uk", "libreoffice-zh-cn", "libreoffice-ru")
_START = "import sys; from shinglefold.cli.main import main; sys.exit(main())"


def file_of(folder: Path, corpus: str) -> Path:
    """Return the file of a corpus."""
    return folder / f"{corpus}.jsonl.gz"


def pages_of(path: Path) -> list[dict[str, Any]]:
    """Return the pages of a corpus in the order of its file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@contextmanager
def started(*arguments: str | Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a command in an empty folder, with no settings of whoever runs the tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHINGLEFOLD_")}
    with (
        TemporaryDirectory() as empty,
        subprocess.Popen(
            [sys.executable, "-c", _START, *map(str, arguments)],
            cwd=empty,
            env=environment,
            stdout=subprocess.PIPE,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def printed(*arguments: str | Path) -> bytes:
    """Return what a command prints."""
    with started(*arguments) as process:
        out = process.communicate()[0]
        assert process.returncode == 0, arguments
        return out


def digest(value: Any) -> str:
    """Return 16 hexadecimal digits that stand for bytes, or for the JSON of anything else."""
    raw = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
    return sha256(raw).hexdigest()[:16]


def in_blocks(rows: Sequence[Any], size: int) -> list[str]:
    """Return a digest of each block of so many rows."""
    return [digest(rows[begin : begin + size]) for begin in range(0, len(rows), size)]
