"""Commands that are told to end: by Ctrl-C, by SIGTERM, by a full disk."""

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.commands import PROGRAM

from shinglefold.engines.embedded import EmbeddedEngine

_PATIENCE = 240


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command that signals reach; shells start background jobs with Ctrl-C ignored."""
    running: list[subprocess.Popen[str]] = []

    def run(*arguments: str, **env: str) -> subprocess.Popen[str]:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        running.append(
            subprocess.Popen(
                [*PROGRAM, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, **env},
            )
        )
        signal.signal(signal.SIGINT, before)
        return running[-1]

    yield run
    for command in running:
        command.kill()
        command.communicate()


def until(happened: Callable[[], object]) -> None:
    end = time.monotonic() + _PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.long(every=4)
@pytest.mark.parametrize(
    ("workers", "number", "code", "word"),
    [
        ("1", 15, 143, "terminated"),
        ("2", 2, 130, "interrupted"),
        pytest.param("1", 2, 130, "interrupted", marks=pytest.mark.long),
        pytest.param("2", 15, 143, "terminated", marks=pytest.mark.long),
    ],
)
def test_indexing_ends_with_a_summary_that_adds_up(start, tmp_path: Path, number, code, word, workers):
    command = start("index", "-", "--json", "--workers", workers, "--engine", str(tmp_path / "engine"))
    for n in range(3_000):
        body = f"слово и ещё {'много ' * (n % 9)}слов подряд на странице"
        command.stdin.write(json.dumps({"id": str(n), "body": body}) + "\n")
    command.stdin.flush()
    # A pipe holds less than that: the command is reading, and the input stays open.
    time.sleep(1)
    command.send_signal(number)
    out, err = command.communicate(timeout=_PATIENCE)
    told = json.loads(out)
    assert (command.returncode, err, told["stopped"]) == (code, f"stopped: {word}\n", word)
    assert told["read"] == told["indexed"] + told["dropped"] + told["failed"]


@pytest.mark.parametrize(("number", "code"), [(2, 130), pytest.param(15, 143, marks=pytest.mark.long)])
def test_a_demo_leaves_nothing_behind(start, tmp_path: Path, number, code):
    command = start("demo", TMPDIR=str(tmp_path))
    until(lambda: list(tmp_path.glob("shinglefold-*")))
    command.send_signal(number)
    out, _ = command.communicate(timeout=_PATIENCE)
    assert (command.returncode, out) == (code, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.long)]
)
def test_a_signal_ends_a_command_quietly(start, number, code):
    command = start("groups", "--pairs", "-")
    command.stdin.write("\n" * (1 << 20))
    command.stdin.flush()
    # More blank lines than a pipe holds: the command is reading them.
    command.send_signal(number)
    out, err = command.communicate(timeout=_PATIENCE)
    assert (command.returncode, out, err) == (code, "", "")


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(2, 130, "interrupted"), pytest.param(15, 143, "terminated", marks=pytest.mark.long)],
)
def test_adding_ends_with_a_summary_of_what_is_stored(start, run, tmp_path: Path, number, code, word):
    engine = tmp_path / "engine"
    assert run("setup", "news", "--engine", engine).code == 0
    command = start("add", "-", "--index", "news", "--json", "--engine", str(engine))
    command.stdin.write("".join(_unlike(n) for n in range(700)))
    command.stdin.flush()
    until(lambda: _stored(engine) >= 300)
    command.send_signal(number)
    out, err = command.communicate(timeout=_PATIENCE)
    told = json.loads(out)
    assert (command.returncode, told["stopped"]) == (code, word)
    assert err == f"stopped: {word}; what was not added can be given again\n"
    assert told["read"] == told["accepted"] + told["refused"] + told["failed"] + told["unknown"]
    assert told["unknown"] == 0
    assert _stored(engine) == told["accepted"] == len(told["documents"]) >= 300


def _unlike(number: int) -> str:
    return json.dumps({"id": str(number), "body": os.urandom(60).hex(" ")}) + "\n"


def _stored(engine: Path) -> int:
    with EmbeddedEngine(engine, str.split) as opened:
        found: int = opened.search("news", {"size": 0, "track_total_hits": True})["hits"]["total"]["value"]
    return found


def test_adding_on_a_full_disk_tells_what_is_stored(run, small_disk: Path):
    engine = small_disk / "engine"
    assert run("setup", "news", "--engine", engine).code == 0
    lines = "\n".join(json.dumps({"id": str(n), "body": os.urandom(2_000).hex(" ")}) for n in range(900))
    ran = run("add", "-", "--index", "news", "--json", "--engine", engine, stdin=lines).check(
        1, "the disk is full"
    )
    assert "a fault of shinglefold" not in ran.err


def test_temporary_files_on_a_full_disk_name_the_remedy(run, small_disk: Path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    lines = "\n".join(json.dumps({"id": str(n), "body": os.urandom(2_000).hex(" ")}) for n in range(900))
    ran = run("groups", "-", stdin=lines)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines() == [
        "error: cannot write temporary files: the disk is full; make room, or set TMPDIR to a folder on "
        "another disk"
    ]


def test_a_full_disk_is_told_at_once_with_a_summary_that_adds_up(run, small_disk: Path):
    lines = "\n".join(json.dumps({"id": str(n), "body": os.urandom(2_000).hex()}) for n in range(700))
    ran = run("index", "-", "--json", "--workers", "1", "--engine", small_disk / "engine", stdin=lines)
    told = ran.json()
    assert ran.code == 1
    assert "the disk is full" in told["stopped"]
    assert "\nstopped: " in f"\n{ran.err}"
    assert told["read"] == told["indexed"] + told["failed"]
    assert told["indexed"] == 0
    assert told["seconds"]["index"] < 20


def _names() -> set[str]:
    return {path.name for path in Path("data").glob("[!.]*")}


@pytest.fixture
def left(run, start) -> str:
    """The index that a killed ``index --recreate`` has left beside ``news``."""
    where = ("--index", "news", "--engine", "data", "--workers", "1")
    assert run("index", "-", *where, stdin=_unlike(0)).code == 0
    command = start("index", "-", *where, "--recreate")
    command.stdin.write("".join(map(_unlike, range(3_000))))
    command.stdin.flush()
    until(lambda: len(_names()) > 1)
    command.kill()
    command.wait()
    (name,) = _names() - {"news"}
    return name


@pytest.mark.long
def test_what_a_killed_run_left_is_told_and_stays_until_it_is_deleted(run, left):
    where = ("--engine", "data", "--workers", "1")
    for told in (
        run("stats", "--engine", "data").err,
        run("doctor", "news", *where).out,
        run("index", "-", "--index", "news", *where, "--recreate", stdin=_unlike(0)).err,
    ):
        assert f"the index {left!r}, with " in told
        assert "was being built by an index --recreate of 'news', which goes on or was killed" in told
        command = told.partition("delete what it left: ")[2].splitlines()[0]
        assert shlex.split(command) == ["shinglefold", "delete", left, "--yes", "--engine", "data"]
    assert _names() == {"news", left}
    assert run(*shlex.split(command)[1:]).code == 0
    assert _names() == {"news"}
    assert not run("stats", "--engine", "data").err


@pytest.mark.long
def test_an_index_with_such_a_name_beside_none_is_left_out(run, left):
    alone = left.replace("news", "logs")
    Path("data", left).rename(Path("data", alone))
    ran = run("stats", "--engine", "data")
    assert (ran.code, ran.err) == (0, "")
    assert alone in ran.out


@pytest.mark.long
def test_a_signed_pipe_is_begun_anew_by_the_command_that_is_told(start):
    command = start("sign", "-", "-o", "signed.jsonl", "--workers", "1")
    for n in range(3_000):
        command.stdin.write(json.dumps({"id": str(n), "body": f"слово и ещё слов {n} подряд"}) + "\n")
    command.stdin.flush()
    until(lambda: Path("signed.jsonl.unfinished/output").exists())
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=_PATIENCE)
    told = err.splitlines()[-1].partition("; to start from the beginning: shinglefold ")[2]
    again = start(*shlex.split(told))
    again.communicate('{"id": "a", "body": "слово и ещё слов подряд"}\n', timeout=_PATIENCE)
    assert (again.returncode, Path("signed.jsonl").read_text("utf-8").count("\n")) == (0, 1)
