"""Pages name the benches and the evidence that there are."""

import re
from pathlib import Path

import pytest

from bench.__main__ import BENCHMARKS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_benches_and_files_exist(page: Path):
    text = " ".join(page.read_text("utf-8").split())
    assert set(re.findall(r"`python -m bench ([a-z_.]+)`", text)) <= BENCHMARKS.keys()
    named = re.findall(r"[`(/](bench/[\w./-]+\.\w+)", text)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_evidence_that_no_page_names_is_of_a_bench_that_stays():
    text = "".join(page.read_text("utf-8") for page in PAGES)
    kept = [path for path in (ROOT / "bench" / "runs").iterdir() if path.name not in text]
    bench = {re.sub(r"^\d{4}-\d\d-\d\d-", "", path.stem): path.name for path in kept}
    others = {"gate-run-elasticsearch-9", "gate-run-embedded", "gate-run-opensearch-3"}
    assert bench.keys() - BENCHMARKS.keys() - others == set()
