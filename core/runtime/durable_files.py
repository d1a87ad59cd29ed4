"""What has to be found on the disk after a machine has lost its power."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

#: Characters of a name that leave room for what a name is given besides: a system takes 255 bytes.
_NAME = 50


def sync_folder(folder: Path) -> None:
    """Bring to the disk which names a folder has: what a file holds is of no use where its name is lost.

    Raises:
        OSError: it can't be done.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def atomic_write(path: Path, mode: Literal["x", "xb"] = "x", errors: str = "strict") -> Iterator[IO[Any]]:
    """Write what takes the place of a file in one step, once it is on the disk; text is UTF-8.

    Raises:
        OSError: it can't be written; the file of before is there still, and nothing beside it.
    """
    # Of a name that nobody has, as somebody's file may be called so.
    part = path.with_name(f".{path.name[:_NAME]}.{secrets.token_hex(4)}.part")
    text = {} if mode == "xb" else {"encoding": "utf-8", "errors": errors}
    try:
        with part.open(mode, **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def lock(file: int) -> bool | None:
    """Lock an open file or folder, without waiting, until it is closed or its process ends.

    Children that are forked meanwhile hold it, too.

    Returns:
        Whether it is ours now; None where the system has no locks for it.
    """
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def is_same_file(file: int, path: Path) -> bool:
    """Tell whether an open file or folder is still the one at a path, where another may have put its own.

    Raises:
        OSError: nobody may look; where nothing is there any more, it is not.
    """
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
