"""``advise layout`` and ``advise sample``."""

import json
from xml.etree import ElementTree

import pytest

from shinglefold.model.scheme import PRESETS
from shinglefold.sketch import probability, resemblance_after


def test_a_layout_finds_what_was_asked_for(run):
    told = json.loads(run("--json", "advise", "layout", "--resemblance", 0.8, "--miss", 0.01).out)
    assert told["found"] >= 0.99
    assert told["threshold"] < 0.8
    for point in told["curve"]:
        expected = probability(point["resemblance"], told["groups"], told["group_size"], told["min_shared"])
        assert point["found"] == pytest.approx(expected, abs=1e-6)


def test_ten_words_changed_in_five_hundred_are_a_resemblance(run):
    ran = run("advise", "layout", "--changed", 10, "--of", 500, "--width", 3)
    assert ran.code == 0
    assert f"{resemblance_after(0.02, 3):.4f}" in ran.out
    assert "1.00  " + "█" * 40 + "  1.0000" in ran.out


def test_more_documents_want_a_wider_hash(run):
    few, many = (
        json.loads(run("--json", "advise", "layout", "--documents", count, "--strangers", 1e6).out)[
            "hash_bits"
        ]
        for count in (10**4, 10**9)
    )
    assert many > few


def test_the_curve_is_drawn(run, tmp_path):
    assert run("advise", "layout", "--svg", tmp_path / "curve.svg").code == 0
    drawn = ElementTree.parse(tmp_path / "curve.svg")
    (line,) = drawn.iter("{http://www.w3.org/2000/svg}polyline")
    assert len(line.attrib["points"].split()) == 21


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--changed", 10), "--of go together"),
        (("--changed", 10, "--of", 10), "nothing would be left"),
        (("--changed", 1, "--of", 10, "--resemblance", 0.5), "one of them"),
        (
            ("--resemblance", 0.1, "--miss", 0.001, "--documents", 10**9, "--strangers", 1e-6),
            "raise miss",
        ),
    ],
)
def test_what_has_no_answer_is_misuse(run, given, says):
    ran = run("advise", "layout", *given)
    assert ran.code == 2
    assert says in ran.err


@pytest.mark.parametrize("verify", ["text", "signature"])
def test_a_sample_tells_what_folds_as_pairs_and_groups_do(run, examples_file, verify):
    told = json.loads(run("--json", "advise", "sample", examples_file, "--verify", verify).out)
    found = run("groups", "--pairs", examples_file, "--verify", verify).out.splitlines()
    (chosen,) = (row for row in told["tried"] if row["at"] == told["threshold"])
    assert chosen["pairs"] == len(found)
    assert [row["pairs"] for row in told["tried"]] == sorted(
        (row["pairs"] for row in told["tried"]), reverse=True
    )
    alike = [pair["alike"] for pair in told["nearest"]]
    assert alike == sorted(alike, reverse=True)
    assert min(alike) < told["threshold"] <= max(alike)


def test_keywords_have_no_threshold(run, examples_file):
    ran = run("advise", "sample", examples_file, "--verify", "keywords")
    assert ran.code == 2
    assert "--verify signature or text" in ran.err


def test_a_picture_takes_the_place_of_a_picture_and_of_nothing_else(run, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("dear")
    assert run("advise", "layout", "--svg", notes).code == 2
    assert notes.read_text() == "dear"
    for _ in range(2):
        assert run("advise", "layout", "--svg", tmp_path / "curve.svg").code == 0


@pytest.mark.parametrize("name", ["--resemblance", "--miss", "--near-share", "--strangers"])
def test_nan_is_no_number(run, name):
    ran = run("advise", "layout", name, "nan")
    assert ran.code == 2
    assert f"'{name}': 'nan' is no number. See: shinglefold advise layout --help" in ran.err


@pytest.mark.parametrize("resemblance", [0.5, 0.61, 0.7, 0.8, 0.9])
@pytest.mark.parametrize("width", [2, 3, 5, 7])
@pytest.mark.parametrize("strangers", [10, 1e6])
def test_what_is_recommended_can_be_applied(run, resemblance, width, strangers):
    """The options name a preset that finds enough pairs, and commands take them; else it is said."""
    given = ("advise", "layout", "--resemblance", resemblance, "--width", width, "--strangers", strangers)
    told = json.loads(run("--json", *given).out)["options"]
    shown = run(*given).out
    if told is None:
        assert "no option sets a layout of its own" in shown
        return
    scheme = PRESETS[told["--preset"]].sketch
    shared = int(told["--min-shared"])
    assert scheme.word_width == width
    assert probability(resemblance, scheme.groups, scheme.group_size, shared) >= 0.95
    assert f"--preset {told['--preset']};" in shown
    text = json.dumps({"id": 1, "body": "one two three four"})
    options = [part for pair in told.items() for part in pair]
    assert run("groups", "-", *options, stdin=text).code == 0
