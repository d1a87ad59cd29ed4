"""Installing a language plugin changes nothing about an index that is there."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.commands import PROGRAM, json_lines
from support.distributions import install
from support.maintenance import pages

_PLUGIN = '''
"""A language that claims the Latin words."""

from shinglefold.contracts.language import Language


class Latin(Language):
    code = "la"
    scripts = frozenset({"Latn"})
    precedence = 50

    def canonical(self, word):
        return word
'''


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a distribution whose entry point brings a language."""
    folder = tmp_path / "site"
    install(folder, "some-latin", "la = some_latin:Latin")
    (folder / "some_latin.py").write_text(_PLUGIN)
    return folder


def run(*arguments: str, path: Path | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHINGLEFOLD_")}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    return subprocess.run(
        [*PROGRAM, *arguments],
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
def test_a_language_installed_later_changes_nothing_about_an_index(installed: Path):
    lines = json_lines(*pages(10))
    assert run("index", "-", "--workers", "1", stdin=lines).returncode == 0
    assert '"la"' in run("info", "--json", path=installed).stdout
    made = json.loads(run("doctor", "pages", "--json", "--workers", "1").stdout)
    for command in (
        ["index", "-", "--workers", "1"],
        ["backfill", "pages", "--workers", "1"],
        ["doctor", "pages", "--workers", "1"],
        ["search", "Страница"],
        ["compare", "page-1", "page-2", "--index", "pages"],
        ["setup", "pages"],
    ):
        ran = run(*command, path=installed, stdin=lines)
        assert (ran.returncode, ran.stderr) == (0, ""), (command, ran.stdout)
    after = json.loads(run("doctor", "pages", "--json", "--workers", "1", path=installed).stdout)
    assert (after["scheme"], after["findings"]) == (made["scheme"], {"sound": 10})
    new = json.loads(run("index", "-", "--index", "new", "--json", path=installed, stdin=lines).stdout)
    assert new["scheme"] != made["scheme"]


@pytest.mark.long
@pytest.mark.parametrize("field", ["lang", "code"])
def test_the_file_of_a_stored_document_is_read_in_the_language_that_it_declares(installed: Path, field: str):
    def shingle(*arguments: str) -> Any:
        done = run(*arguments, path=installed)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    words = "closed bridges and flooded streets kept buses waiting while rivers were rising above walls"
    Path("one.jsonl").write_text(json.dumps({"id": "1", "body": words, field: "la"}))
    steps = [{"supershingle": {"fields": ["body"], "target_field": "_dedup", "language_field": field}}]
    Path("pipeline.json").write_text(json.dumps({"processors": steps}))
    made = ("--pipeline", "pipeline.json", "--passages", "--workers", "1", "--json")
    assert shingle("index", "one.jsonl", *made)["languages"] == {"la": 1}
    (match,) = shingle("similar", "one.jsonl", "--json")["matches"]
    assert (match["same_text"], match["resemblance"]) == (True, 1)
    assert not shingle("similar", "one.jsonl", "--language", "en", "--json")["matches"]
    if field == "lang":
        (match,) = shingle("matches", "one.jsonl", "--json")["matches"]
        assert match["share"] == 1
