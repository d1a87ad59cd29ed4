"""Files that survive a power failure, and locks between processes."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

from shinglefold.errors import ConfigError

try:
    import fcntl
except ImportError:  # Windows has none.
    fcntl = None  # type: ignore[assignment]

#: The characters kept of a file name; with prefix and suffix it must stay below 255 bytes.
_NAME = 50


def sync_folder(folder: Path) -> None:
    """Sync a folder to disk: without it, a power failure may lose the names of new files.

    Raises:
        OSError: the folder can't be synced.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def atomic_write(path: Path, mode: Literal["x", "xb"] = "x", errors: str = "strict") -> Iterator[IO[Any]]:
    """Replace a file atomically, after the new content is on disk; text is UTF-8.

    Raises:
        OSError: it can't be written; the earlier file is unchanged, and no leftover remains.
    """
    # A random name, which overwrites no file of the user.
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


def require_locks(what: str) -> None:
    """Check that the system can lock files.

    Args:
        what: the subject of the message, as "the embedded engine".

    Raises:
        ConfigError: it can't, as Windows.
    """
    if fcntl is None:
        raise ConfigError(
            f"{what} locks files, which this system can't: run it on Linux, macOS or WSL, or use an index "
            "on a server"
        )


def lock(file: int) -> bool | None:
    """Lock an open file or folder, without waiting, until it is closed or its process ends.

    Processes that are forked while it is locked have the lock, too.

    Returns:
        True if this process has the lock now, False if another one has it, None on a system without locks.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def is_same_file(file: int, path: Path) -> bool:
    """Return whether a path still leads to an open file or folder, and not to a replacement.

    Raises:
        OSError: the path can't be read.
    """
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
