"""docs/groups.md: its session runs."""

import doctest
from pathlib import Path

FILE = Path(__file__).parents[2] / "docs" / "groups.md"


def test_its_session_answers_what_it_shows():
    outcome = doctest.testfile(str(FILE), module_relative=False, encoding="utf-8")
    assert outcome.attempted > 8
    assert outcome.failed == 0
