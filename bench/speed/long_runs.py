"""Long runs of ``sign``: memory stays flat over millions of short documents."""

import json
import os
import sys
import tempfile
from pathlib import Path

from bench.speed.memory import Ran, ran
from bench.table import Row

_COMMAND = str(Path(sys.executable).with_name("shinglefold"))
_WORDS = ("bridge", "river", "street", "council", "monday", "repair", "school", "market", "winter", "ticket")


def measure() -> list[Row]:
    """Return memory and CPU of signing very many short documents."""
    count = int(float(os.environ.get("SHINGLEFOLD_BENCH_SHORT", "2e6")))
    with tempfile.TemporaryDirectory(prefix="shinglefold-bench-") as folder:
        run = _signed(Path(folder), count)
    note = f"{count:,} documents of some 12 words, JSONL to JSONL"
    return [
        Row("sign: CPU a document, all processes", run.cpu / count * 1e6, "µs", note),
        Row("sign: most memory of its own", run.anonymous, "MB", f"{note}, all processes"),
        # Before that the lexicon fills up, and compiled code is loaded.
        Row("sign: memory in the last quarter ÷ in the third", run.grown(), "times", "flat: 1"),
    ]


def _signed(folder: Path, count: int) -> Ran:
    source, target = folder / f"{count}.jsonl", folder / f"{count}.signed.jsonl"
    with source.open("w") as file:
        for number in range(count):
            words = (
                _WORDS[number * place % len(_WORDS)] + str(number % 997 * place) for place in range(2, 14)
            )
            file.write(json.dumps({"id": number, "body": " ".join(words)}) + "\n")
    made = ran([_COMMAND, "sign", str(source), "-o", str(target)], folder / "told")
    with target.open() as lines:
        assert sum(1 for _ in lines) == count
    source.unlink()
    target.unlink()
    return made
