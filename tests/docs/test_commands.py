"""Every command of a page that a newcomer would copy runs, in order, on the embedded engine."""

import gzip
import json
import re
import shlex
from pathlib import Path

import pytest
from support.maintenance import pages
from support.tutorial import PAGE, on_server, run, steps, write_files

from shinglefold.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
#: Only servers have templates and slices; what is between brackets, or left out, is no command yet.
_ELSEWHERE = ("gateway --upstream", "serve ", "--pattern", "--slice", "…", "[")
_LINE = re.compile(r"^ *(?:\$ )?(shinglefold .+)$", re.MULTILINE)
#: How many commands each page has at least; the tutorial's have a test of their own.
PAGES = {
    "README.md": 7,
    "docs/gateway.md": 1,
    "docs/groups.md": 3,
    "docs/how-to-existing-index.md": 3,
    "docs/how-to-uninstall.md": 2,
    "docs/maintenance.md": 5,
    "docs/performance.md": 2,
    "docs/security.md": 3,
}


def commands(page: str) -> list[list[str]]:
    """The commands in the blocks of a page, without the address of a server."""
    text = (ROOT / page).read_text("utf-8")
    blocks = [*re.findall(r"^```.*?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)]
    blocks += re.findall(r"(?:^    .+\n)+", text, re.MULTILINE)
    lines = [line for block in blocks for line in _LINE.findall(block)]
    found = [shlex.split(one, comments=True) for line in lines for one in line.split(" && ")]
    return [_local(words[1:]) for words in found if not any(mark in " ".join(words) for mark in _ELSEWHERE)]


def _local(words: list[str]) -> list[str]:
    if "--engine" not in words:
        return words
    place = words.index("--engine")
    return [*words[:place], *words[place + 2 :]]


@pytest.fixture
def files(tmp_path, monkeypatch) -> None:
    """What the commands name: collections, pages, dead letters, an index of articles, a key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHINGLEFOLD_WORKERS", "1")
    text = "".join(json.dumps(page | {"host": "a.example"}) + "\n" for page in pages(30))
    for name in ("pages.jsonl", "articles.jsonl"):
        Path(name).write_text(text)
    Path("pages.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    new = {"id": "new", "title": "Новость", "body": "Мост через реку закроют в мае на ремонт"}
    Path("new.jsonl").write_text(json.dumps(new) + "\n")
    Path("site").mkdir()
    for name in ("old.html", "new.html", "site/a.html", "site/b.html"):
        Path(name).write_text("<title>Bridge</title><p>The bridge is closed, buses go another way.")
    Path("bad.jsonl").write_text(json.dumps({"id": "bad", "body": 5}) + "\n")
    for made in (
        ["index", "articles.jsonl", "--index", "articles"],
        ["index", "bad.jsonl", "articles.jsonl", "--index", "kept", "--dead-letters", "failed.jsonl"],
    ):
        assert main(made) in (0, 3)
    letters = Path("failed.jsonl")
    letters.write_text(letters.read_text().replace('"body": 5', '"body": "мост"'))


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_runs(files, page, monkeypatch, capsys):
    if page == "docs/security.md":
        monkeypatch.setenv("SHINGLEFOLD_SEAL_KEY", "hex:" + "5a" * 16)
    found = commands(page)
    assert len(found) >= PAGES[page]
    for words in found:
        code = main(words)
        told = capsys.readouterr()
        assert code == 0, (words, told)


def test_every_page_with_commands_is_among_them():
    others = {"docs/tutorial.md"}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        name = str(page.relative_to(ROOT))
        assert bool(commands(name)) == (name in PAGES or name in others), name


def test_the_program_of_the_tutorial_has_under_ten_lines(tmp_path):
    write_files(tmp_path)
    lines = (tmp_path / "page.py").read_text("utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) < 10


def test_every_command_prints_what_the_page_shows(tmp_path):
    write_files(tmp_path)
    done = 0
    for step in steps():
        printed = [line.rstrip() for line in run(step.command, tmp_path).splitlines()]
        for line in step.shown:
            assert line.rstrip() in printed, (step.command, line, printed)
            del printed[: printed.index(line.rstrip()) + 1]
        done += 1
    assert done == 6


def test_the_commands_for_a_server_are_those_run_before_with_its_address():
    shown = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[-1].splitlines()
    commands = [step.command for step in steps()]
    for line in shown:
        local = line.replace(" --engine http://localhost:9200", "").replace(
            "http://localhost:9200", ".shinglefold"
        )
        assert any(command.startswith(local) for command in commands), line
        assert on_server(local, "http://localhost:9200") == line
