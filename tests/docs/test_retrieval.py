"""The table of docs/retrieval.md is what its run measured."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "retrieval.md").read_text("utf-8")
CORPORA = ("gnome-uk", "libreoffice-ru")
_FOUND = re.compile(r"first 5: ([\d.]+);.* ([\d.]+) copies; ([\d,]+) tokens,.*; ([\d.]+) ms;")


def lines(rows):
    """Yield the lines of the table: each figure of the first corpus and of the second."""
    measured = {row["name"]: (row["value"], _FOUND.search(row["note"])) for row in rows}
    for name in measured:
        corpus, _, way = name.partition(", ")
        if corpus == CORPORA[0] and way.count(", "):
            stage, _, method = way.partition(", ")
            pairs = [measured[f"{one}, {way}"] for one in CORPORA]
            columns = zip(
                *((found[1], f"{value:.2f}", found[2], found[3], found[4]) for value, found in pairs),
                strict=True,
            )
            yield f"| {stage} | {method} | {' | '.join(' / '.join(column) for column in columns)} |"


def test_the_table_is_of_its_run():
    (evidence,) = set(re.findall(r"bench/runs/[\d-]+-retrieval\.json", PAGE))
    run = json.loads((ROOT / evidence).read_text("utf-8"))
    assert "dirty" not in run["commit"]
    expected = list(lines(run["rows"]))
    assert len(expected) == 9
    assert [line for line in PAGE.splitlines() if line.startswith(("| BM25", "| vectors"))] == expected
