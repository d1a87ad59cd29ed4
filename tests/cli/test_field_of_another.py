"""The setting of the fingerprints' field: where another's values stand, nothing is written over them."""

import json

import pytest

_TEXT = "The old bridge is closed until Monday because the river rises, buses take another way."
_PAGES = "".join(
    json.dumps({"id": name, "title": "Bridge", "body": _TEXT, "host": "a.example"}) + "\n" for name in "ab"
)


@pytest.mark.parametrize("field", ["title", "body", "_id", "a..b", ""])
@pytest.mark.parametrize("command", ["index", "sign", "setup"])
def test_a_field_that_is_something_else_is_misuse(run, monkeypatch, field, command):
    if command == "setup":
        ran = run("setup", "pages", "--dedup-field", field)
    else:
        monkeypatch.setenv("SHINGLEFOLD_FIELD", field)
        ran = run(command, "-", "--workers", 1, stdin=_PAGES)
    assert (ran.code, ran.out) == (2, "")
    monkeypatch.delenv("SHINGLEFOLD_FIELD", raising=False)
    assert run("stats", "--json").json() == {"indices": []}


@pytest.mark.parametrize("command", ["index", "sign", "add"])
def test_no_value_is_lost_to_a_field_of_the_same_name(run, monkeypatch, command):
    monkeypatch.setenv("SHINGLEFOLD_FIELD", "host")
    if command == "add":
        assert run("setup", "pages").code == 0
    arguments = [] if command == "add" else ["--workers", 1]
    ran = run(command, "-", *arguments, stdin=_PAGES)
    assert ran.code == 1
    assert "[host] is text, no fingerprint, and would be lost" in ran.out + ran.err
