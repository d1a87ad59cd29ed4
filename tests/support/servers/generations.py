"""Clients of another generation than the one installed, each in a folder of its own."""

import subprocess
import sys
from pathlib import Path

from support.servers.kinds import Kind, Unavailable
from support.servers.places import cache


def client_folder(kind: Kind) -> Path:
    """Return a folder with the client for a server, to stand first on ``PYTHONPATH``; made once."""
    folder = cache() / "clients" / kind.name
    if not (folder / ".complete").exists():
        install = ["install", "--quiet", "--target", str(folder), "--upgrade", kind.client]
        run = subprocess.run(
            [sys.executable, "-m", "pip", *install], check=False, capture_output=True, text=True
        )
        if run.returncode:
            raise Unavailable(f"pip can't install {kind.client}: {run.stderr.strip()[-300:]}")
        (folder / ".complete").touch()
    return folder
