"""Figures that pages give are those kept as evidence, and those that a formula gives."""

import json
import re
from pathlib import Path

import pytest

from shinglefold.model.scheme import Scheme
from shinglefold.relatives.bloom import Shape
from shinglefold.relatives.fingerprints import birthday_table
from shinglefold.sketch.b_bit_minhash import standard_error
from shinglefold.sketch.layout_advice import probability

ROOT = Path(__file__).resolve().parents[2]

#: Columns of the table → names in the evidence.
_KERNELS = (
    "numpy, 336 values",
    "compiled, 336 values",
    "numpy, 168 values",
    "compiled, 168 values",
    "rensa",
    "datasketch",
    "pymorphy3 and datasketch, plainly",
)
#: Rows of the table → texts in the evidence.
_TEXTS = {
    "generated Russian, 500 words": "generated ru, 500 words",
    "libreoffice-ru, 278 tokens": "libreoffice-ru",
    "gnome-uk, 184 tokens": "gnome-uk",
    "libreoffice-zh-cn, 412 characters": "libreoffice-zh-cn",
    "generated Russian, 20 words": "generated ru, 20 words",
}


def test_the_figures_of_the_kernel_are_those_kept_as_evidence():
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    (evidence,) = set(re.findall(r"bench/runs/[\d-]+-speed\.json", page))
    kept = {
        (row["name"], row["note"].split(";")[0]): row["value"]
        for row in json.loads((ROOT / evidence).read_text("utf-8"))["rows"]
    }
    for row, text in _TEXTS.items():
        (told,) = re.findall(rf"^\| {re.escape(row)} \|(.*)\|$", page, re.MULTILINE)
        values = [kept.get((f"kernel: {name}", text)) for name in _KERNELS]
        assert [cell.strip() for cell in told.split("|")] == [f"{v:,.0f}" if v else "" for v in values], row


#: Rows of the table → names in the evidence.
_ROWS = {
    "plain bulk of texts, documents a second": "texts, plain bulk, two requests at a time",
    "HTML, signed on the way ÷ plain bulk of HTML": "pages, with the stage ÷ plain bulk",
    "texts, signed on the way ÷ plain bulk of texts": (
        "texts, with the stage ÷ plain bulk, two requests at a time"
    ),
    "the same with the extra `fast`": (
        "texts, with the stage, compiled code loaded ÷ plain bulk, two requests at a time"
    ),
    "the same with the extra `fast` and `--workers 1`": (
        "texts, with the stage, compiled code loaded, no workers ÷ plain bulk, two requests at a time"
    ),
    "texts that were signed earlier ÷ plain bulk of texts": (
        "texts with fingerprints of before, plain bulk, two requests at a time"
        " ÷ plain bulk, two requests at a time"
    ),
    "bytes that a fingerprint adds to a document": "growth",
    "page of the engine, ms (p50)": "plain page, p50",
    "native collapse with members, ms (p50)": "native collapse with members, p50",
    "native oversample and collapse, ms (p50)": "native oversample + collapse, p50",
    "folded page with members, ms (p50)": "folded page with members, p50",
    "folded page with members, ms (p99)": "folded page with members, p99",
    "folded page with members, ms of the client's processor": "folded page with members, CPU of the client",
    "folded page ÷ native collapse, both with members (p50)": (
        "folded page with members, p50 ÷ native collapse with members, p50"
    ),
    "the same after `FoldedSearch.compile()`": (
        "folded page with members, compiled, p50 ÷ native collapse with members, p50"
    ),
}
_LINE = re.compile(r"^\| (?P<name>.+?) \| (?P<ru>[\d.,]+) \| (?P<zh>[\d.,]+) \|$", re.MULTILINE)


def test_the_figures_of_a_server_are_those_kept_as_evidence():
    evidence = sorted((ROOT / "bench" / "runs").glob("*-servers.json"))[-1]
    kept = {row["name"]: row["value"] for row in json.loads(evidence.read_text("utf-8"))["rows"]}
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    lines = list(_LINE.finditer(page.split("## On a server")[1]))
    assert [line["name"] for line in lines] == list(_ROWS)
    for line in lines:
        for corpus, told in (("libreoffice-ru", line["ru"]), ("libreoffice-zh-cn", line["zh"])):
            value = kept[f"{corpus}: {_ROWS[line['name']]}"]
            assert told == (f"{value:,.0f}" if value >= 100 else f"{value:.2f}")


RETRIEVAL = (ROOT / "docs" / "retrieval.md").read_text("utf-8")
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
    (evidence,) = set(re.findall(r"bench/runs/[\d-]+-retrieval\.json", RETRIEVAL))
    run = json.loads((ROOT / evidence).read_text("utf-8"))
    assert "dirty" not in run["commit"]
    expected = list(lines(run["rows"]))
    assert len(expected) == 9
    assert [line for line in RETRIEVAL.splitlines() if line.startswith(("| BM25", "| vectors"))] == expected


