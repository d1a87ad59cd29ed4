"""Programs in other languages, with the packages they need installed on demand into a folder git ignores."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
#: Commands that install what a file names, in a folder of the cache.
_NPM = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
_MAVEN = ("mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib")


def run_node(folder: Path, script: str, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run a script of a folder with a package.json and return what it prints; skip where it can't run."""
    home = _installed("node", folder, _NPM, ("package-lock.json", "package.json"))
    return _run(["node", script, *arguments], folder, home, env)


def run_java(folder: Path, source: str, env: Mapping[str, str] | None = None) -> str:
    """Run a source file of a folder with a pom.xml and return what it prints; skip where it can't run."""
    home = _installed("java", folder, _MAVEN, ("pom.xml",))
    # Little work to start, as of the servers of tests.
    return _run(["java", "-XX:TieredStopAtLevel=1", "-cp", "lib/*", source], folder, home, env)


def run_here(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> str:
    """Run a command that needs no packages in a folder and return what it prints."""
    if shutil.which(command[0]) is None:
        _excuse(f"{command[0]} is not installed")
    return _finish(command, folder, env)


def _run(command: list[str], folder: Path, home: Path, env: Mapping[str, str] | None) -> str:
    if shutil.which(command[0]) is None:
        _excuse(f"{command[0]} is not installed")
    for file in folder.iterdir():
        if file.is_file():
            shutil.copy(file, home / file.name)
    return _finish(command, home, env or {})


def _finish(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> str:
    ran = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **env},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def _installed(kind: str, folder: Path, install: Sequence[str], files: tuple[str, ...]) -> Path:
    """Return the folder in which the packages that the first of some files names are installed."""
    tool = install[0]
    if shutil.which(tool) is None:
        _excuse(f"{tool} is not installed")
    named = hashlib.blake2b((folder / files[0]).read_bytes(), digest_size=6).hexdigest()
    home = Path(os.environ.get("SHINGLEFOLD_CACHE", _ROOT / ".cache")) / kind / named
    if (home / "done").exists():
        return home
    home.mkdir(parents=True, exist_ok=True)
    for name in files:
        shutil.copy(folder / name, home / name)
    ran = subprocess.run(install, cwd=home, capture_output=True, text=True, timeout=300, check=False)
    if ran.returncode:
        told = (ran.stderr.strip() or ran.stdout.strip() or "no reason").splitlines()
        _excuse(f"{tool} could not install the packages: {told[-1]}")
    (home / "done").touch()
    return home


def _excuse(reason: str) -> None:
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"CI must try the clients of other languages, but {reason}", pytrace=False)
    pytest.skip(f"no client: {reason}")
