"""Trying dead letters again: afterwards the file holds what failed again, and nothing else."""

import itertools
import shutil
from pathlib import Path
from typing import Any

from shinglefold.contracts import Engine
from shinglefold.errors import InputError
from shinglefold.ingest.pipeline.pipeline import Pipeline
from shinglefold.ingest.readers.records import ReadOptions
from shinglefold.ingest.writing.dead_letters import replay
from shinglefold.ingest.writing.indexing import index_documents
from shinglefold.ingest.writing.summary import Summary


def retry(
    engine: Engine,
    index: str,
    path: str | Path,
    pipeline: Pipeline,
    *,
    reading: ReadOptions | None = None,
    **options: Any,  # noqa: ANN401 - those of index_documents
) -> Summary:
    """Index the documents of a dead-letter file; the file is removed where none fails again.

    The letters are put aside under the file's name and ``.retrying`` while they are tried. When the run is
    cut short, in whatever way, those not yet tried are there, and the next run begins with them. Documents
    with ids are never stored twice.

    Args:
        options: further ones for ``index_documents``, but not its ``dead_letters``.

    Raises:
        InputError: there is no such file, or it can't be moved.
    """
    path = Path(path)
    aside = path.with_name(f"{path.name}.retrying")
    try:
        _put_aside(path, aside)
    except OSError as error:
        raise InputError(f"cannot take the letters of {path}: {error.strerror}; check the path") from error
    summary = index_documents(engine, index, replay(aside, reading), pipeline, dead_letters=path, **options)
    if summary.stopped:
        _drop_lines(aside, summary.read)
    else:
        aside.unlink()
    return summary


def _put_aside(path: Path, aside: Path) -> None:
    """Move all letters aside, behind those a run that was cut short left there."""
    if not aside.exists():
        path.rename(aside)
    elif path.exists():
        part = aside.with_name(f"{aside.name}.part")
        with part.open("wb") as both:
            for file in (aside, path):
                with file.open("rb") as letters:
                    shutil.copyfileobj(letters, both)
        part.replace(aside)
        path.unlink()


def _drop_lines(file: Path, count: int) -> None:
    """Remove the first lines of a file: letters are settled in their order."""
    part = file.with_name(f"{file.name}.part")
    with file.open("rb") as old, part.open("wb") as new:
        new.writelines(itertools.islice(old, count, None))
    part.replace(file)
