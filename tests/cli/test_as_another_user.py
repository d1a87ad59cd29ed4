"""Commands of a user who may not write here, nor read everything: what works does, the rest is told."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
from support.commands import Ran

from shinglefold.cli.main import main

_PROGRAM = """
import contextlib, io, json, sys
from shinglefold.cli.main import main

ran = []
for words in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())) as out:
        with contextlib.redirect_stderr(io.StringIO()) as err:
            code = main(words)
    out.flush()
    ran.append([code, out.buffer.getvalue().decode(), err.getvalue()])
print(json.dumps(ran))
"""
#: Root may do anything: then the files are somebody else's, and it gives up what makes it stronger.
_OTHER = 65534
_LOWERED = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner")
_TOLD = ("ermission", "read-only: you may not write", "chmod u+w", "no folder . that can be written")
_BODY = "The old bridge is closed until Monday because the river rises, buses take another way"
#: What works.
_WORKS = (
    "search bridge",
    "similar a",
    "compare a b --index pages",
    "matches a.txt",
    "stats pages",
    "stats",
    "doctor pages --workers 1",
    "report pages",
    "regroup pages --dry-run",
    "doctor pages --fix",
    "setup pages",
    "sign pages.jsonl --workers 1",
    "groups --pairs pages.jsonl --workers 1",
    "groups pages.jsonl --workers 1",
    "compare a.txt a.txt",
    "advise sample pages.jsonl --workers 1",
)
#: What does not, and the file that is named.
_REFUSED = {
    "index pages.jsonl --workers 1": "data",
    "index pages.jsonl --engine other --workers 1": "other",
    "index secret.jsonl --engine other": "secret.jsonl",
    "index pages.jsonl --dead-letters failed.jsonl": "failed.jsonl",
    "index pages.jsonl --pipeline secret.jsonl": "secret.jsonl",
    "index pages.jsonl --mapping secret.jsonl": "secret.jsonl",
    "add pages.jsonl": "data",
    "backfill pages --workers 1": "data",
    "setup pages --preset classic": "data",
    "delete pages --yes": "data",
    "delete pages --id a --yes": "data",
    "regroup pages --linkage connected": "data",
    "index letters.jsonl --replay": "letters.jsonl",
    "search bridge --config secret.jsonl": "secret.jsonl",
    "search bridge --engine hidden": "hidden",
    "sign pages.jsonl -o signed.jsonl": "signed.jsonl",
    "sign secret.jsonl": "secret.jsonl",
    "sign pages.jsonl --dead-letters failed.jsonl": "failed.jsonl",
    "groups --pairs secret.jsonl": "secret.jsonl",
    "compare secret.jsonl a.txt": "secret.jsonl",
    "compare a.txt a.txt --page page.html": "page.html",
    "report pages --page page.html": "page.html",
    "index secret.jsonl --dry-run": "secret.jsonl",
    "similar secret.jsonl": "secret.jsonl",
    "matches secret.jsonl": "secret.jsonl",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Iterator[Path]:
    """A folder with an index and documents that can't be written to, and some of them not read."""
    if os.getuid() == 0 and which(_LOWERED[0]) is None:
        pytest.skip(f"root needs {_LOWERED[0]} to be like other users")
    place = tmp_path_factory.mktemp("anothers")
    lines = "".join(json.dumps({"id": id_, "body": f"{_BODY} {id_}"}) + "\n" for id_ in "abc")
    for name in ("pages.jsonl", "secret.jsonl"):
        (place / name).write_text(lines)
    (place / "a.txt").write_text(_BODY)
    letter = {"reason": "x", "stage": "read", "line": 1, "source": "a", "raw": "b"}
    (place / "letters.jsonl").write_text(json.dumps(letter) + "\n")
    (place / "pages").mkdir()
    for name in ("open.html", "closed.html"):
        (place / "pages" / name).write_text(f"<p>{_BODY} {name}")
    for engine in ("data", "hidden"):
        made = ["index", str(place / "pages.jsonl"), "--groups", "--passages", "--workers", "1"]
        assert main([*made, "--engine", str(place / engine)]) == 0
    everything = [place, *place.rglob("*")]
    closed = {place / "secret.jsonl", place / "pages" / "closed.html", place / "hidden"}
    for one in everything:
        if os.getuid() == 0:
            os.chown(one, _OTHER, _OTHER)
        one.chmod(0 if one in closed else 0o555 if one.is_dir() else 0o444)
    yield place
    for one in everything:
        one.chmod(0o755 if one.is_dir() or one.name == "hidden" else 0o644)


@pytest.fixture(scope="module")
def ran(place) -> dict[str, Ran]:
    """What became of each command, run by another user."""
    commands = [*_WORKS, *_REFUSED, "sign pages", "groups --pairs pages"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHINGLEFOLD_")}
    done = subprocess.run(
        [*(_LOWERED if os.getuid() == 0 else ()), sys.executable, "-c", _PROGRAM],
        input=json.dumps([[*command.split()] for command in commands]),
        cwd=place,
        env={**environment, "SHINGLEFOLD_DATA_DIR": "data", "HOME": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {command: Ran(*one) for command, one in zip(commands, json.loads(done.stdout), strict=True)}


@pytest.mark.long(every=16)
@pytest.mark.parametrize("command", _WORKS)
def test_what_only_reads_works(ran, command):
    assert ran[command].code == 0
    # What sign and groups write to standard output has its counts beside it.
    assert not ran[command].err or command.startswith(("sign", "groups"))


@pytest.mark.parametrize("command", _REFUSED)
def test_what_would_write_or_read_more_is_told_in_words(ran, command):
    code, _, err = ran[command]
    assert code in (1, 2)
    assert _REFUSED[command] in err
    assert not [raw for raw in ("Errno", "Traceback", "unexpected", "fault of shinglefold") if raw in err]
    assert any(said in err for said in _TOLD)


@pytest.mark.parametrize("command", ["sign pages", "groups --pairs pages"])
def test_what_can_not_be_read_in_a_folder_is_told_and_all_else_is_done(ran, command):
    code, _, err = ran[command]
    assert code == 3
    assert "closed.html" in err
    assert "ermission" in err
