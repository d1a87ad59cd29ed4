"""Promises about the tree as a whole."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    "core",
    "canon",
    "sketch",
    "passages",
    "relatives",
    "ingest",
    "offline",
    "maintenance",
    "engines",
    "rerank",
    "grouping",
    "api",
    "plugins",
    "testing",
    "cli",
    "examples",
)


def tracked(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "-co", "--exclude-standard", *patterns]
    try:
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.splitlines() if (ROOT / name).is_file()]


def test_files_stay_small():
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked("*.py")
        if (lines := len(path.read_text("utf-8").splitlines())) > 450
    }
    assert not long


def test_no_file_names_a_machine_or_a_package_registry():
    told = re.compile(r"/work/|/root/|/home/\w|index-url|registry\.npmjs|pypi\.org/simple")
    own = Path(__file__).resolve()
    guilty = [
        str(path.relative_to(ROOT))
        for path in tracked("*.py", "*.toml", "*.md", "*.cfg", "*.yml", "*.json", "Makefile", ".ci", "docker")
        if path != own and told.search(path.read_text("utf-8"))
    ]
    assert not guilty


def test_the_rule_that_core_stands_alone_is_about_all_of_core():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (rule,) = [one for one in settings["contracts"] if one["name"] == "core stands alone"]
    parts = [path for path in (ROOT / "core").iterdir() if path.is_dir() or path.suffix == ".py"]
    modules = {f"shinglefold.{path.stem}" for path in parts if path.stem[0] != "_"}
    assert set(rule["source_modules"]) == modules
    rooms = {f"shinglefold.{folder}" for folder in SOURCES if folder != "core"}
    assert set(rule["forbidden_modules"]) == rooms


def test_there_is_no_room_called_utils():
    assert not [path for path in tracked("*.py") if path.stem in {"utils", "helpers", "misc", "common"}]


def test_every_folder_is_explained_in_the_architecture():
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    folders = {*SOURCES, "tests", "bench", "docs", "docker"}
    assert not [folder for folder in sorted(folders) if f"`{folder}/`" not in text]
