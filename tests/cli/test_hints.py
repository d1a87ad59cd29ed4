"""What is printed for people to type is complete: each option in force is in it, quoted for the shell."""

import json
from pathlib import Path

import pytest
from support.hints import hints, lines, opened, run_hints

from shinglefold.recipe import Recipe
from shinglefold.registry import make_scheme


def test_every_hint_has_the_options_in_force(run):
    Path("my settings.toml").write_text('data_dir = "elsewhere"\n')
    where = ("--engine", "a folder", "--config", "my settings.toml")
    bad = lines(20) + json.dumps({"id": "bad", "body": 5}) + "\n"
    ran = run("index", "-", *where, "--dead-letters", "fail it.jsonl", "--workers", 1, stdin=bad)
    assert ran.code == 3
    (hint,) = hints(ran.out)
    assert hint == ["retry", "fail it.jsonl", "--index", "pages", *where]
    letters = Path("fail it.jsonl")
    letters.write_text(letters.read_text().replace('"body": 5', '"body": "мост"'))
    run_hints(run, ran.out)
    with opened("a folder") as engine:
        assert not engine.bulk(
            {"_op_type": "update", "_index": "pages", "_id": f"page-{n}", "doc": {"dedup": None}}
            for n in range(3)
        ).failures
    ill = run("doctor", "pages", *where, "--workers", 1)
    assert hints(ill.out) == [["backfill", "pages", *where]]
    planned = run("setup", "pages", *where)
    assert hints(planned.out) == [["backfill", "pages", *where]]
    run_hints(run, ill.out)
    run_hints(run, run("backfill", "pages", *where, "--preset", "classic").err)
    missing = run("explain", "page-1", "nobody", *where)
    assert hints(missing.err) == [["search", "nobody", "--index", "pages", "--json", "--no-fold", *where]]
    run_hints(run, missing.err)
    first = run("search", "Страница", *where, "--size", 2, "--cursor", "new")
    run_hints(run, first.out)


_WHERE = ("--engine", "a folder", "--config", "my settings.toml")


@pytest.fixture
def elsewhere(run) -> str:
    """An index in a folder and with a settings file that each command must name."""
    Path("my settings.toml").write_text('data_dir = "wrong"\n')
    assert run("index", "-", *_WHERE, "--index", "it's", "--workers", 1, stdin=lines(20)).code == 0
    return "it's"


@pytest.mark.parametrize(
    "command",
    [
        ["regroup", "it's"],
        ["report", "it's"],
        ["add", "it's", "-", "--policy", "tag"],
        ["search", "Страница", "--index", "it's", "--mode", "native"],
    ],
    ids=lambda command: command[0],
)
def test_hints_of_the_library_have_the_options_in_force_too(run, elsewhere, command):
    ran = run(*command, *_WHERE, stdin=lines(1))
    assert ran.code in (1, 2), ran
    for _ in range(2):
        told = hints(ran.err)
        assert told
        assert all(one[-4:] == list(_WHERE) for one in told)
        assert "`" not in ran.err
        run_hints(run, ran.err)
        ran = run(*command, *_WHERE, stdin=lines(1))
        if not ran.code:
            break
    assert ran.code == 0, ran


@pytest.mark.parametrize("command", ["backfill", "setup", "doctor"])
def test_a_field_of_somebody_else_is_told_with_a_command_that_goes_round_it(run, command):
    Path("my settings.toml").write_text("")
    with opened("a folder") as engine:
        theirs = {"dedup": {"type": "keyword"}, "copies": {"type": "keyword"}, "body": {"type": "text"}}
        mapped = Recipe(make_scheme()).to_json()
        engine.create_index("theirs", {"properties": theirs, "_meta": {"shinglefold": mapped}}, {})
    ran = run(command, "theirs", *_WHERE)
    assert ran.code in (2, 3), ran
    assert hints(ran.out + ran.err)[0] == ["setup", "theirs", "--dedup-field", "copies2", *_WHERE]
    (done,) = run_hints(run, ran.out + ran.err)[:1]
    assert "`" not in done.out
