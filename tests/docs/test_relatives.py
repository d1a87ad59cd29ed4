"""docs/relatives.md: what it gives as computed is what the code computes."""

import json
import re
from pathlib import Path

from shinglefold.relatives.bloom import Shape
from shinglefold.relatives.collision_odds import table

PAGE = (Path(__file__).parents[2] / "docs" / "relatives.md").read_text("utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table whose heading begins so."""
    body = PAGE[PAGE.index(heading) :].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()[2:]]


def test_the_table_of_widths_is_computed():
    told = [[int(cell.replace(",", "")) for cell in row] for row in rows("| bits | √R |")]
    computed = [[row.bits, *(round(count) for count in (row.root, *row.shingles))] for row in table()]
    assert told == computed[::2][:3]


def test_the_size_of_a_filter_is_computed():
    shape = Shape.of(123_000, 0.05)
    assert f"m = {shape.bits:,} bits and k = {shape.hashes}" in PAGE


def record(name: str) -> dict[str, tuple[float, str]]:
    """Return the figures and notes kept of a benchmark, by name."""
    *_, newest = sorted((Path(__file__).parents[2] / "bench" / "runs").glob(f"????-??-??-{name}.json"))
    found = json.loads(newest.read_text("utf-8"))["rows"]
    return {row["name"]: (row["value"], row["note"]) for row in found}


def tells(cell: str, value: float) -> bool:
    """Whether a cell has a figure, rounded as it is there."""
    digits = re.sub(r"[^\d.]", "", cell.partition("(")[0])
    return abs(float(digits) - value) <= 0.5 * 10.0 ** -len(digits.partition(".")[2]) + 1e-9


def test_collisions_are_those_on_record():
    pairs, note = record("collisions")["Rabin–Karp, 32 bits"]
    told = re.search(r"has ([\d,]+) colliding pairs in 32\s+bits, where chance has (\d+,\d+)", PAGE)
    assert told is not None
    assert told[1] == f"{pairs:,}"
    assert f"expected n²/2R = {told[2]};" in note


def test_the_placement_of_documents_is_that_on_record():
    measured = record("bloom")
    told = re.search(
        r"(\.\d+) % of\s+strangers and miss ([\d.]+) % of sources.*?(\.\d+) % and ([\d.]+) %",
        PAGE,
        re.DOTALL,
    )
    assert told is not None
    kinds = ("false positives", "false negatives")
    names = [
        f"placement: documents {name}, {kind}" for name in ("whole", "split, both rows") for kind in kinds
    ]
    assert all(tells(cell, measured[name][0]) for cell, name in zip(told.groups(), names, strict=True))


def test_all_relatives_are_told_as_on_record():
    measured = record("relatives")
    heads = ("gnome-uk", "libreoffice-ru, one family of 6", "libreoffice-zh-cn, one family of 6")
    columns = [[value for name, (value, _) in measured.items() if name.startswith(head)] for head in heads]
    told = rows("| relative | gnome-uk |")
    assert len(told) == len(columns[0])
    for place, (name, *cells, _, _) in enumerate(told):
        for column, cell in zip(columns, cells, strict=True):
            assert tells(cell, column[place]), name


def test_the_tolerance_of_passages_is_that_on_record():
    measured = record("passages")
    told = re.search(r"order: ([\d.]+) % more true pairs", PAGE)
    assert told is not None
    exact, tolerant = (
        measured[f"pairs found, {kind} elements of 5 words"][0] for kind in ("exact", "tolerant")
    )
    assert tells(told[1], 100 * (tolerant / exact - 1))


def test_the_time_of_a_search_for_passages_is_that_on_record():
    measured = record("matches")
    ((told,),) = [re.findall(r"answers in ([\d.]+) ms on a quiet", PAGE)]
    assert tells(told, measured["matches, 100,000 documents, embedded"][0])


def test_the_figures_of_similarity_hashes_are_those_on_record():
    measured = record("similarity")
    told = re.search(r"mean F1 of (\.\d+) at most, MinHash (\.\d+) .*?([\d.]+) µs a query", PAGE, re.DOTALL)
    assert told is not None
    assert sum("bytes" in note for _, note in measured.values()) == 12
    on_three = (value for value, note in measured.values() if "bytes" in note and "libreoffice-ru" in note)
    best, second, *_ = sorted(on_three, reverse=True)
    assert tells(told[1], second)
    assert tells(told[2], best)
    assert tells(told[3], measured["Hamming index: a query"][0])
