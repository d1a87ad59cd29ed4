"""Commands as they are typed, from the start of the process to its end, beside an empty interpreter."""

import sys
import tempfile
from statistics import median

from bench.clock import COMMAND, typed
from bench.table import Row
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.examples import articles
from shinglefold.ingest import Pipeline, default_definition, index_documents

_ROUNDS = 15
#: What is told of a command → what is typed behind ``shinglefold``, and what it prints, some of it.
_TYPED = {
    "shinglefold -V": (["-V"], "shinglefold"),
    "shinglefold stats": (["stats"], "site"),
    "shinglefold search, English words": (["search", "bridge repair", "--index", "site"], "repair"),
    "shinglefold search, Russian words": (["search", "ремонт моста", "--index", "site"], "мост"),
}


def measure() -> list[Row]:
    """Return the seconds of each command, in turns, by the clock and by the processor."""
    with tempfile.TemporaryDirectory() as folder:
        pipeline = Pipeline.from_json(default_definition())
        with EmbeddedEngine(folder, pipeline.tools.canonicalizer) as engine:
            stored = index_documents(engine, "site", articles(), pipeline, workers=1).indexed
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            **{told: [COMMAND, *typed, *_engine(typed, folder)] for told, (typed, _) in _TYPED.items()},
        }
        for told, (_, printed) in _TYPED.items():
            assert printed in typed(commands[told]).printed.lower(), told
        rounds = [{told: typed(command)[:2] for told, command in commands.items()} for _ in range(_ROUNDS)]
    return [row for told in commands for row in _rows(told, [one[told] for one in rounds], stored)]


def _engine(typed: list[str], folder: str) -> list[str]:
    return [] if typed == ["-V"] else ["--engine", folder]


def _rows(told: str, times: list[tuple[float, float]], stored: int) -> list[Row]:
    clock, cpu = zip(*times, strict=True)
    note = f"{_ROUNDS} starts in turns, embedded engine, {stored} documents; asked of a search .6"
    return [
        Row(f"{told}: by the clock, best", min(clock), "s", note),
        Row(f"{told}: by the clock, median", median(clock), "s", note),
        Row(f"{told}: processor, best", min(cpu), "s", note),
    ]
