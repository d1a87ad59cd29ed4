"""Indices without supershingles: pages fold as ever, and what needs supershingles says so first of all."""

import shutil
from pathlib import Path

import pytest

from shinglefold.cli.main import main


@pytest.fixture(scope="module")
def made(examples_file, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("keywords")
    where = ("site", "--engine", str(folder))
    assert main(["setup", *where, "--no-keywords"]) == 0
    assert main(["index", str(examples_file), "--index", *where, "--workers", "1"]) == 0
    return folder


@pytest.fixture
def site(made) -> str:
    shutil.copytree(made, "here")
    return "site"


def page(run, index: str, *more: object) -> list[tuple[str, int]]:
    ran = run("search", "мост", "--index", index, "--engine", "here", "--json", *more)
    hits = ran.json()["hits"]["hits"]
    return [(hit["_id"], hit["inner_hits"]["duplicates"]["hits"]["total"]["value"]) for hit in hits]


def test_a_page_folds_as_it_does_with_them(run, site, engine_folder):
    found = page(run, site)
    shutil.copytree(engine_folder / "pages", "here/pages")
    assert found == page(run, "pages")
    assert max(copies for _, copies in found) > 3


def test_all_is_well_and_signed(run, site):
    assert run("doctor", site, "--engine", "here").code == 0
    (stats,) = run("stats", site, "--engine", "here", "--json").json()["indices"]
    assert stats["signed"] == stats["documents"] == 166


@pytest.mark.parametrize(
    "words",
    [
        ("similar", "ru-bridge-repair-1", "--index", "site"),
        ("search", "мост", "--index", "site", "--min-shared", "2"),
        ("add", "-", "--index", "site"),
    ],
)
def test_what_needs_them_is_refused_with_the_way_to_have_them(run, site, words):
    ran = run(*words, "--engine", "here")
    assert ran.code != 0
    assert "stores no supershingles" in ran.err
    assert "setup site --keywords" in ran.err


@pytest.mark.long
def test_they_can_be_had_later_and_left_out_again(run, site):
    assert run("setup", site, "--keywords", "--engine", "here").code == 0
    assert run("doctor", site, "--engine", "here").code == 3
    assert run("backfill", site, "--engine", "here").code == 0
    assert run("similar", "ru-bridge-repair-1", "--index", site, "--engine", "here").code == 0
    assert run("setup", site, "--no-keywords", "--engine", "here").code == 0
    assert run("backfill", site, "--engine", "here").code == 0
    assert run("doctor", site, "--engine", "here").code == 0
    assert run("similar", "ru-bridge-repair-1", "--index", site, "--engine", "here").code == 2


def test_groups_and_a_scheme_of_supershingles_alone_are_refused_without_them(run, site):
    run("setup", site, "--groups", "--engine", "here").check(2, "groups are found by supershingles")
    run("setup", "other", "--no-keywords", "--preset", "fetterly", "--engine", "here").check(
        2, "decides by supershingles alone"
    )
    assert run("stats", "other", "--engine", "here").code != 0
