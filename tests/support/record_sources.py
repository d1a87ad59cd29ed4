"""Files that tests write and read as records."""

import gzip
from pathlib import Path
from typing import Any

from shinglefold.ingest import read
from shinglefold.ingest.readers.record import ReadOptions, Record


def write(path: Path, content: bytes | str) -> Path:
    """Write a file, compressed if its name ends so, and return its path."""
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read_all(path: Path, **options: Any) -> list[Record]:
    """Return all records of a file."""
    return list(read(path, ReadOptions(**options)))
