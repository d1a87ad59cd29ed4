"""info: all installed languages, usable or not."""

from importlib.metadata import EntryPoint

import pytest

from shinglefold import registry
from shinglefold.contracts.language import Language
from shinglefold.errors import MissingExtra
from shinglefold.registry import installed


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
    assert [one["code"] for one in told] == list(installed())
    for one in told:
        assert one["distribution"].startswith("shinglefold ")
        assert one["usable"]
        assert one["version"]
        assert "surface" in one["modes"]
    assert {one["code"]: one["unit"] for one in told}["zh"] == "char"


def test_the_table_has_a_line_a_language(run):
    shown = run("info").out.split("\n\n")[-1].splitlines()
    assert shown[0].split()[:2] == ["language", "scripts"]
    assert [line.split()[0] for line in shown[1:]] == list(installed())


@pytest.mark.parametrize(
    ("plugin", "problem", "install"),
    [
        (f"{__name__}:NeedsAnExtra", "pip install 'shinglefold[zh]'", "pip install 'shinglefold[zh]'"),
        (f"{__name__}:RaisesAnything", "RuntimeError: not today", None),
        ("nowhere.at.all:Nothing", "nowhere", None),
    ],
)
def test_one_that_can_not_be_used_is_listed_with_what_it_lacks(run, monkeypatch, plugin, problem, install):
    points = {**installed(), "xx": EntryPoint("xx", plugin, registry.LANGUAGES)}
    monkeypatch.setattr(registry, "installed", lambda: points)
    ran = run("info", "--json")
    assert ran.code == 0
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
    points = {**installed(), "xx": EntryPoint("xx", f"{__name__}:LacksItsDictionary", registry.LANGUAGES)}
    monkeypatch.setattr(registry, "installed", lambda: points)
    (told,) = run("compare", "--text", "a b c", "a b c", "--json").err.splitlines()
    assert "left out because their dictionaries are not installed: xx;" in told
    assert "pip install 'shinglefold[zh]'" in told
    monkeypatch.setenv("SHINGLEFOLD_LANGUAGES", "any,en")
    assert run("compare", "--text", "a b c", "a b c").err == ""
