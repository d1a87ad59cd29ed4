"""Stops a test run whose sources are not linked under their package names."""

import tomllib
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parent


def pytest_configure() -> None:
    """Refuse to run when a module of the mapped folders can't be imported by its package name.

    A strict editable install links each module when it is made, so a new one is invisible until it is made
    again, and tests would pass or fail on what is not there.
    """
    from importlib.util import find_spec

    unlinked = [name for name in _modules() if find_spec(name) is None]
    if unlinked:
        raise pytest.UsageError(f"not linked: {', '.join(unlinked)}; run: make dev")


def _modules() -> list[str]:
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    return [
        package if path.stem == "__init__" else f"{package}.{path.stem}"
        for package, folder in settings["package-dir"].items()
        for path in sorted((_ROOT / folder).glob("*.py"))
    ]
