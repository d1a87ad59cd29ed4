import json
from pathlib import Path

import pytest

from shinglefold.errors import InputError
from shinglefold.ingest import index_documents, read
from shinglefold.ingest.readers.record import ReadOptions, Record
from shinglefold.ingest.writing.dead_letters import DeadLetters, replay


def letters_of(path: Path) -> list[dict]:
    return [json.loads(line, parse_constant=pytest.fail) for line in path.read_text("ascii").splitlines()]


def kept(path: Path, *records: Record) -> Path:
    letters = DeadLetters(path)
    for record in records:
        letters.write("read", record.reason or "busy", record)
    letters.close()
    return path


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
    assert letters.kept == 2


def test_no_failure_makes_no_file(tmp_path: Path):
    DeadLetters(tmp_path / "dead.jsonl").close()
    assert list(tmp_path.iterdir()) == []


def test_a_summary_names_the_letters_only_where_there_are_some(engine, make_pipeline, tmp_path: Path):
    pipeline, path = (
        make_pipeline({"fail": {"if": "ctx.bad == true", "message": "bad"}}),
        tmp_path / "dead.jsonl",
    )
    well = index_documents(engine, "i", [{"_id": "1"}], pipeline, workers=1, dead_letters=path)
    assert (well.failed, well.dead_letters) == (0, "")
    ill = index_documents(engine, "i", [{"_id": "1", "bad": True}], pipeline, workers=1, dead_letters=path)
    assert (ill.failed, ill.dead_letters) == (1, str(path))
    untold = index_documents(engine, "i", [{"_id": "1", "bad": True}], pipeline, workers=1)
    assert (untold.failed, untold.dead_letters) == (1, "")


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


def test_corrected_letters_keep_their_source_and_line(tmp_path: Path):
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


def test_other_lines_are_reported_not_raised(tmp_path: Path):
    path = tmp_path / "dead.jsonl"
    path.write_text('5\n[]\n{"source": "x"}\n{"source": "x", "line": 1}\n{"source": "x", "line": "?"}\n')
    records = list(replay(path))
    assert [record.document for record in records] == [None] * 5
    assert all(record.reason for record in records)


@pytest.mark.parametrize("number", ["1e999", "-Infinity", "NaN", "9" * 5_000, "[]", "null", '"x"'])
def test_a_letter_whose_line_is_no_number_is_reported_not_raised(tmp_path: Path, number: str):
    path = tmp_path / "dead.jsonl"
    path.write_text(f'{{"reason": "x", "source": "a", "document": {{}}, "line": {number}}}\n')
    (record,) = replay(path)
    assert record.document is None
    assert record.reason == "not a line of a dead-letter file"


def test_without_a_path_reasons_are_counted_and_memory_is_bounded():
    letters = DeadLetters(None)
    for n in range(5_000):
        letters.write("pipeline", f"reason {n}", Record({}, "x", n))
    letters.write("pipeline", "reason 1", Record({}, "x", 1))
    assert (letters.kept, sum(letters.reasons.values())) == (0, 5_001)
    assert letters.reasons["reason 1"] == 2
    assert len(letters.reasons) <= 1_001


def test_a_file_that_cannot_be_written_or_read_is_an_input_error(tmp_path: Path):
    letters = DeadLetters(tmp_path / "no" / "such" / "folder")
    with pytest.raises(InputError, match="cannot write the dead-letter file"):
        letters.write("read", "x", Record(None, "x", 1))
    with pytest.raises(InputError, match="check the path"):
        next(iter(replay(tmp_path / "missing")))


@pytest.mark.parametrize("line", ['{"id": "1", "n": 1e999}', '{"id": "1", "n": [NaN]}', '{"n": -Infinity}'])
def test_a_number_json_has_not_is_kept_as_it_was_written(tmp_path: Path, line: str):
    source = tmp_path / "in.jsonl"
    source.write_text(line)
    dead = kept(tmp_path / "dead.jsonl", *read(source))
    (letter,) = letters_of(dead)
    assert letter["raw"] == line
    (again,) = replay(dead)
    assert (again.document, again.reason) == (None, letter["reason"])


