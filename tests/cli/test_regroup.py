"""regroup: an index without numbers is given them, changes are told, and a second run has none."""

import pytest


@pytest.fixture
def site(run, examples_file) -> str:
    assert run("index", examples_file, "--index", "site", "--engine", "here", "--workers", 1).code == 0
    return "site"


def regroup(run, *more: object) -> dict:
    ran = run("regroup", "site", "--engine", "here", "--json", *more)
    assert (ran.code, ran.err) == (0, "")
    return ran.json()


def test_an_index_without_numbers_says_how_to_get_them(run, site):
    ran = run("regroup", site, "--engine", "here")
    assert ran.code == 2
    commands = "shinglefold setup site --groups --engine here && shinglefold regroup site --engine here"
    assert commands in ran.err
    for line in commands.split(" && "):
        assert run(*line.split()[1:]).code == 0


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
    run("index", examples_file, "--index", "site", "--engine", "here", "--groups", "--workers", 1)
    told = regroup(run, "--dry-run")
    # At insert a document joins the leaders there are; some would rather join one that came later.
    assert told["numbered"] == 0
    assert told["planned"] <= 8


def test_a_throttle_and_a_checkpoint_of_ones_own_are_taken(run, site, tmp_path):
    run("setup", site, "--groups", "--engine", "here")
    regroup(run, "--requests-per-second", 100_000, "--checkpoint", tmp_path / "own.json", "--order", "-id")
    assert not (tmp_path / "own.json").exists()


@pytest.mark.parametrize("option", [("--scope", "hosst"), ("--order", "-publihsed_at")])
def test_a_mistyped_field_parts_no_groups(run, examples_file, option):
    run("index", examples_file, "--index", "site", "--engine", "here", "--groups", "--workers", 1)
    ran = run("regroup", "site", "--engine", "here", *option)
    assert ran.code == 2
    assert f"unknown field (in {option[0].removeprefix('--')}, index 'site')" in ran.err
    assert regroup(run)["split"] == 0
