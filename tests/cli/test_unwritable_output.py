"""Output that can't be written: one line that says so, exit code 1, and never a traceback."""

import os
import subprocess
import sys

import pytest

_COMMAND = [sys.executable, "-c", "import sys; from shinglefold.cli.main import main; sys.exit(main())"]
_TEXTS = ["compare", "--text", "the bridge is closed until May", "the bridge is open until May"]
_FULL = "/dev/full"

pytestmark = pytest.mark.skipif(not os.path.exists(_FULL), reason=f"needs {_FULL}")


def _into_a_full_disk(*arguments: str, **environment: str) -> tuple[int, str]:
    with open(_FULL, "w") as full:
        done = subprocess.run(
            [*_COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            timeout=60,
            check=False,
        )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    [
        (_TEXTS, ""),
        ([*_TEXTS, "--json"], ""),
        (_TEXTS, "1"),
        (["plugins", "--json"], "1"),
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


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_another_error_is_told_too(unbuffered):
    code, told = _into_a_full_disk("search", "x", "--json", PYTHONUNBUFFERED=unbuffered)
    assert code == 1
    assert "pages" in told.splitlines()[0]
    assert "cannot write to standard output" in told.splitlines()[1]
    assert len(told.splitlines()) == 2


@pytest.mark.parametrize("arguments", [["search", "x"], [*_TEXTS, "--languge"], _TEXTS])
def test_remarks_that_can_not_be_written_change_no_exit_code(arguments):
    codes = []
    for place in (_FULL, os.devnull):
        with open(place, "w") as errors:
            done = subprocess.run(
                [*_COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=errors, timeout=60, check=False
            )
        codes.append(done.returncode)
    assert codes[0] == codes[1]


@pytest.mark.parametrize("path", ["nowhere/failed.jsonl", "."])
def test_a_dead_letter_file_that_can_not_be_written_is_told_before_the_first_document(run, path):
    ran = run("index", "-", "--workers", "1", "--dead-letters", path, stdin='{"id": "1", "body": "x"}\n')
    assert ran.code == 1
    assert f"cannot write the dead-letter file {path}" in ran.err
    assert run("search", "x").code == 1 or run("search", "x", "--json").json()["hits"]["total"]["value"] == 0
