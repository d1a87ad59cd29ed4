"""Commands run in the process, in a folder of their own, and the example corpus indexed once."""

import contextlib
import gzip
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.commands import Ran, json_lines

from shinglefold.cli.main import main
from shinglefold.examples import articles

Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Whoever runs the tests may have a width set; lines that are piped have none.
    monkeypatch.delenv("COLUMNS", raising=False)
    for name in [name for name in os.environ if name.startswith("SHINGLEFOLD_")]:
        if name != "SHINGLEFOLD_DATA":
            monkeypatch.delenv(name)
    # More processes take longer to start than these documents take.
    monkeypatch.setenv("SHINGLEFOLD_WORKERS", "1")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command; ``stdin`` is what it reads there."""

    def command(*arguments: object, stdin: str = "") -> Ran:
        monkeypatch.setattr(
            sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogatepass")))
        )
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return command


@pytest.fixture(scope="session")
def examples_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example corpus as a file."""
    path = tmp_path_factory.mktemp("examples") / "articles.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.write(json_lines(*articles()))
    return path


@pytest.fixture(scope="session")
def engine_folder(examples_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An engine with the example corpus in the index ``pages``; to be read only."""
    folder = tmp_path_factory.mktemp("engine")
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["index", str(examples_file), "--engine", str(folder), "--workers", "1"]) == 0
    return folder
