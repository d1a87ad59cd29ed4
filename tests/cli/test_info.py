"""info: every setting with its value and its origin; all installed languages."""

import subprocess
import sys
from dataclasses import fields
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from shinglefold import registry
from shinglefold.contracts.language import Language
from shinglefold.errors import MissingExtra
from shinglefold.registry import installed_languages
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
    file.write_text('preset = "classic"\n')
    ran = run("info", "--config", file)
    assert (ran.code, ran.err) == (0, "")
    (line,) = [line for line in ran.out.splitlines() if line.startswith("preset ")]
    assert line.split() == ["preset", "classic", "file", str(file)]


def _rows(run):
    return {
        line.split()[0]: " ".join(line.split()[1:]) for line in run("info").out.split("\n\n")[1].splitlines()
    }


def test_what_is_in_force_where_nothing_is_set_is_said_in_words(run, monkeypatch):
    monkeypatch.delenv("SHINGLEFOLD_WORKERS")
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


class NeedsAnExtra(Language):
    code = "xx"
    scripts = frozenset({"Latn"})

    def __init__(self, options):
        raise MissingExtra("zh", "the language xx")

    def canonical(self, word):
        return word


class RaisesAnything(NeedsAnExtra):
    @classmethod
    def version(cls):
        raise RuntimeError("not today")

    def __init__(self, options):
        super(NeedsAnExtra, self).__init__(options)


class LacksItsDictionary(NeedsAnExtra):
    @classmethod
    def version(cls):
        raise MissingExtra("zh", "the language xx")


def test_all_installed_languages_are_listed(run):
    told = run("info", "--json").json()["languages"]
    assert [one["code"] for one in told] == list(installed_languages())
    for one in told:
        assert one["distribution"].startswith("shinglefold ")
        assert one["usable"]
        assert one["version"]
        assert "surface" in one["modes"]
    assert {one["code"]: one["unit"] for one in told}["zh"] == "char"


def test_the_table_has_a_line_a_language(run):
    shown = run("info").out.split("\n\n")[-1].splitlines()
    assert shown[0].split()[:2] == ["language", "scripts"]
    assert [line.split()[0] for line in shown[1:]] == list(installed_languages())


@pytest.mark.parametrize(
    ("plugin", "problem", "install"),
    [
        (f"{__name__}:NeedsAnExtra", "pip install 'shinglefold[zh]'", "pip install 'shinglefold[zh]'"),
        (f"{__name__}:RaisesAnything", "RuntimeError: not today", None),
        ("nowhere.at.all:Nothing", "nowhere", None),
    ],
)
def test_one_that_can_not_be_used_is_listed_with_what_it_lacks(run, monkeypatch, plugin, problem, install):
    points = {**installed_languages(), "xx": EntryPoint("xx", plugin, registry.LANGUAGES)}
    monkeypatch.setattr(registry, "installed_languages", lambda: points)
    ran = run("info", "--json").check(0)
    *others, last = ran.json()["languages"]
    assert [one["code"] for one in others] == list(points)[:-1]
    assert last["code"] == "xx"
    assert not last["usable"]
    assert problem in last["problem"]
    assert last.get("install") == install
    assert "no: " in run("info").out


def test_a_language_left_out_for_want_of_its_dictionary_is_named_once_with_the_command_that_adds_it(
    run, monkeypatch
):
    assert run("compare", "--text", "a b c", "a b c").err == ""
    points = {
        **installed_languages(),
        "xx": EntryPoint("xx", f"{__name__}:LacksItsDictionary", registry.LANGUAGES),
    }
    monkeypatch.setattr(registry, "installed_languages", lambda: points)
    (told,) = run("compare", "--text", "a b c", "a b c", "--json").err.splitlines()
    assert "left out because their dictionaries are not installed: xx;" in told
    assert "pip install 'shinglefold[zh]'" in told
    monkeypatch.setenv("SHINGLEFOLD_LANGUAGES", "any,en")
    assert run("compare", "--text", "a b c", "a b c").err == ""
