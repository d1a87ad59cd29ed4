"""Stops a test run whose sources are not linked under their package names."""

import tomllib
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parent


def pytest_configure() -> None:
    """Refuse to run when a module of the mapped folders can't be imported by its package name.

    A strict editable install links each module when it is installed. A new module can't be imported until the
    next install, so tests would run without it.
    """
    linked = Path((find_spec("shinglefold") or ModuleSpec("", None)).origin or "").parent
    missing = [name for name in _modules() if not linked.joinpath(*name.split("/")).exists()]
    if missing:
        raise pytest.UsageError(f"not linked: {', '.join(missing)}; run: make dev")


def _modules() -> list[str]:
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    return [
        "/".join([*package.split(".")[1:], path.name])
        for package, folder in settings["package-dir"].items()
        for path in sorted((_ROOT / folder).glob("*.py"))
    ]
