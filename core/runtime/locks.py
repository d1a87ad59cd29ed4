"""Who works on a file or in a folder: locks that last as long as a process lives, and no longer."""

import fcntl
import os
from pathlib import Path


def lock(file: int) -> bool | None:
    """Lock an open file or folder, without waiting, until it is closed or its process ends.

    Children that are forked meanwhile hold it, too.

    Returns:
        Whether it is ours now; None where the system has no locks for it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def stands_at(file: int, path: Path) -> bool:
    """Tell whether an open file or folder is still the one at a path, where another may have put its own.

    Raises:
        OSError: nobody may look; where nothing is there any more, it is not.
    """
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
