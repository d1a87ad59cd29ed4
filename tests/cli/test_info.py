"""info: every setting with its value and its origin; and other ways to start the command."""

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from shinglefold.settings import Settings


def test_settings_come_with_their_origin(run, monkeypatch):
    Path("shinglefold.toml").write_text('workers = 3\nfield = "copies"\n[language.ru]\nmode = "stem"\n')
    monkeypatch.setenv("SHINGLEFOLD_WORKERS", "5")
    told = run("info", "--json").json()
    assert list(told["settings"]) == [field.name for field in fields(Settings) if field.name != "given"]
    assert told["settings"]["workers"] == {
        "value": 5,
        "from": "environment",
        "where": "SHINGLEFOLD_WORKERS",
    }
    assert told["settings"]["field"] == {"value": "copies", "from": "file", "where": "shinglefold.toml"}
    assert told["settings"]["preset"] == {"value": "default", "from": "default", "where": ""}
    assert told["settings"]["language"]["value"]["ru"]["mode"] == "stem"
    assert told["scheme"].startswith("sf")


def test_a_settings_file_is_named_as_it_was_given(run, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text("workers = 2\n")
    ran = run("info", "--config", file)
    assert (ran.code, ran.err) == (0, "")
    (line,) = [line for line in ran.out.splitlines() if line.startswith("workers ")]
    assert line.split() == ["workers", "2", "file", str(file)]


def _rows(run):
    return {
        line.split()[0]: " ".join(line.split()[1:]) for line in run("info").out.split("\n\n")[1].splitlines()
    }


def test_what_is_in_force_where_nothing_is_set_is_said_in_words(run):
    rows = _rows(run)
    assert rows["languages"] == "all installed: any,en,ru,uk,zh default"
    assert rows["language"] == rows["lexicon_file"] == rows["seal_key"] == "none default"
    assert rows["workers"] == "0 (one per core) default"
    assert rows["drop_adjectives"] == "false default"


def test_settings_are_shown_as_they_are_typed(run, monkeypatch):
    Path("shinglefold.toml").write_text('[language.uk]\nmin_length = 2\n[language.ru]\nmode = "stem"\n')
    monkeypatch.setenv("SHINGLEFOLD_LANGUAGES", "ru,uk")
    rows = _rows(run)
    assert rows["languages"] == "ru,uk environment SHINGLEFOLD_LANGUAGES"
    assert rows["language.ru.mode"] == "stem file shinglefold.toml"
    assert rows["language.uk.min_length"] == "2 file shinglefold.toml"
    assert "language" not in rows


def test_the_version_has_a_short_option(run):
    assert run("-V") == run("--version")
    assert run("-V").out.startswith("shinglefold ")


def test_the_package_runs_as_a_module():
    ran = subprocess.run(
        [sys.executable, "-m", "shinglefold", "--version"], check=False, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("shinglefold ")
