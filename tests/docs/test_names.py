"""Names, files, links and anchors of pages are there, and what README.md shows is what happens."""

import doctest
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bench.__main__ import BENCHMARKS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_the_public_names_can_be_imported():
    names = re.findall(
        r"^\.\. auto(?:function|class):: (shinglefold[\w.]*)\.(\w+)$",
        (DOCS / "api.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert len(names) > 40
    assert not [name for name in names if not hasattr(importlib.import_module(name[0]), name[1])]


#: Pages of methods that are no part of the product, and names of files.
_NO_PROMISE = ("shinglefold.relatives", "shinglefold.toml")


def _taught(page):
    """Yield the full names that a page imports, has in backquotes, or says are "of" a package."""
    text = page.read_text("utf-8")
    imports = r"^(?:>>> |\.\.\. )?from (shinglefold[\w.]*) import ([\w, ]+)$"
    for package, names in re.findall(imports, text, re.MULTILINE):
        yield from (f"{package}.{name}" for name in names.split(", "))
    line = " ".join(text.split())
    yield from re.findall(r"`(shinglefold(?:\.\w+)+)", line)
    of = r"((?:`\w+(?:\([^`]*\))?`(?:, | and )?)+) of `(shinglefold[\w.]+)`"
    for names, package in re.findall(of, line):
        yield from (f"{package}.{name}" for name in re.findall(r"`(\w+)(?:\(.*?\))?`", names))


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_names_that_a_page_teaches_are_public(page):
    listed = re.findall(r"^\.\. auto\w+:: ([\w.]+)$", (DOCS / "api.md").read_text("utf-8"), re.MULTILINE)
    modules = ("shinglefold.errors.", "shinglefold.examples.")
    assert not [
        name
        for name in _taught(page)
        if not name.startswith((*modules, *_NO_PROMISE))
        and not any(f"{one}.".startswith(f"{name}.") for one in listed)
    ]


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


PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


#: Pages with sessions of Python, and how many lines each has at least.
SESSIONS = {
    **dict.fromkeys([page.name for page in sorted((ROOT / "docs").glob("[hp]*.md"))], 0),
    "../README.md": 11,
    "folding.md": 16,
    "groups.md": 9,
    "retrieval.md": 0,
    "security.md": 4,
}


@pytest.mark.parametrize("page", SESSIONS)
def test_the_python_session_of_a_page_answers_what_it_shows(page):
    options = {"module_relative": False, "encoding": "utf-8", "optionflags": doctest.ELLIPSIS}
    outcome = doctest.testfile(str(ROOT / "docs" / page), **options)
    assert outcome.attempted >= SESSIONS[page]
    assert outcome.failed == 0


def test_the_page_of_results_is_what_the_demo_prints():
    shown = re.search(r"```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    command = [str(Path(sys.executable).with_name("shinglefold")), "demo"]
    printed = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"COLUMNS": "100", "PYTHONUTF8": "1"}
    ).stdout
    assert shown is not None
    assert [line.rstrip() for line in shown[1].splitlines()] == _part(printed, shown[1].splitlines()[0])


def _part(printed: str, first: str) -> list[str]:
    lines = [line.rstrip() for line in printed.splitlines()]
    start = lines.index(first.rstrip())
    return lines[start : lines.index("", start)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    assert not [link for link in links if not (page.parent / link).exists()]


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_anchors_of_links_are_headings(page):
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text("utf-8"))
    assert not [(name, at) for name, at in links if at not in _anchors(page.parent / name if name else page)]


def test_the_page_of_python_lists_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    install = (ROOT / "docs" / "python.md").read_text("utf-8").split("## Install")[1].split("\n## ")[0]
    listed = {
        name
        for row in re.findall(r"^\| (.+) \|$", install, re.MULTILINE)
        for name in re.findall(r"`([a-z-]+)`", row)
    }
    assert (
        project["optional-dependencies"].keys() - {"bench", "dev"}
        == listed & project["optional-dependencies"].keys()
    )


def test_a_how_to_has_under_120_lines():
    listed = (DOCS / "README.md").read_text("utf-8").split("## How to\n")[1].split("\n## ")[0]
    pages = [DOCS / name for name in re.findall(r"^- \[([\w-]+\.md)\]", listed, re.MULTILINE)]
    assert len(pages) > 9
    assert not [page.name for page in pages if len(page.read_text("utf-8").splitlines()) >= 120]


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    assert not [
        p.name for p in (ROOT / "docs").glob("*.md") if p.name != "README.md" and f"({p.name})" not in index
    ]