def test_a_document_that_is_no_json_is_stored_as_text_and_can_be_corrected(tmp_path: Path):
    dead = kept(tmp_path / "dead.jsonl", Record({"_id": "1", "n": float("inf")}, "x", 1))
    assert letters_of(dead)[0]["raw"] == '{"_id": "1", "n": Infinity}'
    (again,) = replay(dead)
    assert "Infinity is no JSON" in again.reason
    dead.write_text(dead.read_text().replace("Infinity", "7"))
    assert next(iter(replay(dead))).document == {"_id": "1", "n": 7}


@pytest.mark.parametrize("document", [{("a", "b"): 1}, {"me": ...}], ids=["a key", "itself"])
def test_a_document_of_pythons_own_breaks_no_run(tmp_path: Path, document: dict):
    if "me" in document:
        document["me"] = document
    (letter,) = letters_of(kept(tmp_path / "dead.jsonl", Record(document, "x", 1)))
    assert letter["raw"] == repr(document)


@pytest.mark.parametrize("number", ["1e999", "Infinity", "NaN"])
def test_a_wrongly_corrected_letter_is_reported_and_kept(tmp_path: Path, number: str):
    dead = tmp_path / "dead.jsonl"
    dead.write_text(f'{{"source": "x", "line": 4, "document": {{"_id": "1", "n": {number}}}}}\n')
    (record,) = replay(dead)
    assert (record.document, record.line) == (None, 4)
    assert "JSON" in record.reason
    letters_of(kept(tmp_path / "again.jsonl", record))


def test_a_corrected_letter_takes_its_id_from_the_original_id_field(tmp_path: Path):
    source = tmp_path / "in.jsonl"
    source.write_text('{"id": 1, "n": "first"}\n{"id": 2, broken}\n')
    dead = kept(tmp_path / "dead.jsonl", *read(source, ReadOptions(id_field="url")))
    assert [letter["id_field"] for letter in letters_of(dead)] == ["url", "url"]
    for again in replay(dead):
        assert (again.document, again.id_field) == (None, "url")
    mended = [letter | {"raw": json.dumps({"id": 3, "url": "u"})} for letter in letters_of(dead)]
    dead.write_text("".join(json.dumps(letter) + "\n" for letter in mended))
    assert [record.document["_id"] for record in replay(dead)] == ["u", "u"]


def test_a_document_kept_without_an_id_gets_one_from_the_field_named_now(tmp_path: Path):
    records = Record({"url": "u"}, "x", 1), Record({"_id": "7", "url": "v"}, "x", 2)
    dead = kept(tmp_path / "dead.jsonl", *records)
    assert [r.document["_id"] for r in replay(dead, ReadOptions(id_field="url"))] == ["u", "7"]


def test_lines_in_another_encoding_are_kept_as_text(tmp_path: Path):
    source = tmp_path / "in.jsonl"
    for encoding in ("windows-1251", "utf-16-le"):
        source.write_bytes('{"body": "текст"'.encode(encoding))
        dead = kept(tmp_path / encoding, *read(source, ReadOptions(encoding=encoding)))
        assert letters_of(dead)[0]["raw"] == '{"body": "текст"'
        dead.write_text(dead.read_text().replace('"}\n', '}"}\n'))
        assert next(iter(replay(dead, ReadOptions(encoding=encoding)))).document == {"body": "текст"}


def test_a_dead_letter_file_saved_in_utf_16_is_refused_and_one_with_a_mark_is_not(tmp_path: Path):
    dead = tmp_path / "dead.jsonl"
    text = '{"source": "x", "line": 1, "document": {"_id": "1"}}\n'
    dead.write_text(text, "utf-16")
    with pytest.raises(InputError, match="save it as UTF-8"):
        next(iter(replay(dead)))
    dead.write_text(text, "utf-8-sig")
    assert next(iter(replay(dead))).document == {"_id": "1"}
