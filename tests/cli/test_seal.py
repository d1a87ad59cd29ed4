"""Sealing by commands: from index to setup, with the key in the environment."""

from dataclasses import replace

import pytest
from support.commands import json_lines

from shinglefold.cli.shared.next_commands import Hints
from shinglefold.cli.shared.recipe import Target, one_recipe
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.model.seal import Seal
from shinglefold.settings import Settings

KEY = "a key that nobody else knows"
TEXT = "Вчера на мосту через реку начался ремонт, движение закрыто до конца месяца, сообщили в мэрии города. "
PAGES = [
    {"id": "a", "title": "Ремонт", "body": TEXT * 3},
    {"id": "b", "title": "Ремонт", "body": TEXT * 3},
    {"id": "c", "title": "Погода", "body": "Завтра ожидается дождь с грозой, ветер северный. " * 5},
]
REMEDY = "SHINGLEFOLD_SEAL_KEY"


@pytest.fixture
def key(monkeypatch):
    """Set the key, or take it away."""

    def give(value=KEY):
        if value:
            monkeypatch.setenv("SHINGLEFOLD_SEAL_KEY", value)
        else:
            monkeypatch.delenv("SHINGLEFOLD_SEAL_KEY", raising=False)

    return give


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "pages.jsonl"
    path.write_text(json_lines(*PAGES), "utf-8")
    return path


def stored(id_):
    with open_engine(".shinglefold") as engine:
        return engine.get("pages", id_)["_source"]["_dedup"]


def forge(canonicalizer, id_, **parts):
    """Change a stored fingerprint past the indexer."""
    with open_engine(".shinglefold", canonicalizer) as engine:
        hit = engine.get("pages", id_)
        source = {**hit["_source"], "_dedup": {**hit["_source"]["_dedup"], **parts}}
        engine.bulk([{"_index": "pages", "_id": id_, "_source": source}])
        engine.refresh("pages")


def found(run):
    answer = run("search", "ремонт", "дождь", "--json").check(0)
    told = answer.json()
    return [hit["_id"] for hit in told["hits"]["hits"]], told["dedup"]


@pytest.mark.long(every=2)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_forged_document_is_found_by_doctor_mended_by_backfill_and_never_folded(
    run, source, key, canonicalizer, workers
):
    key()
    assert run("index", source, "--workers", workers).code == 0
    assert len(found(run)[0]) == 2
    genuine, own = stored("a"), stored("c")
    assert genuine["digest"].count(".") == 4
    assert run("doctor", "pages").code == 0

    # The seal of another fingerprint, and another digest under its own seal.
    digest = ".".join([*genuine["digest"].split(".")[:4], own["digest"].rpartition(".")[2]])
    forge(canonicalizer, "c", digest=digest, signature=genuine["signature"])
    shown, counts = found(run)
    assert (len(shown), counts["unreadable"]) == (2, 1)
    assert "c" in shown
    told = run("doctor", "pages").check(3)
    assert "1 have one that lacks the seal of the index: altered, or made without its key: c" in told.out
    assert run("doctor", "pages", "--json").json()["findings"] == {"sound": 2, "unsealed": 1}
    assert "backfill pages" in told.out
    run("compare", "a", "c", "--index", "pages").check(1, "does not have the seal")

    assert run("backfill", "pages").code == 0
    assert stored("c") == own
    assert run("doctor", "pages").code == 0
    assert found(run)[1]["unreadable"] == 0
    assert run("compare", "a", "b", "--index", "pages", "--json").json()["folds"]


def test_a_sealed_index_is_used_with_its_key_only(run, source, key, tmp_path):
    key()
    assert run("index", source).code == 0
    dead = tmp_path / "dead.jsonl"
    dead.write_text("", "utf-8")
    commands = [
        ("index", source),
        ("setup", "pages"),
        ("backfill", "pages"),
        ("doctor", "pages"),
        ("index", "--replay", dead, "--index", "pages"),
        ("search", "ремонт"),
        ("compare", "a", "b", "--index", "pages"),
    ]
    for value in ("", "another key, of sixteen bytes"):
        key(value)
        for command in commands:
            refused = run(*command)
            assert refused.code == 2, command
            assert REMEDY in refused.err
            assert KEY not in refused.err
            assert not value or value not in refused.err


def test_an_index_without_seals_goes_on_until_setup_seals_it(run, source, key):
    assert run("index", source).code == 0
    key()
    for command in (("index", source), ("search", "ремонт"), ("doctor", "pages"), ("setup", "pages")):
        run(*command).check(
            0, "is not sealed", "shinglefold setup pages --seal && shinglefold backfill pages"
        )
    assert len(found(run)[0]) == 2
    assert stored("a")["digest"].count(".") == 3

    sealed = run("setup", "pages", "--seal").check(0)
    assert "not sealed, and no search compares them; then: shinglefold backfill pages" in sealed.out
    assert found(run)[1]["unreadable"] == 3
    assert run("doctor", "pages", "--json").json()["findings"] == {"unsealed": 3}
    assert run("backfill", "pages").code == 0
    shown, counts = found(run)
    assert (len(shown), counts["unreadable"]) == (2, 0)
    assert "nothing to change" in run("setup", "pages", "--seal").out


def test_another_key_takes_the_place_of_the_first(run, source, key):
    key()
    assert run("index", source).code == 0
    key("another key, of sixteen bytes")
    changed = run("setup", "pages", "--seal").check(0)
    assert "sealed with another key, and no search compares them; then: shinglefold backfill" in changed.out
    assert run("backfill", "pages").code == 0
    assert len(found(run)[0]) == 2
    key()
    assert run("search", "ремонт").code == 2


def test_the_key_is_told_nowhere(run, source, key, tmp_path):
    key()
    outputs = [
        run(*command)
        for command in (
            ("index", source),
            ("info",),
            ("info", "--json"),
            ("setup", "pages", "--json"),
            ("setup", "news"),
            ("doctor", "pages", "--json"),
            ("backfill", "pages", "--json"),
            ("search", "ремонт", "--json"),
            ("stats", "pages"),
            ("stats", "pages", "--json"),
        )
    ]
    assert all(KEY not in ran.out + ran.err for ran in outputs)
    assert outputs[2].json()["settings"]["seal_key"] == {
        "value": "(set)",
        "from": "environment",
        "where": "SHINGLEFOLD_SEAL_KEY",
    }
    assert "(set)" in outputs[1].out
    kept = [path.read_bytes() for path in (tmp_path / ".shinglefold").rglob("*") if path.is_file()]
    assert all(KEY.encode() not in content for content in kept)


@pytest.mark.parametrize("line", ["seal_key = 1234567812345678", 'seal_key = "too short"'])
def test_a_key_in_the_file_that_is_not_valid_is_refused_and_not_quoted(run, source, tmp_path, line):
    (tmp_path / "shinglefold.toml").write_text(line, "utf-8")
    refused = run("index", source).check(2, "key")
    assert "1234567812345678" not in refused.err
    assert "too short" not in refused.err


def test_a_seal_without_a_key_is_refused(run, source):
    assert run("index", source).code == 0
    run("setup", "pages", "--seal").check(2, REMEDY)


def test_indices_of_different_seals_are_not_taken_together(scheme):
    seal = Seal.parse(KEY)
    found = {
        "news-1": recipe_mappings(default_recipe(scheme)),
        "news-2": recipe_mappings(replace(default_recipe(scheme), sealed=seal.id)),
    }
    with pytest.raises(ConfigError, match=f"sealed with the key {seal.id}; name one of them"):
        one_recipe(found, Target("news", Settings(), Hints()))
