"""What a benchmark answers with, and how it is shown and kept."""

import json
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np

#: Environment: the address of a server to measure on, as the tests take it; ``make engine-up`` starts one.
URL = "SHINGLEFOLD_TEST_URL"
RUNS = Path(__file__).with_name("runs")
#: What git compares: every file but the evidence, which benches write.
_MEASURED = (":(top)", ":(top,exclude)bench/runs")
_TOLD = ("numpy", "xxhash", "pymorphy3", "selectolax", "tantivy")


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure; ``note`` says on what, and what was asserted first."""

    name: str
    value: float
    unit: str
    note: str = ""


def percentiles(name: str, seconds: Sequence[float], shares: Sequence[int], note: str) -> list[Row]:
    """Return percentiles of times as milliseconds."""
    values = np.percentile(np.array(seconds) * 1e3, shares)
    return [Row(f"{name}, p{share}", float(ms), "ms", note) for share, ms in zip(shares, values, strict=True)]


def shown(title: str, rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [f"## {title}", "", "| what | figure | unit | note |", "|---|---:|---|---|"]
    lines += [f"| {row.name} | {row.value:,.4g} | {row.unit} | {row.note} |" for row in rows]
    return "\n".join([*lines, ""])


def keep(name: str, rows: Sequence[Row], day: date) -> Path:
    """Write the rows with the versions they were measured on, as JSON, and return the file."""
    path = RUNS / f"{day.isoformat()}-{name}.json"
    evidence = {
        "date": day.isoformat(),
        "commit": _commit(),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {_cores()} cores",
        "versions": {package: version(package) for package in _TOLD},
        "rows": [asdict(row) for row in rows],
    }
    path.write_text(json.dumps(evidence, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return path


def _commit() -> str:
    commit = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", *_MEASURED)
    return f"{commit}-dirty" if commit and changed else commit or "unknown"


def _git(*arguments: str) -> str:
    told = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=RUNS.parent)
    return told.stdout.strip()


def _cores() -> int:
    import os

    return os.cpu_count() or 1
