"""Names, modules, files and benches that pages quote are there."""

import importlib
import re
from pathlib import Path

import pytest

from bench.__main__ import BENCHMARKS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_the_public_names_can_be_imported():
    names = re.findall(
        r"^\.\. auto(?:function|class):: (shinglefold[\w.]*)\.(\w+)$",
        (DOCS / "api.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert len(names) > 40
    assert not [name for name in names if not hasattr(importlib.import_module(name[0]), name[1])]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_imports_that_a_page_shows_can_be_made(page):
    for package, names in re.findall(
        r"^(?:>>> |\.\.\. )?from (shinglefold[\w.]*) import ([\w, ]+)$", page.read_text("utf-8"), re.MULTILINE
    ):
        module = importlib.import_module(package)
        for name in names.split(", "):
            # A package that loads its names late may need an extra that is not installed.
            if name not in getattr(module, "__all__", ()) and not hasattr(module, name):
                importlib.import_module(f"{package}.{name}")


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *sorted(DOCS.glob("*.md"))], ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page):
    folders = {folder.name for folder in ROOT.iterdir() if folder.is_dir()}
    named = re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", page.read_text("utf-8"))
    inside = [name for name in named if name.split("/")[0] in folders and "CODE" not in name]
    roots = (ROOT, ROOT / "tests", ROOT / "tests" / "servers")
    assert not [name for name in inside if not any((root / name).exists() for root in roots)]


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda page: page.name)
def test_benches_and_evidence_that_a_page_names_are_there(page):
    text = " ".join(page.read_text("utf-8").split())
    assert set(re.findall(r"`python -m bench ([a-z_.]+)`", text)) <= BENCHMARKS.keys()
    named = re.findall(r"[`(/](bench/[\w./-]+\.\w+)", text)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_evidence_that_no_page_names_is_of_a_bench_that_stays():
    text = "".join(page.read_text("utf-8") for page in (ROOT / "README.md", *DOCS.glob("*.md")))
    kept = [path for path in (ROOT / "bench" / "runs").iterdir() if path.name not in text]
    bench = {re.sub(r"^\d{4}-\d\d-\d\d-", "", path.stem) for path in kept}
    # The gate's run is made by `make gate-run`.
    others = {"gate-run-elasticsearch-9", "gate-run-embedded", "gate-run-opensearch-3"}
    assert bench - BENCHMARKS.keys() - others == set()
