"""A first run that brings nothing in, files that are not what was meant, and documents written over."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import TEXT, write_lines


def _indices(run):
    return [one["index"] for one in run("stats", "--json").json()["indices"]]


@pytest.mark.parametrize("text", ["", "\n\n", "{broken\n", '["no object"]\n'])
def test_a_first_run_without_a_document_leaves_no_index(run, text):
    Path("none.jsonl").write_text(text)
    assert run("index", "none.jsonl").code == 1
    assert _indices(run) == []


def test_a_first_run_whose_pipeline_fails_leaves_no_index_and_the_mended_one_makes_it(run):
    path = write_lines("a.jsonl", {"id": "1", "body": TEXT})
    failing = {"processors": [{"fail": {"message": "no"}}, {"supershingle": {"fields": ["body"]}}]}
    Path("failing.json").write_text(json.dumps(failing))
    ran = run("index", path, "--pipeline", "failing.json")
    assert (ran.code, _indices(run)) == (1, [])
    assert run("index", path).code == 0
    assert _indices(run) == ["pages"]


def test_an_index_that_is_left_empty_is_told_with_the_command_that_removes_it(run):
    Path("types.json").write_text('{"price": {"type": "float"}}')
    path = write_lines("a.jsonl", {"id": "1", "body": TEXT, "price": "cheap"})
    ran = run("index", path, "--mapping", "types.json", "--index", "shop").check(1)
    assert "it was made by this run and is empty; this removes it: " in ran.out
    command = ran.out.partition("this removes it: ")[2].splitlines()[0]
    assert command == "shinglefold delete shop --yes"
    assert run("delete", "shop", "--yes").code == 0
    assert _indices(run) == []


def test_an_index_that_is_there_keeps_its_documents_through_an_empty_run(run):
    assert run("index", write_lines("a.jsonl", {"id": "1", "body": TEXT})).code == 0
    Path("none.jsonl").write_text("")
    assert run("index", "none.jsonl").code == 1
    assert run("stats", "pages", "--json").json()["indices"][0]["documents"] == 1


@pytest.mark.parametrize("command", ["index", "groups"])
def test_dead_letters_are_not_taken_for_documents(run, command):
    write_lines("a.jsonl", {"id": "1", "body": 5}, {"id": "2", "body": TEXT})
    assert run("index", "a.jsonl", "--dead-letters", "dead.jsonl").code == 3
    into = ["--index", "news"] if command == "index" else []
    for source in ("dead.jsonl", "-"):
        run(command, source, *into, stdin=Path("dead.jsonl").read_text()).check(
            2, "holds dead letters, not documents"
        )
    assert _indices(run) == ["pages"]
    if command == "index":
        told = run(command, "dead.jsonl", *into).err
        assert told.rstrip().endswith("tried again with: shinglefold index dead.jsonl --index news --replay")


def test_documents_with_fields_of_letters_and_more_are_documents(run):
    odd = {"id": "1", "reason": "x", "stage": "y", "line": 3, "source": "z", "document": "d", "body": TEXT}
    assert run("index", write_lines("a.jsonl", odd)).code == 0


def test_stages_that_took_no_time_are_not_told(run):
    told = run("index", write_lines("a.jsonl", {"id": "1", "body": TEXT})).out
    assert "documents/s" in told
    assert " 0.0," not in told
    assert " 0.0)" not in told


def test_documents_that_were_written_over_are_counted_and_told(run, tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "p.html").write_text(f"<p>{TEXT} {name}")
    engine = tmp_path / "engine"
    monkeypatch.chdir(tmp_path / "one")
    first = run("index", ".", "--engine", engine)
    assert "written over" not in first.out
    monkeypatch.chdir(tmp_path / "two")
    told = run("index", ".", "--engine", engine).check(0)
    assert "written over: 1" in told.out
    assert "1 document replaced one with the same id" in told.out
    assert "pages are named by their paths in the folder given" in told.out
    assert run("index", ".", "--engine", engine, "--json").json()["counts"]["written_over"] == 1


def test_dead_letters_that_nobody_could_keep_are_not_said_to_be_kept(run):
    write_lines("a.jsonl", {"id": "1", "body": 5})
    command = [sys.executable, "-m", "shinglefold", "index", "a.jsonl", "--dead-letters", "dead.jsonl"]
    # No file may grow beyond nothing, as where the disk is full; no index is made, as nothing goes in.
    limited = ["sh", "-c", 'ulimit -f 0 && exec "$@"', "sh", *command, "--workers", "1"]
    ran = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "cannot write the dead-letter file dead.jsonl" in ran.stderr
    assert "not kept: 1" in ran.stdout
    assert "are kept" not in ran.stdout
