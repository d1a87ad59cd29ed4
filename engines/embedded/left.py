"""What processes that were killed have left beside the indices: halves of new ones, and of deleted ones."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shinglefold.errors import EngineUnavailable
from shinglefold.locks import lock, stands_at

#: What an index that is being made, or deleted, is called meanwhile.
_NEW, _DELETED = "new", "deleted"
_NAME = re.compile(rf"\.[^.].*\.({_NEW}|{_DELETED})")
#: All there may be in the folder of an index, as files that are to replace others are called as well.
_CONTENT = re.compile(r"\.?(tantivy|catalog\.json|heads|journal)(\..+)?")


def new_of(folder: Path) -> Path:
    """Return the folder that an index is made in before it takes its place."""
    return folder.with_name(f".{folder.name}.{_NEW}")


def deleted_of(folder: Path) -> Path:
    """Return the folder that an index is deleted from."""
    return folder.with_name(f".{folder.name}.{_DELETED}")


@contextmanager
def made_apart(folder: Path) -> Iterator[Path]:
    """Yield an empty folder to make an index in, which nobody else uses or takes for left until this ends.

    What others have left that were killed goes first.

    Raises:
        OSError: it can't be made.
        EngineUnavailable: another process is making the index.
    """
    part = new_of(folder)
    clear_left(folder.parent)
    held = _held(part)
    if held is None:
        raise EngineUnavailable(
            f"creating {folder.name}: another process is making this index; run this again once it has"
        )
    try:
        for entry in part.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        yield part
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    finally:
        os.close(held)


def _held(part: Path) -> int | None:
    """Return what keeps a folder ours, made where it is missing; None where a living process has it.

    The system tells who is killed from who stands still: a lock lasts as long as its process.
    """
    while True:
        part.mkdir(parents=True, exist_ok=True)
        held = os.open(part, os.O_RDONLY)
        # Where a system has no locks, it is ours too.
        if lock(held) is False:
            os.close(held)
            return None
        if stands_at(held, part):
            return held
        # Whoever had it has finished, or cleared it away, between our two looks.
        os.close(held)


def clear_left(folder: Path) -> None:
    """Remove what killed processes have left in an engine's folder; what can't be removed stays."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if _NAME.fullmatch(entry.name) and entry.is_dir():
                _clear(Path(entry.path))


def remove(folder: Path) -> None:
    """Remove the folder of an index, and one elsewhere that it is a link to."""
    shutil.rmtree(folder.resolve(), ignore_errors=True)
    if folder.is_symlink():
        folder.unlink(missing_ok=True)


def _clear(left: Path) -> None:
    with suppress(OSError):
        names = os.listdir(left)
        # Another process may have made an empty one just now and not locked it yet.
        if not names or not all(map(_CONTENT.fullmatch, names)):
            return
        held = os.open(left, os.O_RDONLY)
        try:
            if lock(held):
                remove(left)
        finally:
            os.close(held)
