"""The examples of examples/frameworks, run as a reader runs them, with the frameworks that they name."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "frameworks"
pytestmark = pytest.mark.newest


@pytest.fixture(scope="module")
def frameworks(tmp_path_factory):
    """A folder with Scrapy and Django, to stand first on ``PYTHONPATH``."""
    folder = tmp_path_factory.mktemp("frameworks")
    # The certificates of the system are those that pip trusts.
    uv = [sys.executable, "-m", "uv", "--quiet", "--native-tls", "pip", "install", "--python", sys.executable]
    subprocess.run([*uv, "--target", folder, "-r", EXAMPLES / "requirements.txt"], check=True)
    return folder


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The environment in which programs share compiled modules, which takes them half of the time."""
    folder = tmp_path_factory.mktemp("compiled")
    return {"PYTHONPYCACHEPREFIX": str(folder), "PYTHONDONTWRITEBYTECODE": ""}


@pytest.fixture
def printed(server, engine, compiled):
    """Runs an example, and returns the lines that it printed; its index is deleted afterwards."""

    def run(name, *arguments, frameworks=""):
        # Dictionaries of other languages take a second to load.
        environment = {
            **os.environ,
            **compiled,
            "SHINGLEFOLD_LANGUAGES": "en,any",
            "PYTHONPATH": str(frameworks),
        }
        command = [sys.executable, name, *arguments, server.url]
        ran = subprocess.run(
            command, cwd=EXAMPLES, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        assert "Traceback" not in ran.stderr
        return ran.stdout.splitlines()

    yield run
    with urlopen(f"{server.url}/_cat/indices/example-*?h=index") as names:
        for index in names.read().decode().split():
            engine.delete_index(index)


def groups(lines):
    """The lines of each group: the first one, and those below it, which are indented."""
    found = []
    for line in lines:
        if line.startswith(" "):
            found[-1][1].append(line.strip())
        else:
            found.append((line, []))
    return found


@pytest.fixture
def opensearch(engine):
    if engine.info()["distribution"] != "opensearch":
        pytest.skip("the example is for OpenSearch")


def test_scrapy_shows_each_article_once_with_all_its_addresses(opensearch, printed, frameworks):
    first, *lines = printed("scrapy_site.py", frameworks=frameworks)
    # Of each of three articles: the page, whatever session found it; its printer version; four of the mirror.
    assert first == "18 pages, 3 different ones"
    shown = dict(groups(lines))
    assert len(shown) == 3
    for addresses in shown.values():
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/en-[a-z]+-[a-z]+-1", addresses[0])
        (name,) = {address.partition("?")[0].rpartition("/")[2] for address in addresses}
        assert addresses[0].endswith(name)
        assert sum("/print/" in address for address in addresses) == 1
        assert sum("//localhost" in address for address in addresses) == 4


def test_django_shows_one_object_of_each_group_and_signs_what_is_saved(opensearch, printed, frameworks):
    first, *lines = printed("django_site.py", frameworks=frameworks)
    shown = groups(lines)
    assert first == "21 articles"
    assert sum(1 + len(copies) for _, copies in shown) == 21
    # Each text once, and the one whose body was changed, which folds no more.
    titles = [title.partition(" (")[0].casefold() for title, _ in shown]
    assert len(titles) == len(set(titles)) == 9
    assert ("Water main repairs closed Elm Street (cityhall.example)", []) in shown
    assert max(len(copies) for _, copies in shown) == 3


def test_documents_and_searches_of_dsl_fold(engine, printed):
    product = engine.info()["distribution"]
    first, *lines = printed("dsl.py", product)
    assert first == "21 articles, 9 different ones"
    assert len(lines) == 9
    for line in lines:
        found = re.fullmatch(r"Article (.+) \(2026-\d\d-\d\d\), (\d): (.+)", line)
        members = found[3].split()
        assert len(members) == int(found[2])
        # An article folds with copies of its own text alone, and the changed one with none.
        assert len({member.rpartition("-")[0] for member in members}) == 1
        assert members == ["en-main-elm-2"] or "en-main-elm-2" not in members
    assert sum(int(re.search(r"\), (\d): ", line)[1]) for line in lines) == 21


def test_results_are_pages_where_documents_are_headings(opensearch, printed):
    shown = groups(printed("headings.py"))
    assert shown == [
        (
            "https://docs.example/water#4, also https://mirror.example/water",
            [
                "Reading your own water meter",
                "Water main repair closes Elm Street",
                "Boil-water notice lifted on the east side",
            ],
        ),
        (
            "https://docs.example/bread#1, also https://mirror.example/bread",
            [
                "How to feed a sourdough starter",
                "Ravi's weekend sourdough loaf",
                "Nora's weekend sourdough loaf",
            ],
        ),
    ]
