"""Node programs of the tests, with what they need installed on demand into a folder git ignores."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


def run_node(folder: Path, script: str, *arguments: str) -> str:
    """Run a script of a folder with a package.json and return what it prints; skip where it can't run."""
    home = _installed(folder)
    shutil.copy(folder / script, home / script)
    ran = subprocess.run(
        ["node", script, *arguments], cwd=home, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _installed(folder: Path) -> Path:
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            _excuse(f"{tool} is not installed")
    lock = (folder / "package-lock.json").read_bytes()
    home = (
        Path(os.environ.get("SHINGLEFOLD_CACHE", _ROOT / ".cache"))
        / "node"
        / hashlib.blake2b(lock, digest_size=6).hexdigest()
    )
    if (home / "done").exists():
        return home
    home.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(folder / name, home / name)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    ran = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=300, check=False)
    if ran.returncode:
        _excuse(f"npm could not install the packages: {(ran.stderr.strip() or 'no reason').splitlines()[-1]}")
    (home / "done").touch()
    return home


def _excuse(reason: str) -> None:
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"CI must try the JavaScript client, but {reason}", pytrace=False)
    pytest.skip(f"no JavaScript client: {reason}")
