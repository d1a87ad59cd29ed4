"""docs/relatives.md: what it gives as computed is what the code computes."""

import json
import re
from pathlib import Path

from shinglefold.relatives.bloom import Shape, pseudo_matrix_rows
from shinglefold.relatives.collision_odds import table
from shinglefold.relatives.reference_points import parted
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
    told = re.search(
        r"Values (\.\d+) steps apart are rounded apart in (\.\d+).*?to 0 up to (\.\d+) steps", PAGE, re.DOTALL
    )
    assert told is not None
    assert parted(float(told[1]), 1.0, 1) == float(told[2])
    assert parted(float(told[3]), 1.0, 2) == 0 < parted(float(told[3]) + 0.01, 1.0, 2)


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
    measured = record("collisions")
    for name, pairs, *_ in rows("| function | colliding pairs |"):
        assert tells(pairs, measured[name][0]), name


def test_the_variants_of_minhash_are_those_on_record():
    measured = record("minhash_variants")
    names = {
        "multiply and add (default)": "multiply-add, N = {}",
        "XOR with fixed random numbers": "XOR, N = {}",
        "plain random sample of 84 shingles": "random sample of {}",
    }
    for name, *cells in rows("| variant | N = 30 |"):
        for count, cell in zip((30, 84, 150, 300, 2000), cells, strict=True):
            if cell and name == "expected":
                told = re.search(r"= ([\d.]+);", measured[f"XOR, N = {count}"][1])
                assert told is not None
                assert tells(cell, float(told[1]))
            elif cell:
                assert tells(cell, measured[names[name].format(count)][0]), (name, count)


def test_the_placement_of_documents_is_that_on_record():
    measured = record("bloom")
    told = re.search(
        r"(\.\d+) % of strangers are found and ([\d.]+) % of sources.*?(\.\d+) % and ([\d.]+) %",
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


def test_the_growth_and_the_tolerance_of_passages_are_those_on_record():
    measured = record("passages")
    for name, cell, _ in rows("| documents | ms a text |"):
        key = "matches, each of 100 documents in turn" if "turn" in name else f"matches, {name} documents"
        assert tells(cell, measured[key][0]), name
    told = re.search(r"finds ([\d.]+) % more true pairs", PAGE)
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
    told = re.search(r"mean F1 (\.\d+), the best other one (\.\d+)", PAGE)
    assert told is not None
    assert sum("bytes" in note for _, note in measured.values()) == 12
    on_three = (value for value, note in measured.values() if "bytes" in note and "libreoffice-ru" in note)
    best, second, *_ = sorted(on_three, reverse=True)
    assert tells(told[1], best)
    assert tells(told[2], second)
