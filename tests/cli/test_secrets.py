"""Addresses of engines: which one a command takes, and that none shows its password."""

import json
from pathlib import Path

import pytest

from shinglefold.cli.shared.maintenance import checkpoint_path
from shinglefold.cli.shared.next_commands import Hints, repeat_command
from shinglefold.cli.shared.recipe import Target
from shinglefold.settings import Settings

ADDRESSES = [
    "ftp://ada:hidden@host",
    "//ada:hidden@host",
    "ada:hidden@host:9200",
    "http://host:9200?token=hidden",
    "http://ada:hidden@127.0.0.1:1",
    "opensearch+http://ada:hidden@127.0.0.1:1",
    "elasticsearch+http://ada:hidden@127.0.0.1:1",
    "https://ada:hid/hidden@host",
]
COMMANDS = [
    ["index", "pages.jsonl"],
    ["search", "word"],
    ["compare", "1", "2", "--index", "pages"],
    ["setup", "pages"],
    ["backfill", "pages"],
    ["doctor", "pages"],
]


@pytest.mark.long(every=6)
@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("how", [[], ["--json"]], ids=["text", "json"])
def test_no_command_shows_a_password(run, tmp_path, command, address, how):
    (tmp_path / "pages.jsonl").write_text(json.dumps({"id": "1", "body": "word " * 30}))
    ran = run(*how, *command, "--engine", address)
    assert ran.code in (1, 2)
    assert "hidden" not in ran.out + ran.err
    assert "host" in ran.err or "127.0.0.1" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["pages.jsonl"]


def test_neither_do_the_commands_to_type_next():
    arguments = ["backfill", "pages", "--engine", "https://ada:hidden@host", "--", "--engine"]
    assert repeat_command(arguments) == "shinglefold backfill pages --engine https://host -- --engine"
    assert (
        repeat_command(["doctor", "--engine=//ada:hidden@host", "x@y"])
        == "shinglefold doctor --engine=host x@y"
    )
    assert "hidden" not in Hints("http://ada:hidden@host?token=hidden").command("setup", "pages")
    assert repeat_command(["doctor", "--engine", "pages@2024"]).endswith("--engine pages@2024")


@pytest.mark.parametrize(
    ("data_dir", "engine", "where"),
    [
        ("http://ada:hidden@host", None, ""),
        ("site", None, "site"),
        ("site", "http://ada:hidden@host", "site"),
        ("site", "another folder", "another folder"),
        ("site", "embedded:another", "another"),
    ],
)
def test_a_checkpoint_stands_beside_its_index_and_is_not_named_after_a_server(data_dir, engine, where):
    asked = Target("a/b", Settings(data_dir=data_dir), Hints(engine))
    assert checkpoint_path(asked, "regroup", "-1-of-2") == Path(where, ".regroup-a_b-1-of-2.json")


@pytest.mark.parametrize("address", ADDRESSES)
def test_neither_do_the_settings(run, monkeypatch, address):
    monkeypatch.setenv("SHINGLEFOLD_DATA_DIR", address)
    for command in (["search", "word"], ["doctor", "pages"]):
        ran = run(*command)
        assert ran.code in (1, 2)
        assert "hidden" not in ran.out + ran.err
    for how in ([], ["--json"]):
        ran = run(*how, "info").check(0)
        assert "hidden" not in ran.out + ran.err
        assert "host" in ran.out or "127.0.0.1" in ran.out


_NOBODY = "http://127.0.0.1:1"


@pytest.mark.parametrize("how", ["environment", "file"])
def test_a_command_without_an_address_takes_that_of_the_environment(run, monkeypatch, how):
    if how == "file":
        Path("engine.toml").write_text(f'url = "{_NOBODY}"\n', "utf-8")
        monkeypatch.setenv("SHINGLEFOLD_ENGINE_FILE", "engine.toml")
    else:
        monkeypatch.setenv("SHINGLEFOLD_ENGINE_URL", f"opensearch+{_NOBODY}")
    monkeypatch.setenv("SHINGLEFOLD_ENGINE_RETRIES", "0")
    run("stats").check(1, _NOBODY)


def test_an_address_given_wins_over_the_environment(run, monkeypatch, engine_folder):
    monkeypatch.setenv("SHINGLEFOLD_ENGINE_URL", _NOBODY)
    assert run("stats", "--engine", engine_folder).code == 0


def test_a_setting_that_is_an_address_wins_over_the_environment(run, monkeypatch):
    monkeypatch.setenv("SHINGLEFOLD_ENGINE_URL", _NOBODY)
    monkeypatch.setenv("SHINGLEFOLD_ENGINE_RETRIES", "0")
    monkeypatch.setenv("SHINGLEFOLD_DATA_DIR", "http://127.0.0.1:2")
    assert "127.0.0.1:2" in run("stats").err


def test_credentials_in_the_environment_name_no_engine(run, monkeypatch, engine_folder):
    monkeypatch.setenv("SHINGLEFOLD_ENGINE_USER", "ada")
    monkeypatch.setenv("SHINGLEFOLD_ENGINE_PASSWORD", "secret")
    monkeypatch.setenv("SHINGLEFOLD_DATA_DIR", str(engine_folder))
    assert run("stats").code == 0


@pytest.mark.parametrize("name", ["SHINGLEFOLD_ENGINE", "SHINGLEFOLD_ENGINE_URLS"])
def test_a_mistyped_address_does_not_lead_to_the_folder_of_the_embedded_engine(run, monkeypatch, name):
    monkeypatch.setenv(name, _NOBODY)
    ran = run("stats")
    assert (ran.code, ran.out) == (2, "")
    assert f"unknown variable {name}; did you mean SHINGLEFOLD_ENGINE_URL?" in ran.err
