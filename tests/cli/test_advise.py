"""``advise width``, ``advise layout`` and ``advise sample``."""

import json
import re

import pytest
from support.commands import json_lines

from shinglefold.model.scheme import PRESETS
from shinglefold.sketch.layout_advice import probability, resemblance_after


def test_the_narrowest_width_is_advised(run):
    said = run("advise", "width", "--shingles", 10376876).check(0).out
    assert "56 bits are enough" in said
    assert "12,536" in said


def test_a_greater_risk_takes_fewer_bits(run):
    told = run("--json", "advise", "width", "--shingles", 10376876, "--probability", 0.2).json()
    assert told["advised_bits"] == 48
    row = next(row for row in told["widths"] if row["bits"] == 32)
    assert row["shingles_at"] == {"0.01": 9291, "0.1": 30083, "0.4": 66241}


@pytest.mark.parametrize("option", [("--shingles", "1"), ("--shingles", "9", "--probability", "1")])
def test_a_width_that_has_no_answer_is_misuse(run, option):
    run("advise", "width", "--shingles", "9", *option).check(2, option[-2])


def test_too_many_shingles_name_the_remedy(run):
    run("advise", "width", "--shingles", 10**13).check(2, "128 bits")


def test_a_sample_tells_the_pairs_of_a_file(run):
    body = " ".join(f"word{number}" for number in range(60))
    told = run(
        "advise", "sample", "-", "--json", stdin=json_lines(*({"id": name, "body": body} for name in "ab"))
    )
    assert told.json()["documents"] == 2
    assert max(row["pairs"] for row in told.json()["tried"]) == 1


def test_a_sample_without_pairs_promises_none(run):
    page = json_lines({"id": "a", "body": "one two three four five six"})
    said = run("advise", "sample", "-", stdin=page).check(0).out
    assert "documents: 1\n" in said
    assert "nearest" not in said


def test_a_layout_finds_what_was_asked_for(run):
    told = json.loads(run("--json", "advise", "layout", "--resemblance", 0.8, "--miss", 0.01).out)
    assert told["preset"] == "compact"
    assert told["found"] >= 0.99
    assert told["threshold"] < 0.8
    for point in told["curve"]:
        expected = probability(point["resemblance"], told["groups"], told["group_size"], told["min_shared"])
        assert point["found"] == pytest.approx(expected, abs=1e-6)


def test_ten_words_changed_in_five_hundred_are_a_resemblance(run):
    ran = run("advise", "layout", "--changed", 10, "--of", 500, "--width", 3, "--miss", 0.1).check(0)
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
    run("advise", "layout", *given).check(2, says)


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
    run("advise", "sample", examples_file, "--verify", "keywords").check(2, "--verify signature or text")


@pytest.mark.parametrize("name", ["--resemblance", "--miss", "--near-share", "--strangers"])
def test_nan_is_no_number(run, name):
    run("advise", "layout", name, "nan").check(
        2, f"'{name}': 'nan' is not a number. See: shinglefold advise layout --help"
    )


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
    run("advise", *command, "9" * 400).check(2, f"Invalid value for '{command[1]}'")


def test_changes_that_no_preset_finds_are_answered_in_their_own_words(run):
    ran = run("advise", "layout", "--changed", 999, "--of", 1000)
    assert (ran.code, ran.err.endswith(": lower --changed\n")) == (2, True)
