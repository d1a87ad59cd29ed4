"""One very long text into the embedded engine: the most memory of each process, and the processor time."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import sleep

from bench.corpora import Vocabulary
from bench.table import Row
from shinglefold.engines.embedded import EmbeddedEngine

_COMMAND = str(Path(sys.executable).with_name("shinglefold"))
_WORDS, _SENTENCE, _LINE = 60_000, 12, 5
_CYRILLIC = str.maketrans("abcdefghijklmnopqrstuvwxyz", "абвгдежзиклмнопрстуфхцчшыя")
_PAUSE = 0.05


def measure() -> list[Row]:
    """Return what texts of several lengths take, in MB."""
    lengths = os.environ.get("SHINGLEFOLD_BENCH_LONG", "1,10,30")
    return [row for length in lengths.split(",") for row in _of(int(length))]


def _of(length: int) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="shinglefold-bench-") as name:
        folder = Path(name)
        source = folder / "long.jsonl"
        text = _text(length)
        document = {"id": "1", "title": "длинный", "body": text}
        source.write_text(json.dumps(document, ensure_ascii=False) + "\n")
        before = os.times()
        most = _peaks(folder, [str(source), "--engine", str(folder / "engine"), "--index", "pages"])
        after = os.times()
        _assert_found(folder / "engine", text)
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    note = f"one document of {length} MB, Cyrillic, {_WORDS:,} different words"
    return [
        Row("index: most memory of the process that writes", most[0], "MB", f"{note}; mapped files included"),
        Row("index: most memory of a worker", max(most[1:], default=0.0), "MB", note),
        Row("index: processor time", cpu, "s", note),
    ]


def _text(megabytes: int) -> str:
    """Return lines of several sentences, of so many bytes in UTF-8."""
    vocabulary = Vocabulary.of(_WORDS, seed=3)
    words = [word.decode().translate(_CYRILLIC) for word in vocabulary.words]
    drawn = [words[number] for number in vocabulary.drawn(int(megabytes * 1e6 / 14.2), seed=5).tolist()]
    sentences = (" ".join(drawn[at : at + _SENTENCE]) for at in range(0, len(drawn), _SENTENCE))
    made = [sentence.capitalize() + "." for sentence in sentences]
    return "\n\n".join(" ".join(made[at : at + _LINE]) for at in range(0, len(made), _LINE))


def _peaks(folder: Path, arguments: list[str]) -> list[float]:
    """Run ``index``, and return the most memory of its own process and of those it started."""
    seen: dict[int, float] = {}
    with (folder / "told").open("wb") as told:
        process = subprocess.Popen([_COMMAND, "index", *arguments], stdout=told, stderr=told)
        while process.poll() is None:
            for pid in _family(process.pid):
                seen[pid] = max(seen.get(pid, 0.0), _peak(pid))
            sleep(_PAUSE)
    assert process.returncode == 0, (folder / "told").read_text()
    return [seen.pop(process.pid), *seen.values()]


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    yield from map(int, children)


def _peak(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def _assert_found(engine: Path, text: str) -> None:
    with EmbeddedEngine(engine, None) as opened:
        found = opened.get("pages", "1")
        assert found is not None
        assert found["_source"]["body"] == text
