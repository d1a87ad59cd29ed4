"""docs/glossary.md: each word once, with its example."""

import re
from collections import Counter
from pathlib import Path

GLOSSARY = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text("utf-8")
ROWS = [line.strip("|").split("|") for line in GLOSSARY.splitlines() if line.startswith("| **")]
NEEDED = (
    "token, shingle, signature, supershingle, resemblance, containment, candidate, group, representative, "
    "member, scheme, processor, pipeline, oversample, collapse"
)


def terms():
    return [term for row in ROWS for term in re.findall(r"\*\*`?(.+?)`?\*\*", row[0])]


def test_each_term_is_explained_once():
    assert [term for term, times in Counter(terms()).items() if times > 1] == []


def test_each_term_has_a_meaning_and_an_example():
    assert all(len(row) == 3 and all(cell.strip() for cell in row) for row in ROWS)


def test_the_words_of_the_project_are_all_there():
    assert [term for term in NEEDED.split(", ") if term not in terms()] == []
