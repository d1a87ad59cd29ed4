"""Disks that are full."""

import os
from pathlib import Path


def fill_disk(disk: Path, left: int) -> Path:
    """Leave so many bytes of a disk, and return the file that takes the others."""
    file = disk / "filling"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    file.write_bytes(bytes(free - left))
    return file
