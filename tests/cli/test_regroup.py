"""regroup: an index without numbers is given them, changes are told, and a second run has none."""

import json
import shlex
import shutil

import pytest

from shinglefold.engines import open_engine
from shinglefold.model.recipe import Recipe


@pytest.fixture
def site(engine_folder) -> str:
    shutil.copytree(engine_folder / "pages", "here/site")
    return "site"


def regroup(run, *more: object) -> dict:
    ran = run("regroup", "site", "--engine", "here", "--json", *more)
    assert (ran.code, ran.err) == (0, "")
    return ran.json()


def test_groups_are_made_told_and_found_again(run, site):
    run("setup", site, "--groups", "--engine", "here")
    told = regroup(run, "--dry-run", "--linkage", "connected")
    assert (told["planned"], told["written"], told["settled"]) == (166, 0, False)
    done = regroup(run, "--linkage", "connected")
    assert (done["written"], done["numbered"], done["settled"]) == (166, 166, True)
    assert done["groups"] == told["groups"] < 166
    assert regroup(run, "--linkage", "connected")["planned"] == 0
    ran = run("regroup", site, "--engine", "here", "--linkage", "connected")
    assert f"{done['groups']:,} groups ({done['groups']:,} before)" in ran.out
    assert "0 documents decided on" in ran.out


def test_numbers_given_at_insert_are_those_a_regrouping_would_give(run, examples_file):
    run("index", examples_file, "--index", "site", "--engine", "here", "--groups")
    told = regroup(run, "--dry-run")
    # At insert a document joins the leaders there are; some would rather join one that came later.
    assert told["numbered"] == 0
    assert told["planned"] <= 8


@pytest.mark.long(every=2)
@pytest.mark.parametrize("command", ["regroup", "report"])
def test_an_index_without_numbers_says_how_to_get_them(run, site, command):
    ran = run(command, site, "--engine", "here").check(2)
    commands = "shinglefold setup site --groups --engine here && shinglefold regroup site --engine here"
    assert commands in ran.err
    for line in commands.split(" && "):
        assert run(*line.split()[1:]).code == 0
    assert run(command, site, "--engine", "here").code == 0


def test_a_throttle_and_a_checkpoint_of_ones_own_are_taken(run, site, tmp_path):
    run("setup", site, "--groups", "--engine", "here")
    regroup(run, "--requests-per-second", 100_000, "--checkpoint", tmp_path / "own.json", "--order", "-id")
    assert not (tmp_path / "own.json").exists()


@pytest.mark.long(every=2)
@pytest.mark.parametrize("option", [("--scope", "hosst"), ("--order", "-publihsed_at")])
def test_a_mistyped_field_parts_no_groups(run, examples_file, option):
    run("index", examples_file, "--index", "site", "--engine", "here", "--groups")
    run("regroup", "site", "--engine", "here", *option).check(
        2, f"unknown field (in {option[0].removeprefix('--')}, index 'site')"
    )
    assert regroup(run)["split"] == 0


def noted() -> dict:
    with open_engine("here") as engine:
        return dict(Recipe.of(engine.mappings("site"), "site").grouping)


@pytest.fixture
def ruled(run, tmp_path):
    """Return a command that indexes documents, whose index has rules for its groups."""
    texts = [" ".join(f"word{at}" for at in range(begin, begin + 40)) for begin in (0, 0, 100)]
    documents = [{"id": f"{at}", "body": body, "site": "a"} for at, body in enumerate(texts)]
    source = tmp_path / "docs.jsonl"
    source.write_text("".join(f"{json.dumps(one)}\n" for one in documents))
    command = ("index", source, "--index", "site", "--engine", "here")
    assert run(*command, "--groups").code == 0
    regroup(run, "--min-resemblance", 0.9, "--scope", "site.keyword", "--linkage", "connected")
    assert noted() == {"min_resemblance": 0.9, "scope": ["site.keyword"], "linkage": "connected"}
    return command


def test_an_index_built_anew_keeps_the_rules_of_its_groups(run, ruled):
    before = noted()
    ran = run(*ruled, "--groups", "--recreate")
    assert (ran.code, "warning" in ran.err) == (0, False)
    assert noted() == before
    assert regroup(run)["planned"] == 0
    # What is said anew goes before what was noted.
    assert run(*ruled, "--groups", "--recreate", "--verify", "text").code == 0
    assert noted() == before | {"verify": "text"}


@pytest.mark.parametrize("more", [(), ("--groups", "--preset", "classic")])
def test_an_index_built_anew_says_which_rules_it_leaves_behind(run, ruled, more):
    before = noted()
    ran = run(*ruled, "--recreate", *more)
    assert (ran.code, noted()) == (0, {})
    told = "were noted in 'site' for another scheme" if more else "'site' numbered groups, and"
    assert told in ran.err
    commands = next(line for line in ran.err.splitlines() if told in line).partition(": shinglefold ")[2]
    for command in commands.split(" && "):
        assert run(*shlex.split(command.removeprefix("shinglefold "))).code == 0
    assert noted() == before
