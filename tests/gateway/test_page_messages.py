"""The messages of the pages are there in four languages, each in use."""

import re
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

from shinglefold.gateway.pages.shared import LANGUAGES, catalogue, chosen_language
from shinglefold.maintenance.doctor import Finding
from shinglefold.sketch.verification import DecidedBy

#: The tables of messages.
TABLES = {key.partition(".")[0] for key in catalogue()}
TEMPLATES = Path(__file__).parents[2] / "gateway" / "pages" / "templates"


def test_messages_are_whole():
    texts = catalogue()
    for key, by_language in texts.items():
        assert list(by_language) == list(LANGUAGES), key
        fields = {
            language: {name for _, name, _, _ in Formatter().parse(text) if name}
            for language, text in by_language.items()
        }
        assert len(set(map(frozenset, fields.values()))) == 1, (key, fields)
        assert all(text.strip() for text in by_language.values()), key
    written = "".join(path.read_text() for path in TEMPLATES.glob("*.html"))
    named = set(re.findall(r"'([a-z]+\.[a-z_]+)'", written))
    assert {one for one in named if one.partition(".")[0] in TABLES and one[-1] != "_"} <= texts.keys()
    made = {f"decided.{one}" for one in get_args(DecidedBy)} | {f"finding.{one}" for one in get_args(Finding)}
    assert made <= texts.keys()
    # Keys that are put together in templates: their beginnings stand there.
    begun = tuple(re.findall(r"'([a-z]+\.[a-z_]*)' \+", written))
    assert not {key for key in texts if key not in named and not key.startswith(begun)}


@pytest.mark.parametrize(
    ("asked", "accepted", "language"),
    [
        ("", "", "en"),
        ("", "fr, de;q=0.9", "en"),
        ("", "uk-UA,uk;q=0.9,ru;q=0.8", "uk"),
        ("", "en;q=0.2, zh-TW;q=0.9", "zh"),
        ("", "ru;q=0, zh;q=x", "en"),
        ("ru", "zh", "ru"),
        ("xx", "zh", "zh"),
    ],
)
def test_language(asked, accepted, language):
    assert chosen_language(asked, accepted) == language
