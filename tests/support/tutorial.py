"""The commands of docs/tutorial.md, run as they are typed, on whatever engine."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tutorial.md").read_text("utf-8")


class Step(NamedTuple):
    """A command, and lines that it prints, in this order."""

    command: str
    shown: list[str]


def steps() -> Iterator[Step]:
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            yield Step(command, shown)


def write_files(folder: Path) -> None:
    """Write the program the page tells to save."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (folder / "page.py").write_text(code, "utf-8")


def run(command: str, folder: Path) -> str:
    """Run a command and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHINGLEFOLD_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**environment, "PATH": path, "COLUMNS": "100", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def on_server(command: str, url: str) -> str:
    """The same command for a server, as the end of the page shows it."""
    if command.startswith("shinglefold "):
        return f"{command} --engine {url}"
    return command.replace("page.py .shinglefold", f"page.py {url}")
