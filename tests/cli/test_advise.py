import json

import pytest

from shinglefold.cli.main import main


def test_the_narrowest_width_is_advised(capsys):
    assert main(["advise", "width", "--shingles", "10376876"]) == 0
    said = capsys.readouterr().out
    assert "56 bits are enough" in said
    assert "12,536" in said


def test_a_greater_risk_takes_fewer_bits(capsys):
    assert main(["--json", "advise", "width", "--shingles", "10376876", "--probability", "0.2"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["advised_bits"] == 48
    row = next(row for row in told["widths"] if row["bits"] == 32)
    assert row["shingles_at"] == {"0.01": 9291, "0.1": 30083, "0.4": 66241}


@pytest.mark.parametrize("option", [("--shingles", "1"), ("--shingles", "9", "--probability", "1")])
def test_what_has_no_answer_is_misuse(option, capsys):
    assert main(["advise", "width", "--shingles", "9", *option]) == 2
    assert option[-2] in capsys.readouterr().err


def test_too_many_shingles_name_the_remedy(capsys):
    assert main(["advise", "width", "--shingles", str(10**13)]) == 2
    assert "128 bits" in capsys.readouterr().err


def test_a_sample_tells_the_pairs_of_a_file(capsys, tmp_path):
    pages = tmp_path / "pages.jsonl"
    body = " ".join(f"word{number}" for number in range(60))
    pages.write_text("".join(json.dumps({"id": name, "body": body}) + "\n" for name in "ab"), "utf-8")
    assert main(["advise", "sample", str(pages), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["documents"] == 2
    assert max(row["pairs"] for row in told["tried"]) == 1


def test_a_sample_without_pairs_promises_none(capsys, tmp_path):
    page = tmp_path / "page.jsonl"
    page.write_text(json.dumps({"id": "a", "body": "one two three four five six"}), "utf-8")
    assert main(["advise", "sample", str(page)]) == 0
    said = capsys.readouterr().out
    assert "documents: 1\n" in said
    assert "nearest" not in said
