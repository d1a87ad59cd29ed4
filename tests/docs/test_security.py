"""docs/security.md: its session runs, and it names what visitors may set."""

import doctest
import re
from pathlib import Path

from shinglefold.rerank.request.fold_options import VISITORS

FILE = Path(__file__).parents[2] / "docs" / "security.md"


def test_its_session_answers_what_it_shows():
    outcome = doctest.testfile(
        str(FILE), module_relative=False, encoding="utf-8", optionflags=doctest.ELLIPSIS
    )
    assert outcome.attempted > 3
    assert outcome.failed == 0


def test_it_names_all_that_visitors_may_set_and_no_more():
    part = FILE.read_text("utf-8").split("## What visitors may set\n")[1].split("```")[0]
    first = [row.split("|")[1] for row in part.splitlines() if row.startswith("| `")]
    assert {name for cell in first for name in re.findall(r"`([a-z]+[a-z_]*)`", cell)} == set(VISITORS)
