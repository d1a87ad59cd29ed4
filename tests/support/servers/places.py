"""Where the tests keep servers: a folder that git ignores, and memory for what a run leaves nothing of."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
#: Environment: the folder in which servers run that end with the tests.
RUNS = "SHINGLEFOLD_TEST_RUNS"
_MEMORY = Path("/dev/shm")
#: Servers of a run keep some hundred megabytes, and others want some room, too.
_ROOM = 4 << 30


def cache() -> Path:
    """Return the folder for distributions, clients and runs; ``SHINGLEFOLD_CACHE`` names another."""
    folder = Path(os.environ.get("SHINGLEFOLD_CACHE", ROOT / ".cache")) / "engines"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def runs(lasting: bool = False) -> Path:
    """Return the folder in which servers run: in memory where there is room, else on the disk of the cache.

    A server syncs all it writes before it answers, and so do most changes of its indices; tests make many
    small ones. What it wrote outlives ``kill -9`` in memory as on a disk.

    Args:
        lasting: for servers that stay, by which speed may be measured: on the disk.
    """
    folder = cache() / "runs"
    if not lasting and RUNS in os.environ:
        folder = Path(os.environ[RUNS])
    elif not lasting and _has_room(_MEMORY):
        folder = _MEMORY / f"shinglefold-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _has_room(folder: Path) -> bool:
    """Tell whether there is room for servers, which unpack libraries of their own and load them."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    told = os.statvfs(folder)
    return told.f_bavail * told.f_frsize >= _ROOM and not told.f_flag & os.ST_NOEXEC
