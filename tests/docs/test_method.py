"""The numbers of docs/method.md that follow from a formula are those the code computes."""

import re
from pathlib import Path

import pytest

from shinglefold.model.scheme import Scheme
from shinglefold.sketch.b_bit_minhash import standard_error
from shinglefold.sketch.layout_advice import probability

METHOD = (Path(__file__).parents[2] / "docs" / "method.md").read_text("utf-8")
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
