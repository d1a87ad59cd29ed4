"""docs/relatives.md: what it gives as computed is what the code computes."""

import json
import re
from pathlib import Path

from shinglefold.bloom import Shape, pseudo_matrix_rows
from shinglefold.fingerprints.birthday import table
from shinglefold.similarity.reference_points import parted
from shinglefold.sketch import probability

PAGE = (Path(__file__).parents[2] / "docs" / "relatives.md").read_text("utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table whose heading begins so."""
    body = PAGE[PAGE.index(heading) :].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()[2:]]


def test_the_birthday_table_is_computed():
    told = [[int(cell.replace(",", "")) for cell in row] for row in rows("| bits | √R |")]
    assert told == [[row.bits, *(round(count) for count in (row.root, *row.shingles))] for row in table()]


def test_the_corrected_probabilities_are_the_formula():
    told = re.search(r"gives \*\*(\.\d+)\*\*.*?With two shared it is (\.\d+)", PAGE, re.DOTALL)
    assert told is not None
    assert [f"{probability(0.9, 6, 14, shared):.2f}"[1:] for shared in (1, 2)] == list(told.groups())


def test_the_sizes_of_filters_are_computed():
    shape = Shape.of(123_000, 0.05)
    assert f"m = {shape.bits:,} bits and k = {shape.hashes}" in PAGE
    for _, count, size, ratio in rows("| filter | rows | size |"):
        number = int(count.replace(",", ""))
        assert size.startswith(f"{number * shape.bits / 8 / 2**20:,.0f} MiB")
        assert ratio.removeprefix("1 : ") in {f"{14_428 / number:.2f}", "1"}
    assert f"| {pseudo_matrix_rows([38_000] * 14_428, 123_000):,} |" in PAGE


def test_the_border_effect_is_computed():
    for apart, one, both, observed in rows("| values apart, in steps |"):
        assert float(one) == parted(float(apart), 1.0, 1)
        assert float(both) == round(parted(float(apart), 1.0, 2), 2)
        assert abs(float(observed) - float(both)) < 0.01


def test_the_figures_of_similarity_hashes_are_those_on_record():
    (record,) = (Path(__file__).parents[2] / "bench" / "runs").glob("*-similarity.json")
    measured = {row["name"]: row["value"] for row in json.loads(record.read_text("utf-8"))["rows"]}
    told = {row[0].strip("*"): row[1].strip("*") for row in rows("| strategy | mean F1 |")}
    for name in ("piecewise hash of tokens", "simhash of shingles, 128 bits", "simhash of tokens, 64 bits"):
        assert told[name] == f"{measured[name]:.3f}"[1:]
