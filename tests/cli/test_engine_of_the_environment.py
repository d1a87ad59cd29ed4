"""Which engine a command asks that names none: the setting's, or that of a connection in the environment."""

from pathlib import Path

import pytest

_NOBODY = "http://127.0.0.1:1"


@pytest.mark.parametrize("how", ["environment", "file"])
def test_a_command_without_an_address_takes_that_of_the_environment(run, monkeypatch, how):
    if how == "file":
        Path("engine.toml").write_text(f'url = "{_NOBODY}"\n', "utf-8")
        monkeypatch.setenv("SHINGLEFOLD_ENGINE_FILE", "engine.toml")
    else:
        monkeypatch.setenv("SHINGLEFOLD_ENGINE_URL", f"opensearch+{_NOBODY}")
    monkeypatch.setenv("SHINGLEFOLD_ENGINE_RETRIES", "0")
    ran = run("stats")
    assert (ran.code, _NOBODY in ran.err) == (1, True), ran


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
