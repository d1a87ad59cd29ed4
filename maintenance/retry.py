"""Retry dead letters: check the file, index its documents, and keep in it only those that failed again."""

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
from shinglefold.ingest.readers.encodings import announced
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.ingest.writing.accounting import Summary
from shinglefold.ingest.writing.dead_letters import BEGINNING, is_letter, replay
from shinglefold.ingest.writing.indexer import index_documents
from shinglefold.options.validation import check_path
from shinglefold.runtime.durable_files import atomic_write, is_same_file, lock

_WRITABLE = S_IWUSR | S_IWGRP | S_IWOTH


class ForeignFile(InputError):
    """The file holds something else than dead letters."""


def check_letters(path: Path) -> None:
    """Check that a file can be replaced and holds dead letters and nothing else; it is only read.

    Raises:
        InputError: it does not, or is not there.
    """
    try:
        if path.is_symlink():
            raise InputError(f"{path} is a link; give the file itself: {path.resolve()}")
        mode = path.stat().st_mode
        if path.is_dir():
            raise InputError(f"{path} is a folder; give the dead-letter file in it")
        if not S_ISREG(mode):
            raise InputError(f"{path} is no file; dead letters are kept in one")
        if not mode & _WRITABLE or not os.access(path, os.W_OK):
            raise InputError(
                f"{path} is write-protected, and what fails again is kept in it; "
                f"allow that with: chmod u+w {quote(str(path))}"
            )
        with path.open("rb") as file:
            if (encoding := announced(file.peek(4))) != "utf-8":
                raise InputError(f"the dead-letter file {path} is in {encoding}; save it as UTF-8")
            _check_lines(path, file)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error


def _check_lines(path: Path, lines: Iterator[bytes]) -> None:
    whole = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if _is_letter(line):
            whole += 1
        elif not _is_damaged(line):
            raise ForeignFile(
                f"{path} was left as it is: line {number} is no dead letter. Only what --dead-letters wrote "
                "is tried again"
            )
    if not whole:
        raise InputError(f"{path} was left as it is: it holds no dead letters, so there is nothing to do")


def _is_letter(line: bytes) -> bool:
    try:
        return is_letter(json.loads(line))
    except (ValueError, RecursionError):
        return False


def _is_damaged(line: bytes) -> bool:
    """Tell whether a line began as a letter: a run that was killed leaves half of one."""
    return line.startswith(BEGINNING) or BEGINNING.startswith(line.strip())


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other runs from the letters of a file.

    Raises:
        InputError: another run is at work on them.
    """
    with path.open("rb") as file:
        # Where another stands there, a run has replaced it in between, and a third may have that locked.
        if not (lock(file.fileno()) and is_same_file(file.fileno(), path)):
            raise InputError(f"another run is trying the letters of {path} now; wait for its end")
        yield


def take_back(path: Path, aside: Path) -> None:
    """Put letters that a run which was killed left aside back into their file, but for those it has.

    Raises:
        InputError: what is in the place of such letters is something else.
    """
    if not aside.is_symlink() and not aside.exists():
        return
    if aside.is_symlink() or not aside.is_file() or aside.stat().st_size:
        check_letters(aside)
    if not path.exists():
        aside.rename(path)
        return
    with aside.open("rb") as left, path.open("rb") as file:
        known = {_content(line) for line in file}
        lost = [line for line in left if line.strip() and _content(line) not in known]
    if lost:
        # Before the others: a letter that was mended since then comes later and has the last word.
        with path.open("rb") as file, atomic_write(path, "xb") as both:
            both.writelines(line if line.endswith(b"\n") else line + b"\n" for line in lost)
            shutil.copyfileobj(file, both)
            shutil.copymode(path, both.name)
    aside.unlink()


def keep_what_is_left(path: Path, aside: Path, settled: int) -> bool:
    """Replace a file by the letters aside and those of its own behind the first ``settled``.

    Returns:
        Whether any are left; the file is removed where none are.
    """
    with path.open("rb") as file, aside.open("ab") as left:
        for line in file:
            if settled <= 0:
                left.write(line)
            settled -= bool(line.strip())
        left.flush()
        if left.tell():
            os.fsync(left.fileno())
            shutil.copymode(path, aside)
            aside.replace(path)
        else:
            path.unlink()
            aside.unlink()
        if late := file.read():
            # Who has it open for appending wrote them a moment ago, and finds the new file with the next one.
            with path.open("ab") as new:
                new.write(late)
        return path.exists()


def _content(line: bytes) -> str:
    """Return a letter without its reason, which differs each time it fails."""
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
    """Index the documents of a dead-letter file; the file is removed where none fails again.

    The file stays as it is until the last letter is settled, and is then replaced in one step by those that
    failed again, kept under its name and ``.retrying`` meanwhile, and those not yet tried where the run was
    cut short. Documents with ids are never stored twice.

    Args:
        options: further ones for ``index_documents``, but not its ``dead_letters``.

    Raises:
        InputError: the file holds something else, or can't be replaced; nothing was touched.
    """
    path = check_path("path", path)
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
