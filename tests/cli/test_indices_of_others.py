"""Indices that another program made: their own fields, their own mappings, and what setup says of them."""

import json
from importlib.metadata import EntryPoint

import pytest
from support.maintenance import pages, store

from shinglefold import registry
from shinglefold.contracts.language import Language
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import MissingExtra
from shinglefold.registry import installed_languages, language_class

_TEXT = {"type": "text"}
_OWN = {"title": "headline", "body": "content"}


class Lacking(Language):
    """A language whose dictionary is not installed."""

    code = "xx"

    @classmethod
    def version(cls) -> str:
        raise MissingExtra("Martian", "zh")


@pytest.fixture
def make(canonicalizer):
    """Make an index as another program would: with documents whose texts have its names, and no recipe."""

    def made(properties, names=None):
        names = names or {}
        with EmbeddedEngine(".shinglefold", canonicalizer) as engine:
            engine.create_index("theirs", {"properties": properties}, {})
            kept = ({"id": one["id"], **{names.get(n, n): one[n] for n in _OWN}} for one in pages(5))
            store(engine, "theirs", kept)

    return made


def test_setup_asks_for_the_fields_if_no_document_has_a_text_in_the_usual_ones(run, make):
    make({"headline": _TEXT, "content": _TEXT}, _OWN)
    for flags in (["--dry-run"], []):
        run("setup", "theirs", *flags).check(
            2,
            "none of the 5 documents of theirs looked at has text in title, body",
            "setup theirs --field headline --field content && ",
        )
    ran = run("setup", "theirs", "--field", "headline", "--field", "content")
    assert (ran.code, ran.err) == (0, "")


def test_a_backfill_that_found_no_text_at_all_is_no_success(run, make):
    make({"headline": _TEXT, "content": _TEXT}, _OWN)
    run("setup", "theirs", "--field", "title", "--field", "body")
    for more in ([], ["--json"]):
        run("backfill", "theirs", *more).check(
            3, "there is text in headline, content; to take it from there: shinglefold setup"
        )
    run("setup", "theirs", "--field", "headline", "--field", "content")
    ran = run("backfill", "theirs")
    assert (ran.code, ran.err) == (0, "")


def test_a_part_of_a_fingerprint_with_a_wrong_type_leads_to_another_field(run, make):
    make({"title": _TEXT, "body": _TEXT, "_dedup": {"properties": {"signature": _TEXT}}})
    ran = run("setup", "theirs").check(3)
    assert "shinglefold setup theirs --dedup-field _copies" in ran.out
    assert ran.out.endswith("nothing was changed\n")
    assert run("setup", "theirs", "--dedup-field", "_copies").code == 0
    assert run("backfill", "theirs").code == 0


def test_all_languages_are_those_whose_dictionaries_are_there(run, make, monkeypatch):
    make({"title": _TEXT, "body": _TEXT})
    run("setup", "theirs")
    points = {**installed_languages(), "xx": EntryPoint("xx", f"{__name__}:Lacking", registry.LANGUAGES)}
    monkeypatch.setattr(registry, "installed_languages", lambda: points)
    run("setup", "theirs", "--languages", "all").check(
        0, "left out because their dictionaries are not installed: xx"
    )


def test_setup_of_an_index_whose_language_has_another_version_names_what_moves_it(run, make, monkeypatch):
    make({"title": _TEXT, "body": _TEXT})
    run("setup", "theirs")
    monkeypatch.setattr(language_class("en"), "version", classmethod(lambda _: "999"))
    run("setup", "theirs").check(
        1,
        "index 'theirs' was made with scheme en 1, but en 999 is in use",
        "shinglefold index FILE --index theirs --recreate",
    )


def test_a_setup_after_which_nothing_can_fold_is_no_success(run, make):
    make({"headline": _TEXT, "content": _TEXT}, _OWN)
    run("setup", "theirs", "--field", "headlin").check(
        3, "none of the 5 documents of theirs looked at has text in headlin"
    )


def test_a_new_index_has_the_languages_named_and_any(run):
    for codes in ("ru, uk", "ru,uk,any"):
        assert run("setup", "news", "--languages", codes).code == 0
        (stats,) = run("stats", "news", "--json").json()["indices"]
        assert [one["code"] for one in stats["recipe"]["languages"]] == ["any", "ru", "uk"]


def test_doctor_names_the_command_for_a_field_that_the_mappings_lack(run, make):
    make({"title": _TEXT, "body": _TEXT})
    assert run("setup", "theirs").code == 0
    assert run("backfill", "theirs").code == 0
    run("setup", "theirs", "--field", "summary")
    ran = run("doctor", "theirs").check(3)
    assert "the mappings have no field summary: if the text is in another field, name that: " in ran.out
    assert "shinglefold setup theirs --field FIELD; " in ran.out


def test_languages_of_the_environment_are_those_of_the_index_without_any(run, monkeypatch):
    monkeypatch.setenv("SHINGLEFOLD_LANGUAGES", "ru,uk")
    line = json.dumps({"id": "a", "title": "Мост", "body": "Мост через реку закрыт до понедельника"})
    for _ in range(2):
        ran = run("index", "-", "--index", "news", stdin=line)
        assert (ran.code, ran.err) == (0, "")
    assert run("setup", "news").out.startswith("nothing to change")
