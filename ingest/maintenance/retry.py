"""Trying dead letters again: afterwards the file holds what failed again, and nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from shinglefold.checks import path_of
from shinglefold.contracts import Engine
from shinglefold.errors import InputError
from shinglefold.ingest.maintenance.letters import check_letters, keep_what_is_left, locked, take_back
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

    The file stays as it is until the last letter is settled, and is then replaced in one step by those that
    failed again, kept under its name and ``.retrying`` meanwhile, and those not yet tried where the run was
    cut short. Documents with ids are never stored twice.

    Args:
        options: further ones for ``index_documents``, but not its ``dead_letters``.

    Raises:
        InputError: the file holds something else, or can't be replaced; nothing was touched.
    """
    path = path_of("path", path)
    aside = path.with_name(f"{path.name}.retrying")
    try:
        if (there := path if path.is_file() else aside).is_file():
            with locked(there):
                # What another run that lives has put aside is its own.
                take_back(path, aside)
        check_letters(path)
        with locked(path), _put_aside(path, aside):
            letters = replay(path, reading)
            summary = index_documents(engine, index, letters, pipeline, dead_letters=aside, **options)
            left = keep_what_is_left(path, aside, summary.read)
    except OSError as error:
        raise InputError(
            f"cannot keep the letters of {path} in its folder: {error.strerror}; "
            "check its rights and the space left"
        ) from error
    return replace(summary, dead_letters=str(path) if left else "")


@contextmanager
def _put_aside(path: Path, aside: Path) -> Iterator[None]:
    """Make the file for letters that fail again; where the run can't go on the other has them all still."""
    aside.touch(mode=path.stat().st_mode & 0o777, exist_ok=False)
    try:
        yield
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