RELATIVES = (ROOT / "docs" / "relatives.md").read_text("utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table whose heading begins so."""
    body = RELATIVES[RELATIVES.index(heading) :].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()[2:]]


def test_the_table_of_widths_is_computed():
    told = [[int(cell.replace(",", "")) for cell in row] for row in rows("| bits | √R |")]
    computed = [
        [row.bits, *(round(count) for count in (row.root, *row.shingles))] for row in birthday_table()
    ]
    assert told == computed[::2][:3]


def test_the_size_of_a_filter_is_computed():
    shape = Shape.of(123_000, 0.05)
    assert f"m = {shape.bits:,} bits and k = {shape.hashes}" in RELATIVES


def record(name: str) -> dict[str, tuple[float, str]]:
    """Return the figures and notes kept of a benchmark, by name."""
    *_, newest = sorted((ROOT / "bench" / "runs").glob(f"????-??-??-{name}.json"))
    found = json.loads(newest.read_text("utf-8"))["rows"]
    return {row["name"]: (row["value"], row["note"]) for row in found}


def tells(cell: str, value: float) -> bool:
    """Whether a cell has a figure, rounded as it is there."""
    digits = re.sub(r"[^\d.]", "", cell.partition("(")[0])
    return abs(float(digits) - value) <= 0.5 * 10.0 ** -len(digits.partition(".")[2]) + 1e-9


def test_collisions_are_those_on_record():
    pairs, note = record("collisions")["Rabin–Karp, 32 bits"]
    told = re.search(r"has ([\d,]+) colliding pairs in 32\s+bits, where chance has (\d+,\d+)", RELATIVES)
    assert told is not None
    assert told[1] == f"{pairs:,}"
    assert f"expected n²/2R = {told[2]};" in note


def test_the_placement_of_documents_is_that_on_record():
    measured = record("bloom")
    told = re.search(
        r"(\.\d+) % of\s+strangers and miss ([\d.]+) % of sources.*?(\.\d+) % and ([\d.]+) %",
        RELATIVES,
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
    told = re.search(r"order: ([\d.]+) % more true pairs", RELATIVES)
    assert told is not None
    exact, tolerant = (
        measured[f"pairs found, {kind} elements of 5 words"][0] for kind in ("exact", "tolerant")
    )
    assert tells(told[1], 100 * (tolerant / exact - 1))


def test_the_time_of_a_search_for_passages_is_that_on_record():
    measured = record("matches")
    ((told,),) = [re.findall(r"answers in ([\d.]+) ms on a quiet", RELATIVES)]
    assert tells(told, measured["matches, 100,000 documents, embedded"][0])


def test_the_figures_of_similarity_hashes_are_those_on_record():
    measured = record("similarity")
    told = re.search(
        r"mean F1 of (\.\d+) at most, MinHash (\.\d+) .*?([\d.]+) µs a query", RELATIVES, re.DOTALL
    )
    assert told is not None
    assert sum("bytes" in note for _, note in measured.values()) == 12
    on_three = (value for value, note in measured.values() if "bytes" in note and "libreoffice-ru" in note)
    best, second, *_ = sorted(on_three, reverse=True)
    assert tells(told[1], second)
    assert tells(told[2], best)
    assert tells(told[3], measured["Hamming index: a query"][0])


METHOD = (ROOT / "docs" / "method.md").read_text("utf-8")
LAYOUTS = ((6, 14, 2), (14, 6, 1), (21, 4, 1), (28, 3, 1))
ROWS = re.findall(r"^\| (\.\d\d) \| ([\d. |]+) \|$", METHOD, re.MULTILINE)


@pytest.mark.parametrize(("resemblance", "cells"), ROWS)
def test_the_table_of_layouts_follows_the_formula(resemblance, cells):
    told = [float(cell) for cell in cells.split("|")]
    made = [round(float(probability(float(resemblance), m, n, k)), 2) for m, n, k in LAYOUTS]
    assert told == made


def test_the_table_of_layouts_is_there():
    assert len(ROWS) == 7


@pytest.mark.parametrize(("values", "bits"), [(84, 8), (168, 4), (336, 2)])
def test_the_standard_errors_follow_the_formula(values, bits):
    told = re.search(rf"{values}(?: values)? of\s+{bits} bits (\.\d+)", METHOD)
    assert told is not None
    assert float(told[1]) == round(standard_error(0.6, values, bits), 3)


def test_the_defaults_told_are_the_defaults():
    scheme = Scheme()
    sketch, decision = scheme.sketch, scheme.decision
    assert f"**{sketch.groups}×{sketch.group_size}, k = {decision.min_shared}**" in METHOD
    assert f"**{sketch.values} values of {sketch.bits} bits**" in METHOD
    assert f"at least **{decision.min_resemblance:.2f}**".replace("0.", ".") in METHOD
    assert f"at least **{decision.min_length_ratio:.1f}**".replace("0.", ".") in METHOD
    assert f"The default is w = {sketch.word_width}." in METHOD
