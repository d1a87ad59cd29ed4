"""The image of shinglefold: slim, not root's, of the parts that there are, and copied from what there is."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINES = [
    line
    for line in (ROOT / "docker" / "Dockerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def arguments(instruction):
    return [line.split(" ", 1)[1] for line in LINES if line.startswith(f"{instruction} ")]


def test_every_line_is_an_instruction():
    known = {"FROM", "RUN", "WORKDIR", "COPY", "ARG", "USER", "VOLUME", "ENV", "ENTRYPOINT", "CMD"}
    assert {line.split(" ", 1)[0] for line in LINES} == known


def test_it_runs_on_a_slim_python_the_project_supports():
    for base in arguments("FROM"):
        version = re.fullmatch(r"python:(3\.\d+)-slim(?: AS build)?", base)[1]
        assert f"Programming Language :: Python :: {version}" in PROJECT["project"]["classifiers"]


def test_it_does_not_run_as_root():
    (user,) = arguments("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    # Whatever comes after it is not installed, only started.
    rest = LINES[LINES.index(f"USER {user}") :]
    assert not any(line.startswith(("RUN", "COPY")) for line in rest)


def test_its_parts_are_extras_of_the_project():
    (extras,) = (text.split("=", 1)[1].split(",") for text in arguments("ARG"))
    assert set(extras) <= set(PROJECT["project"]["optional-dependencies"])
    assert {"opensearch", "elasticsearch", "embedded"} <= set(extras)


def test_it_starts_the_command():
    assert arguments("ENTRYPOINT") == ['["shinglefold"]']
    assert "shinglefold" in PROJECT["project"]["scripts"]


def test_all_a_wheel_is_made_of_is_copied_and_no_more():
    text = (ROOT / "docker" / "Dockerfile.dockerignore").read_text("utf-8")
    kept = {line[1:] for line in text.splitlines() if line.startswith("!")}
    folders = {folder.split("/")[0] for folder in PROJECT["tool"]["setuptools"]["package-dir"].values()}
    assert kept == folders | {"pyproject.toml", "setup.cfg", PROJECT["project"]["readme"], "LICENSE"}
    assert all((ROOT / name).exists() for name in kept)
