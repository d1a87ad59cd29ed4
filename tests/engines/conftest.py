"""Engines in temporary folders, with analysers simple enough to reckon with."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.engines.embedded.store import writer
from shinglefold.model.values import Token


def _words(text: str) -> list[Token]:
    return [Token(word[0].lower(), *word.span(), "any") for word in re.finditer(r"\w+", text)]


@pytest.fixture(scope="session")
def words() -> Callable[[str], list[Token]]:
    """An analyser that takes every word in lower case."""
    return _words


@pytest.fixture
def small_disk(small_disk: Path) -> Path:
    """A disk of 2 MB, which holds the commits of an engine before a test fills it."""
    subprocess.run(["mount", "-o", "remount,size=2m", small_disk], check=True)
    return small_disk


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path, _words) as opened:
        yield opened


@pytest.fixture
def late(monkeypatch):
    """Commits that come only when they are asked for."""
    monkeypatch.setattr(writer, "_AGE", 1e9)
