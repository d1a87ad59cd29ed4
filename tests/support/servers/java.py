"""Find a Java of the right age."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from support.servers.kinds import Unavailable

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def java_home(oldest: int, newest: int) -> Path:
    """Return the home of the newest installed Java between two major versions."""
    found = {version: home for home, version in _installed() if oldest <= version <= newest}
    if not found:
        there = ", ".join(str(version) for _, version in _installed()) or "none"
        raise Unavailable(f"needs Java {oldest} to {newest}; installed: {there}")
    return found[max(found)]


@cache
def _installed() -> tuple[tuple[Path, int], ...]:
    homes = dict.fromkeys(home.resolve() for home in _homes() if (home / "bin" / "java").exists())
    versions = ((home, _major(home)) for home in homes)
    return tuple((home, version) for home, version in versions if version)


def _homes() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    yield from sorted(Path("/usr/lib/jvm").glob("*"))
    yield from sorted(Path("/Library/Java/JavaVirtualMachines").glob("*/Contents/Home"))
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parent.parent


def _major(home: Path) -> int:
    """Return what ``java -version`` says, 0 where it can't be run."""
    try:
        run = subprocess.run(
            [home / "bin" / "java", "-version"], check=False, capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = _VERSION.search(run.stderr + run.stdout)
    return int(match[1]) if match else 0
