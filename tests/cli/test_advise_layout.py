"""``advise layout`` and ``advise sample``."""

import json
import re

import pytest

from shinglefold.model.scheme import PRESETS
from shinglefold.sketch.layout_advice import probability, resemblance_after


def test_a_layout_finds_what_was_asked_for(run):
    told = json.loads(run("--json", "advise", "layout", "--resemblance", 0.8, "--miss", 0.01).out)
    assert told["preset"] == "compact"
    assert told["found"] >= 0.99
    assert told["threshold"] < 0.8
    for point in told["curve"]:
        expected = probability(point["resemblance"], told["groups"], told["group_size"], told["min_shared"])
        assert point["found"] == pytest.approx(expected, abs=1e-6)


def test_ten_words_changed_in_five_hundred_are_a_resemblance(run):
    ran = run("advise", "layout", "--changed", 10, "--of", 500, "--width", 3, "--miss", 0.1)
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


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--changed", 10), "--of go together"),
        (("--changed", 10, "--of", 10), "nothing would be left"),
        (("--changed", 1, "--of", 10, "--resemblance", 0.5), "one of them"),
        (
            ("--resemblance", 0.1, "--miss", 0.001, "--documents", 10**9, "--strangers", 1e-6),
            "no preset finds 99.90% of the pairs at 0.1 with at most 1e-06 strangers",
        ),
        (("--width", 4), "--width 4: the presets have shingles of 2, 3, 5 words"),
    ],
)
def test_what_has_no_answer_is_misuse(run, given, says):
    ran = run("advise", "layout", *given)
    assert ran.code == 2
    assert says in ran.err


@pytest.mark.long(every=2)
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


@pytest.mark.parametrize("name", ["--resemblance", "--miss", "--near-share", "--strangers"])
def test_nan_is_no_number(run, name):
    ran = run("advise", "layout", name, "nan")
    assert ran.code == 2
    assert f"'{name}': 'nan' is no number. See: shinglefold advise layout --help" in ran.err


@pytest.mark.long(every=3)
@pytest.mark.parametrize("resemblance", [0.5, 0.61, 0.8, 0.9])
@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("strangers", [0.01, pytest.param(10, marks=pytest.mark.long), 1e6])
def test_what_is_recommended_is_a_command_that_does_it(run, resemblance, width, strangers):
    """The figures are those of a preset, and the commands run; else the error has commands that do."""
    given = ["advise", "layout", "--resemblance", resemblance, "--width", width, "--strangers", strangers]
    ran = run("--json", *given)
    if ran.code:
        assert ran.code == 2
        remedies = re.findall("shinglefold (advise .*?)(?: or |$)", ran.err.strip().replace("--json ", ""))
        assert remedies or (width == 5 and resemblance <= 0.61 and "raise --resemblance" in ran.err)
        assert not [one for one in remedies if run(*one.split()).code]
        return
    told = ran.json()
    sketch = PRESETS[told["preset"]].sketch
    assert (sketch.word_width, sketch.groups, sketch.values) == (width, told["groups"], told["values"])
    assert probability(resemblance, sketch.groups, sketch.group_size, told["min_shared"]) >= 0.95
    assert told["strangers"] <= strangers
    shown = run(*given).out
    text = json.dumps({"id": 1, "body": "one two three four"})
    for line in told["commands"]:
        assert line in shown
        for command in line.replace("FILE", "-").replace("WORDS", "two").split(" && "):
            assert run(*command.split()[1:], stdin=text).code == 0


@pytest.mark.parametrize("command", [("width", "--shingles"), ("layout", "--documents")])
def test_numbers_that_no_computer_counts_to_are_refused(run, command):
    ran = run("advise", *command, "9" * 400)
    assert (ran.code, f"Invalid value for '{command[1]}'" in ran.err) == (2, True)


def test_changes_that_no_preset_finds_are_answered_in_their_own_words(run):
    ran = run("advise", "layout", "--changed", 999, "--of", 1000)
    assert (ran.code, ran.err.endswith(": lower --changed\n")) == (2, True)
