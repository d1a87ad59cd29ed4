"""Long runs of ``sign``: memory stays flat, and the pace stays the same, over a million short documents."""

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
    """Return memory and CPU of signing a tenth of the documents, and all of them."""
    whole = int(float(os.environ.get("SHINGLEFOLD_BENCH_SHORT", "1e6")))
    with tempfile.TemporaryDirectory(prefix="shinglefold-bench-") as folder:
        runs = {count: _signed(Path(folder), count) for count in (whole // 10, whole)}
    rows = []
    for count, run in runs.items():
        note = f"{count:,} documents of some 12 words, JSONL to JSONL"
        rows.append(Row("sign: CPU a document, all processes", run.cpu / count * 1e6, "µs", note))
        rows.append(Row("sign: most memory of its own", run.anonymous, "MB", note))
    few, many = runs.values()
    rows.append(Row("sign: memory of all ÷ of a tenth", many.anonymous / few.anonymous, "times", "flat: 1"))
    return rows


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
