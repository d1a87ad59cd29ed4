"""A command imports what it needs, and nothing besides that takes long: help waits for no numpy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: What takes 5 ms or more each; nltk 300, with scipy seconds.
HEAVY = {
    "asyncio", "elasticsearch", "multiprocessing", "nltk", "numpy", "opensearchpy", "pymorphy3", "rapidfuzz",
    "rich", "scipy", "selectolax", "tantivy", "urllib3", "xxhash",
}  # fmt: skip
#: Rooms of our own that most commands have no use for, and what each of them brings along.
ROOMS = {
    "shinglefold.canon", "shinglefold.engines.http.engine", "shinglefold.grouping",
    "shinglefold.ingest.pipeline", "shinglefold.ingest.writing",
    "shinglefold.passages", "shinglefold.plugins", "shinglefold.rerank",
    "shinglefold.rerank.similar", "shinglefold.relatives", "shinglefold.sketch", "cryptography",
}  # fmt: skip
_WATCH = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
"""
_COMMAND = _WATCH + "from shinglefold.cli.main import main; main()"


def loaded(program: str, *arguments: object) -> set[str]:
    """Return the heavy packages and the rooms that a program has imported when it ends."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C.UTF-8"}
    )
    return (HEAVY | ROOMS) & set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.long(every=5)
@pytest.mark.parametrize(
    "arguments", [["--help"], ["search", "--help"], ["groups", "-h"], ["index", "--nonsense"], []]
)
def test_help_and_usage_import_nothing_heavy_and_no_room(arguments):
    assert loaded(_COMMAND, *arguments) == set()


def test_the_version_needs_what_schemes_are_hashed_with_and_no_more():
    assert loaded(_COMMAND, "--version") <= {"xxhash"}


@pytest.mark.long
def test_a_search_needs_neither_parsers_nor_aligners_nor_all_of_nltk(engine_folder):
    found = loaded(_COMMAND, "search", "bridge", "--engine", engine_folder, "--json")
    assert {"numpy", "tantivy", "shinglefold.canon", "shinglefold.rerank"} <= found
    assert not found & {
        "cryptography",
        "shinglefold.engines.http.engine",
        "shinglefold.grouping",
        "shinglefold.ingest.pipeline",
        "shinglefold.ingest.writing",
        "shinglefold.passages",
        "shinglefold.rerank.similar",
        "shinglefold.relatives",
        "nltk",
        "pymorphy3",
        "rapidfuzz",
        "rich",
        "selectolax",
        "opensearchpy",
        "elasticsearch",
        "multiprocessing",
    }


@pytest.mark.long
def test_statistics_analyse_no_text(engine_folder):
    for named in ([], ["pages"]):
        found = loaded(_COMMAND, "stats", *named, "--engine", engine_folder)
        rooms = {f"shinglefold.{name}" for name in ("canon", "ingest.pipeline", "plugins", "sketch")}
        assert not found & {
            *rooms,
            *("asyncio", "multiprocessing", "selectolax"),
        }


@pytest.mark.long
def test_words_of_a_language_load_its_dictionary_only(engine_folder):
    russian = loaded(_COMMAND, "search", "ремонт", "--engine", engine_folder)
    assert "pymorphy3" in russian
    assert not russian & {"nltk", "rapidfuzz", "selectolax"}


def test_a_comparison_of_texts_loads_the_aligner():
    assert "rapidfuzz" in loaded(_COMMAND, "compare", "--text", "the bridge is closed", "the bridge is open")


@pytest.mark.long
def test_pairs_need_no_engine_and_plain_texts_no_parser():
    text = "Bridges across the river are closed until Monday because the water rises"
    Path("two.jsonl").write_text("".join(json.dumps({"id": n, "body": text}) + "\n" for n in "ab"))
    found = loaded(_COMMAND, "groups", "--pairs", "two.jsonl", "--workers", "1")
    assert "numpy" in found
    assert not found & {"nltk", "rapidfuzz", "selectolax", "tantivy", "opensearchpy", "elasticsearch"}
    assert not found & {"cryptography", "shinglefold.grouping", "shinglefold.rerank", "shinglefold.relatives"}
    Path("two.html").write_text(f"<p>{text}")
    assert "selectolax" in loaded(_COMMAND, "groups", "--pairs", "two.html", "--html", "--workers", "1")


@pytest.mark.long(every=5)
@pytest.mark.parametrize("package", ["rerank", "ingest", "canon", "sketch.all_pairs", "engines"])
def test_a_package_imports_no_engine_dictionary_or_parser(package):
    found = loaded(f"{_WATCH}import shinglefold.{package}")
    assert found - {f"shinglefold.{package.partition('.')[0]}"} <= {"numpy", "xxhash", "multiprocessing"}
    assert ("numpy" in found) == (package not in {"engines", "ingest", "rerank"})


def test_a_command_imports_no_other_command():
    program = (
        "import sys; from shinglefold.cli.main import main, cli; main(sys.argv[1:]); "
        "commands = [name for name in sys.modules if name.startswith('shinglefold.cli.commands.')]; "
        "print(*{name.rpartition('.')[2] for name in commands} & set(cli.commands), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "search", "--help"], capture_output=True, text=True, check=True
    )
    assert done.stderr.split() == ["search"]
