"""What has to be found on the disk after a machine has lost its power."""

import os
from pathlib import Path


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
