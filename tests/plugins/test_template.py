"""The template is a distribution of its own: installed as it is, it adds a language and passes the kit."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "plugins" / "_template"


def run(*arguments, target):
    path = os.pathsep.join([str(target), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-P", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        cwd=target,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the template beside an install of it; nothing comes from a network."""
    folder = tmp_path_factory.mktemp("template")
    source, target = folder / "source", folder / "target"
    shutil.copytree(TEMPLATE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    target.mkdir()
    options = ("--quiet", "--no-index", "--no-build-isolation", "--no-deps", "--disable-pip-version-check")
    done = run("-m", "pip", "install", *options, "--target", target, source, target=target)
    assert done.returncode == 0, done.stderr
    return source, target


@pytest.mark.long
def test_it_passes_its_own_tests_which_are_the_kit(copy):
    source, target = copy
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", source / "tests", target=target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "33 passed" in done.stdout


@pytest.mark.long
def test_canon_gives_it_belarusian_and_leaves_russian_and_ukrainian_alone(copy):
    _, target = copy
    texts = (
        "Учора ў горадзе адбылася сустрэча, якую чакалі ўсе жыхары.",
        "Вчера в городе прошла встреча, которую ждали все жители.",
        "Учора в місті відбулася зустріч, якої чекали всі мешканці.",
    )
    program = (
        "from shinglefold.canon import Canonicalizer; from shinglefold.registry import make_scheme; "
        f"canonicalizer = Canonicalizer.of(make_scheme()); print(*map(canonicalizer.detect, {texts!r}))"
    )
    done = run("-c", program, target=target)
    assert done.stdout.split() == ["be", "ru", "uk"], done.stderr


def test_it_is_no_part_of_shinglefold():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    assert not [name for name in settings["packages"] if "_template" in name]


def test_its_plugin_is_about_twenty_lines():
    source = (TEMPLATE / "shinglefold_lang_be" / "__init__.py").read_text("utf-8")
    body = source.split('"""Belarusian, by a list of function words and a list of endings."""')[1]
    assert len([line for line in body.splitlines() if line.strip()]) <= 26
