"""``shinglefold groups --pairs`` as it is typed: start, reading, markup and worker processes included."""

import subprocess
import sys
from pathlib import Path

from bench import corpora
from bench.clock import once
from bench.table import Row


def measure() -> list[Row]:
    """Return the seconds of the command on each labelled corpus, the best of three runs."""
    rows = []
    for corpus in filter(corpora.available, corpora.LABELLED):
        seconds, lines = min(once(lambda corpus=corpus: _pairs(corpus)) for _ in range(3))  # type: ignore[misc]
        truth = corpora.labels(corpus)
        same = {pair for pair, similarity in truth.items() if similarity >= 0.95}
        found = {(min(a, b), max(a, b)) for a, b in lines}
        assert len(same & found) >= 0.99 * len(same)
        note = f"{len(corpora.pages(corpus)):,} pages, {len(lines):,} pairs"
        rows.append(Row(f"shinglefold groups --pairs {corpus}.jsonl.gz", seconds, "s", note))
    return rows


def _pairs(corpus: str) -> list[tuple[str, str]]:
    command = [
        Path(sys.executable).with_name("shinglefold"),
        "groups",
        "--pairs",
        corpora.folder() / f"{corpus}.jsonl.gz",
    ]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [(a, b) for a, b, *_ in (line.split("\t") for line in printed.splitlines())]
