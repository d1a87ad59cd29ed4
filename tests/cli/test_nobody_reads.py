"""Commands that are asked to end while nobody takes what they print."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

_COMMAND = str(Path(sys.executable).with_name("shinglefold"))
#: Seconds in which a command ends on any machine, and far more than it takes.
_SOON = 120


@pytest.fixture
def full():
    """The end of a pipe into which nothing goes any more, while nobody reads the other."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"." * 4096)
    except BlockingIOError:
        os.set_blocking(writing, True)
    yield writing
    os.close(reading)
    os.close(writing)


def _waits(pid):
    """Tell whether a process sleeps, and had nothing to do for half a second."""

    def looked():
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return state, rest[10:12]

    before = looked()
    time.sleep(0.5)
    return before == looked() and before[0] == "S"


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to look into")
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["sign", "texts.jsonl", "--workers", "1"], marks=pytest.mark.long),
        ["sign", "texts.jsonl", "--workers", "2"],
        pytest.param(["groups", "texts.jsonl", "--workers", "1"], marks=pytest.mark.long),
        ["search", "bridge", "--engine", "nowhere", "--json"],
        ["--help"],
    ],
    ids=["sign", "sign with workers", "groups", "search", "help"],
)
def test_a_command_ends_though_nobody_takes_what_it_prints(run, full, arguments, number):
    body = "The old bridge is closed until Monday because the river rises, buses take another way."
    Path("texts.jsonl").write_text("".join(json.dumps({"id": n, "body": body}) + "\n" for n in range(200)))
    process = subprocess.Popen([_COMMAND, *arguments], stdout=full, stderr=subprocess.DEVNULL)
    try:
        while not _waits(process.pid):
            assert process.poll() is None
        process.send_signal(number)
        # What has nothing left to do but to tell it is ended by SIGTERM itself.
        assert process.wait(timeout=_SOON) in (128 + number, -number if number == signal.SIGTERM else None)
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
def test_lines_that_somebody_reads_slowly_stay_whole(run):
    body = "The old bridge is closed until Monday because the river rises, buses take another way. " * 8
    lines = [json.dumps({"id": n, "body": f"{n} {body}"}) for n in range(8000)]
    Path("texts.jsonl").write_text("\n".join(lines))
    with subprocess.Popen(
        [_COMMAND, "sign", "texts.jsonl", "--workers", "1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        read = os.read(process.stdout.fileno(), 1 << 16)
        process.send_signal(signal.SIGINT)
        # For longer than a reader that reads nothing is waited for.
        for _ in range(12):
            time.sleep(0.2)
            read += os.read(process.stdout.fileno(), 1 << 16)
        read += process.stdout.read()
    assert process.returncode == 128 + signal.SIGINT
    assert read.endswith(b"}\n")
    told = [json.loads(line)["id"] for line in read.splitlines()]
    assert told == list(range(len(told)))
    assert len(told) < len(lines)
