"""How a process runs, so that another can be started like it without the scripts that found out how."""

import os
from collections.abc import Mapping
from pathlib import Path


def as_it_runs(pid: int) -> Mapping[str, object]:
    """Return the command, the environment and the folder of a process; nothing where they are not told."""
    process = Path("/proc", str(pid))
    try:
        command = _split((process / "cmdline").read_bytes())
        variables = _split((process / "environ").read_bytes())
        folder = os.readlink(process / "cwd")
    except OSError:
        return {}
    env = dict(variable.split("=", 1) for variable in variables)
    return {"command": command, "env": env, "cwd": folder} if command else {}


def _split(data: bytes) -> list[str]:
    return [os.fsdecode(part) for part in data.split(b"\0")[:-1]]
