"""Output that can't be written: one line that says so, exit code 1, and never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import PROGRAM

from shinglefold.cli.main import main

_TEXTS = ["compare", "--text", "the bridge is closed until May", "the bridge is open until May"]
_FULL = "/dev/full"
_CLOSED = "error: cannot write to standard output: it is closed; what was to be shown is lost"

pytestmark = pytest.mark.skipif(not os.path.exists(_FULL), reason=f"needs {_FULL}")


def _into_a_full_disk(*arguments: str, **environment: str) -> tuple[int, str]:
    with open(_FULL, "w") as full:
        done = subprocess.run(
            [*PROGRAM, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            timeout=60,
            check=False,
        )
    return done.returncode, done.stderr.decode()


@pytest.mark.long(every=8)
@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    [
        (_TEXTS, ""),
        (_TEXTS, "1"),
        (["--help"], "1"),
        (["search", "--help"], ""),
    ],
)
def test_standard_output_on_a_full_disk_is_an_error_in_one_line(arguments, unbuffered):
    code, told = _into_a_full_disk(*arguments, PYTHONUNBUFFERED=unbuffered)
    assert code == 1
    assert told.splitlines() == [
        "error: cannot write to standard output: No space left on device; what was to be shown is lost"
    ]


@pytest.mark.long(every=2)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_another_error_is_told_too(unbuffered):
    code, told = _into_a_full_disk("search", "x", "--json", PYTHONUNBUFFERED=unbuffered)
    assert code == 1
    assert "pages" in told.splitlines()[0]
    assert "cannot write to standard output" in told.splitlines()[1]
    assert len(told.splitlines()) == 2


@pytest.mark.long(every=9)
@pytest.mark.parametrize("arguments", [["search", "x"], [*_TEXTS, "--languge"], _TEXTS])
def test_remarks_that_can_not_be_written_change_no_exit_code(arguments):
    codes = []
    for place in (_FULL, os.devnull):
        with open(place, "w") as errors:
            done = subprocess.run(
                [*PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=errors, timeout=60, check=False
            )
        codes.append(done.returncode)
    assert codes[0] == codes[1]


@pytest.mark.parametrize("path", ["nowhere/failed.jsonl", "."])
def test_a_dead_letter_file_that_can_not_be_written_is_told_before_the_first_document(run, path):
    run("index", "-", "--workers", "1", "--dead-letters", path, stdin='{"id": "1", "body": "x"}\n').check(
        1, f"cannot write the dead-letter file {path}"
    )
    assert run("search", "x").code == 1 or run("search", "x", "--json").json()["hits"]["total"]["value"] == 0


@pytest.fixture(scope="module")
def library(examples_file, tmp_path_factory) -> Path:
    """An index with groups and passages, and files beside it."""
    place = tmp_path_factory.mktemp("library")
    made = ["index", str(examples_file), "--groups", "--passages", "--workers", "1"]
    assert main([*made, "--engine", str(place / "engine")]) == 0
    (place / "pages.jsonl").write_text(
        "".join(json.dumps({"id": n, "body": "a b c d e f g"}) + "\n" for n in "ab")
    )
    (place / "text.txt").write_text("The old bridge is closed until Monday because the river rises")
    return place


#: Every command that writes lines of its own, and is not above.
_EVERY = (
    *(
        "similar ru-bridge-repair-1",
        "matches TEXT",
        "compare ru-bridge-repair-1 ru-bridge-repair-2 --index pages",
    ),
    *("compare TEXT TEXT", "groups FILE --pairs", "groups FILE", "groups FILE --csv", "advise sample FILE"),
    *(
        "advise width --shingles 99",
        "advise layout",
        "index FILE --dry-run",
        "regroup pages",
        "doctor pages --fix",
    ),
    *("report pages", "stats", "stats pages", "doctor pages", "setup pages", "info", "search bridge"),
    *("add FILE --index pages --policy tag", "index FILE", "delete pages --dry-run", "backfill pages"),
)


@pytest.fixture
def ended(library, monkeypatch, capsys):
    """Run a command with another standard output; return its exit code and what it said beside it."""

    def run(command: str, output) -> tuple[int, list[str]]:
        files = {"FILE": str(library / "pages.jsonl"), "TEXT": str(library / "text.txt")}
        words = [files.get(word, word) for word in command.split()]
        with monkeypatch.context() as patch:
            patch.setenv("SHINGLEFOLD_DATA_DIR", str(library / "engine"))
            patch.setattr(sys, "stdout", output)
            return main(words), capsys.readouterr().err.splitlines()

    return run


@pytest.mark.long(every=12)
@pytest.mark.parametrize("command", _EVERY)
def test_no_command_loses_its_output_silently(ended, command):
    with open(_FULL, "w") as full:
        code, told = ended(command, full)
    lost = "error: cannot write to standard output: No space left on device; what was to be shown is lost"
    assert (code, told[-1]) == (1, lost)
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        code, told = ended(command, closed)
    assert (code, [line for line in told if line.startswith("error")]) == (141, [])
    # As Python has it where a shell has closed it.
    code, told = ended(command, None)
    assert (code, told[-1]) == (1, _CLOSED)


@pytest.mark.long(every=4)
@pytest.mark.parametrize("command", [["stats"], ["stats", "--json"], ["--help"], ["--version"]])
def test_a_closed_standard_output_is_an_error_in_one_line(command):
    done = subprocess.run(
        ["sh", "-c", '"$0" "$@" >&-', *PROGRAM, *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.splitlines()) == (1, [_CLOSED])
