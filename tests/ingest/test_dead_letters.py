import json
from pathlib import Path

import pytest

from shinglefold.errors import InputError
from shinglefold.ingest import DeadLetters, Record, read, replay


def letters_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


def test_a_letter_says_what_failed_where_and_why(tmp_path: Path):
    letters = DeadLetters(tmp_path / "dead.jsonl")
    letters.write("pipeline", "no good", Record({"_id": "1", "body": 5}, "in.jsonl", 3))
    letters.write("read", "invalid JSON", Record(None, "in.jsonl", 4, "invalid JSON", raw="{x"))
    letters.close()
    assert letters_of(tmp_path / "dead.jsonl") == [
        {
            "reason": "no good",
            "stage": "pipeline",
            "line": 3,
            "source": "in.jsonl",
            "document": {"_id": "1", "body": 5},
        },
        {"reason": "invalid JSON", "stage": "read", "line": 4, "source": "in.jsonl", "raw": "{x"},
    ]
    assert letters.count == 2


def test_no_failure_makes_no_file(tmp_path: Path):
    DeadLetters(tmp_path / "dead.jsonl").close()
    assert list(tmp_path.iterdir()) == []


def test_letters_are_appended_even_after_a_crash_in_the_middle_of_a_line(tmp_path: Path):
    path = tmp_path / "dead.jsonl"
    path.write_text('{"reason": "half a li')
    letters = DeadLetters(path)
    letters.write("index", "429: busy", Record({"_id": "1"}, "in.jsonl", 1))
    letters.close()
    first, second = path.read_text().splitlines()
    assert first == '{"reason": "half a li'
    assert json.loads(second)["document"] == {"_id": "1"}
    half, whole = replay(path)
    assert half.reason == "not a line of a dead-letter file"
    assert whole.document == {"_id": "1"}


def test_what_was_mended_can_be_read_again_with_its_place(tmp_path: Path):
    source = tmp_path / "in.jsonl"
    source.write_bytes('{"id": "1", "body": "текст"}\n{broken \xff\n'.encode("latin-1", "replace"))
    source.write_bytes(b'{"id": "1", "body": "\xd0\xb0"}\n{broken \xff\n')
    letters = DeadLetters(tmp_path / "dead.jsonl")
    for record in read(source):
        letters.write("index", record.reason or "busy", record)
    letters.close()
    good, bad = replay(tmp_path / "dead.jsonl")
    assert (good.document, good.line, good.source) == ({"_id": "1", "id": "1", "body": "а"}, 1, str(source))
    assert bad.line == 2
    assert bad.raw.encode("utf-8", "surrogateescape") == b"{broken \xff"
    mended = (tmp_path / "dead.jsonl").read_text().replace("{broken \\udcff", '{\\"id\\": \\"2\\"}')
    (tmp_path / "dead.jsonl").write_text(mended)
    assert [record.document for record in replay(tmp_path / "dead.jsonl")][1] == {"_id": "2", "id": "2"}


def test_surrogates_and_nul_survive_in_a_letter(tmp_path: Path):
    document = {"_id": "\ud800", "body": "\0"}
    letters = DeadLetters(tmp_path / "dead.jsonl")
    letters.write("pipeline", "odd", Record(document, "x", 1))
    letters.close()
    assert next(iter(replay(tmp_path / "dead.jsonl"))).document == document


def test_lines_of_anything_else_are_told_not_raised(tmp_path: Path):
    path = tmp_path / "dead.jsonl"
    path.write_text('5\n[]\n{"source": "x"}\n{"source": "x", "line": 1}\n{"source": "x", "line": "?"}\n')
    records = list(replay(path))
    assert [record.document for record in records] == [None] * 5
    assert all(record.reason for record in records)


def test_without_a_path_reasons_are_counted_and_memory_is_bounded():
    letters = DeadLetters(None)
    for n in range(5_000):
        letters.write("pipeline", f"reason {n}", Record({}, "x", n))
    letters.write("pipeline", "reason 1", Record({}, "x", 1))
    assert letters.count == sum(letters.reasons.values()) == 5_001
    assert letters.reasons["reason 1"] == 2
    assert len(letters.reasons) <= 1_001


def test_a_file_that_cannot_be_written_or_read_is_an_input_error(tmp_path: Path):
    letters = DeadLetters(tmp_path / "no" / "such" / "folder")
    with pytest.raises(InputError, match="cannot write the dead-letter file"):
        letters.write("read", "x", Record(None, "x", 1))
    with pytest.raises(InputError, match="check the path"):
        next(iter(replay(tmp_path / "missing")))
