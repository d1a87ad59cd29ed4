"""What needs no locks works without what Python lacks on Windows; what needs them is refused by name.

The tests remove from Python what Windows lacks and run on this system, as no Windows is at hand.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

_WINDOWS = """
import os, signal, sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("SIGALRM", "SIGHUP", "SIGURG", "alarm", "pthread_kill", "pthread_sigmask", "setitimer"):
    delattr(signal, name)
for name in ("O_NONBLOCK", "getuid", "geteuid", "mkfifo", "pread", "sched_getaffinity", "statvfs"):
    delattr(os, name)
"""
_TEXTS = [
    "Мост через Каменку закроют на ремонт осенью этого года, сообщила администрация города",
    "Мост через Каменку закрыли на ремонт осенью этого года, сообщила администрация города",
]


def _ran(program: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", f"{_WINDOWS}\ntexts = {_TEXTS!r}\n{program}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def _command(*arguments: str) -> str:
    return f"from shinglefold.cli.main import main\nsys.exit(main({list(arguments)!r}))"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [json.dumps({"id": str(number), "body": text}) for number, text in enumerate(_TEXTS)]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    (tmp_path / "dead.jsonl").write_text("")
    return tmp_path


def test_texts_are_compared_and_folded(folder: Path):
    ran = _ran(
        "import shinglefold\n"
        "kept = shinglefold.fold_chunks([{'text': text} for text in texts], 2).chunks\n"
        "print(len(list(shinglefold.pairs(texts))), len(kept))",
        folder,
    )
    assert (ran.stdout, ran.stderr) == ("1 1\n", "")


@pytest.mark.long(every=4)
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("sign", "texts.jsonl", "--workers", "1"), marks=pytest.mark.long),
        ("sign", "texts.jsonl", "--workers", "2"),
        ("groups", "--pairs", "texts.jsonl"),
        ("info",),
    ],
)
def test_commands_without_an_index_run(folder: Path, arguments):
    ran = _ran(_command(*arguments), folder)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout


def test_a_second_signal_ends_a_wait(folder: Path):
    ran = _ran(
        "import threading\n"
        "from time import sleep\n"
        "from shinglefold.runtime.signals import Interrupted, Interrupts\n"
        "for after in (0.2, 1.0):\n"
        "    threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        "    with Interrupts() as interrupts, interrupts.breakable():\n"
        "        sleep(60)\n"
        "except Interrupted:\n"
        "    print('ended')",
        folder,
    )
    assert (ran.stdout, ran.stderr) == ("ended\n", "")


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("index", "texts.jsonl"), "the embedded engine"),
        (("sign", "texts.jsonl", "-o", "signed.jsonl"), "signing into a file"),
    ],
)
def test_what_locks_files_is_refused(folder: Path, arguments, what):
    ran = _ran(_command(*arguments), folder)
    assert ran.returncode == 2, ran.stderr
    assert f"{what} locks files, which this system can't: run it on Linux, macOS or WSL" in ran.stderr
