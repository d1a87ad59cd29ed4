"""Where the tests keep servers: a folder that git ignores."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def cache() -> Path:
    """Return the folder for distributions, clients and runs; ``SHINGLEFOLD_CACHE`` names another."""
    folder = Path(os.environ.get("SHINGLEFOLD_CACHE", ROOT / ".cache")) / "engines"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
