"""Retry dead letters: index the documents of the file, and keep only those that fail again."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from stat import S_ISREG, S_IWGRP, S_IWOTH, S_IWUSR
from typing import Any

from shinglefold.contracts.engine import Engine
from shinglefold.errors import InputError
from shinglefold.ingest.pipeline.pipeline import Pipeline
from shinglefold.ingest.readers.encodings import detect_encoding
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.ingest.writing.accounting import Summary
from shinglefold.ingest.writing.dead_letters import is_letter_line, is_truncated_letter, replay
from shinglefold.ingest.writing.indexer import index_documents
from shinglefold.options.validation import check_path
from shinglefold.runtime.durable_files import atomic_write, is_same_file, lock, require_locks

_WRITABLE = S_IWUSR | S_IWGRP | S_IWOTH


class ForeignFile(InputError):
    """The file holds something other than dead letters."""


def check_letters(path: Path) -> None:
    """Raise ``InputError`` unless a file holds only dead letters and can be replaced."""
    try:
        if path.is_symlink():
            raise InputError(f"{path} is a link; give the file itself: {path.resolve()}")
        mode = path.stat().st_mode
        if path.is_dir():
            raise InputError(f"{path} is a folder; give the dead-letter file in it")
        if not S_ISREG(mode):
            raise InputError(f"{path} is not a regular file; name the dead-letter file")
        if not mode & _WRITABLE or not os.access(path, os.W_OK):
            raise InputError(f"{path} is write-protected, but must be updated: chmod u+w {quote(str(path))}")
        with path.open("rb") as file:
            if (encoding := detect_encoding(file.peek(4))) != "utf-8":
                raise InputError(f"the dead-letter file {path} is in {encoding}; save it as UTF-8")
            _check_lines(path, file)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error


def _check_lines(path: Path, lines: Iterator[bytes]) -> None:
    whole = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if is_letter_line(line):
            whole += 1
        elif not is_truncated_letter(line):
            raise ForeignFile(
                f"{path} was not changed: line {number} is not a dead letter; "
                "give a file that --dead-letters wrote"
            )
    if not whole:
        raise InputError(f"{path} was not changed: it holds no dead letters, so there is nothing to do")


@contextmanager
def lock_letters(path: Path) -> Iterator[None]:
    """Lock a dead-letter file against other runs."""
    require_locks("a retry of dead letters")
    with path.open("rb") as file:
        # If another run replaced the file in between, a third one may have locked the new file.
        if not (lock(file.fileno()) and is_same_file(file.fileno(), path)):
            raise InputError(f"another run is retrying the letters of {path}; wait until it ends")
        yield


def recover_letters(path: Path, retrying: Path) -> None:
    """Move dead letters from the temporary file of a killed run to the original file, unless it has them."""
    if not retrying.is_symlink() and not retrying.exists():
        return
    if retrying.is_symlink() or not retrying.is_file() or retrying.stat().st_size:
        check_letters(retrying)
    if not path.exists():
        retrying.rename(path)
        return
    with retrying.open("rb") as left, path.open("rb") as file:
        known = {_without_reason(line) for line in file}
        lost = [line for line in left if line.strip() and _without_reason(line) not in known]
    if lost:
        # Lost dead letters go first: if a user has corrected one in the original, the later line wins.
        with path.open("rb") as file, atomic_write(path, "xb") as both:
            both.writelines(line if line.endswith(b"\n") else line + b"\n" for line in lost)
            shutil.copyfileobj(file, both)
            shutil.copymode(path, both.name)
    retrying.unlink()


def store_remaining(path: Path, retrying: Path, tried: int) -> bool:
    """Replace a file by the dead letters that failed again and those that were not tried.

    Args:
        tried: how many dead letters at the beginning of ``path`` were tried.

    Returns:
        Whether any are left; if not, the file is removed.
    """
    with path.open("rb") as file, retrying.open("ab") as left:
        for line in file:
            if tried <= 0:
                left.write(line)
            tried -= bool(line.strip())
        left.flush()
        if left.tell():
            os.fsync(left.fileno())
            shutil.copymode(path, retrying)
            retrying.replace(path)
        else:
            path.unlink()
            retrying.unlink()
        if late := file.read():
            # Another run appended dead letters to the old file just now; its next one goes to the new file.
            with path.open("ab") as new:
                new.write(late)
        return path.exists()


def _without_reason(line: bytes) -> str:
    """Return a dead letter without its reason and stage, which may differ each time it fails."""
    try:
        letter = dict(json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return repr(line.strip())
    return json.dumps({name: value for name, value in letter.items() if name not in ("reason", "stage")})


def retry(
    engine: Engine,
    index: str,
    path: str | Path,
    pipeline: Pipeline,
    *,
    reading: ReadOptions | None = None,
    **options: Any,  # noqa: ANN401 - those of index_documents
) -> Summary:
    """Index the documents of a dead-letter file, and remove the file if none fails again.

    The file stays unchanged until the end of the run. Dead letters that fail again are collected in
    ``NAME.retrying``. That file then replaces the original atomically; after an interruption it also has the
    dead letters that were not tried. Documents with ids are not duplicated.

    Args:
        options: further arguments for ``index_documents``, except ``dead_letters``.

    Raises:
        InputError: the file holds something else, or can't be replaced; nothing was changed.
    """
    path = check_path("path", path)
    retrying = path.with_name(f"{path.name}.retrying")
    try:
        if (there := path if path.is_file() else retrying).is_file():
            with lock_letters(there):
                # The lock excludes the temporary file of a running retry.
                recover_letters(path, retrying)
        check_letters(path)
        with lock_letters(path), _retry_file(path, retrying):
            letters = replay(path, reading)
            summary = index_documents(engine, index, letters, pipeline, dead_letters=retrying, **options)
            left = store_remaining(path, retrying, summary.read)
    except OSError as error:
        raise InputError(
            f"cannot write the letters of {path} to its folder: {error.strerror}; "
            "check its permissions and free space"
        ) from error
    return replace(summary, dead_letters=str(path) if left else "")


@contextmanager
def _retry_file(path: Path, retrying: Path) -> Iterator[None]:
    """Create the file for dead letters that fail again. Remove it on errors: the original has all of them."""
    retrying.touch(mode=path.stat().st_mode & 0o777, exist_ok=False)
    try:
        yield
    except BaseException:
        retrying.unlink(missing_ok=True)
        raise
