"""The language that docs/plugins.md builds in twenty lines works, and passes the kit."""

import re
import tomllib
from pathlib import Path

import pytest
from support.distributions import install

from shinglefold.model.scheme import CanonOptions
from shinglefold.registry import language_class
from shinglefold.testing.languages.conformance import CHECKS, check_language

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "plugins.md"


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)


@pytest.fixture(autouse=True)
def _installed(tmp_path, monkeypatch):
    points = tomllib.loads(blocks("toml")[0])["project"]["entry-points"]["shinglefold.languages"]
    install(tmp_path, "shinglefold-lang-eo", *(f"{name} = {value}" for name, value in points.items()))
    (tmp_path / "shinglefold_lang_eo.py").write_text(blocks("python")[0], "utf-8")
    monkeypatch.syspath_prepend(tmp_path)


def test_the_example_passes_every_check():
    assert check_language("eo").passed == tuple(CHECKS)
    language = language_class("eo")(CanonOptions(drop_function_words=True))
    assert [language.canonical(word) for word in ("la", "hundojn", "hundo")] == [None, "hund", "hund"]


def test_the_class_of_the_example_has_about_twenty_lines():
    body = blocks("python")[0].split("class Esperanto")[1]
    assert len([line for line in body.splitlines() if line.strip()]) <= 20
