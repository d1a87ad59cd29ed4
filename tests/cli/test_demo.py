"""demo: quick, readable at 100 columns, and what it shows is what folding does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shinglefold.examples import queries


def test_every_search_is_shown_before_and_after(run):
    ran = run("demo")
    assert (ran.code, ran.err) == (0, "")
    # The line of seconds is as long as a run has stages.
    assert max(len(line) for line in ran.out.splitlines() if "documents/s" not in line) <= 100
    for query in queries():
        assert query.text in ran.out
    assert ran.out.count("before folding") == ran.out.count("after folding") == len(queries())
    assert "shinglefold index FILE.jsonl" in ran.out.split("What to try next:")[1]


@pytest.mark.long(every=2)
@pytest.mark.parametrize("found", [False, pytest.param(True, marks=pytest.mark.long)])
def test_what_to_try_next_can_be_typed_as_it_stands(found):
    program = Path(sys.executable).parent / "shinglefold"
    path = str(program.parent) if found else os.devnull
    ran = subprocess.run([program, "demo"], env={**os.environ, "PATH": path}, capture_output=True, check=True)
    named = "shinglefold" if found else program
    assert f"  {named} index FILE.jsonl" in ran.stdout.decode().split("What to try next:")[1]


def test_on_a_narrow_terminal_the_pages_stand_one_under_the_other(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = run("demo", "--size", 2).out.splitlines()
    assert not any("before folding" in line and "after folding" in line for line in lines)


def test_json_holds_both_pages_of_every_search(run):
    told = run("demo", "--json", "--size", 4).json()
    assert told["summary"]["failed"] == 0
    assert len(told["searches"]) == len(queries())
    for search in told["searches"]:
        assert 0 < len(search["after"]["hits"]["hits"]) <= 4
        assert search["after"]["dedup"]["folded"] > 0
        assert "dedup" not in search["before"]
