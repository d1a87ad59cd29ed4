"""Rows of CSV: separators, headers, quotes, joined files."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from support.record_sources import read_all, write

from shinglefold.ingest import read
from shinglefold.ingest.readers.record import ReadOptions


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_commonest_separator_of_the_header_parts_columns(tmp_path: Path, separator: str):
    other = {",": ";"}.get(separator, ",")
    rows = f'id{separator}body{separator}"a{other}b"\n1{separator}один{other} два{separator}три\n'
    (record,) = read_all(write(tmp_path / "x.csv", rows))
    assert record.document == {"_id": "1", "id": "1", "body": f"один{other} два", f"a{other}b": "три"}


@pytest.mark.parametrize("first", ["sep=;", "SEP=;", '"sep=;"', "sep=|", "sep=\t"])
def test_the_first_line_that_excel_writes_says_what_parts_columns_and_is_no_header(
    tmp_path: Path, first: str
):
    parts = first.strip('"')[-1]
    rows = parts.join(("id", "body")) + "\r\n" + parts.join(("1", "один, два"))
    (record,) = read_all(write(tmp_path / "x.csv", f"\ufeff{first}\r\n{rows}\r\n"))
    assert (record.document, record.line) == ({"_id": "1", "id": "1", "body": "один, два"}, 3)


def test_a_column_called_sep_is_one(tmp_path: Path):
    (record,) = read_all(write(tmp_path / "x.csv", "sep=x;body\n1;два\n"))
    assert record.document == {"sep=x": "1", "body": "два"}


def test_a_missing_id_column_is_reported_once_with_the_existing_columns(tmp_path: Path):
    (record,) = read_all(write(tmp_path / "x.csv", "id,body\n1,a\n2,b\n"), id_field="url")
    assert record.reason == "the header: no column 'url', the id field; the columns are id, body"
    assert read_all(write(tmp_path / "empty.csv", ""), id_field="url") == []


def test_a_row_without_an_id_is_kept_as_an_object_that_can_be_corrected(tmp_path: Path):
    (record,) = read_all(write(tmp_path / "x.csv", 'url,body\n,"ещё\nтекст"\n'), id_field="url")
    assert json.loads(record.raw) == {"url": "", "body": "ещё\nтекст"}
    assert record.id_field == "url"


def test_csv_gives_a_document_a_row(tmp_path: Path):
    rows = (
        'id;title;body\n1;"раз; два";"в две\nстроки"\n\n2;три\n3;a;"' + "ы" * 200_000 + '"\n;без номера;x\n'
    )
    one, bad, long, noid = read_all(write(tmp_path / "x.csv", rows))
    assert one.document == {"_id": "1", "id": "1", "title": "раз; два", "body": "в две\nстроки"}
    assert (bad.reason, bad.raw) == ("2 values in a row, the header has 3", "2;три")
    assert [record.line for record in (one, bad, long, noid)] == [2, 5, 6, 7]
    assert len(long.document["body"]) == 200_000
    assert "must be text" in noid.reason


def test_a_damaged_csv_says_so(tmp_path: Path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"id,body\n" * 10_000)[:20])
    (record,) = read_all(path)
    assert "the header: the file is damaged" in record.reason


def test_a_quote_that_never_closes_swallows_no_rows_unseen(tmp_path: Path):
    first, bad = read_all(write(tmp_path / "x.csv", 'id,body\n1,a\n2,"open\n3,b\n4,c\n'))
    assert first.document == {"_id": "1", "id": "1", "body": "a"}
    assert (bad.line, bad.raw) == (3, '2,"open\n3,b\n4,c')
    assert "never closes" in bad.reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [(b"x" * 90, "longer than 80 bytes"), (("Мост " * 9).encode("cp1251"), "try --encoding windows-1251")],
)
def test_a_line_within_a_row_that_cannot_be_read_fails_the_row(tmp_path: Path, line: bytes, reason: str):
    path = write(tmp_path / "x.csv", b'id,body\n1,"a\n' + line + b'\nb\xff"\n2,c\n3,\xff\n')
    bad, good, replaced = read_all(path, max_bytes=80)
    assert (bad.line, bad.document) == (2, None)
    assert bad.reason.endswith(reason)
    assert (good.document, good.replaced) == ({"_id": "2", "id": "2", "body": "c"}, 0)
    assert replaced.document is None or replaced.replaced == 1


def test_replaced_letters_are_counted_row_by_row(tmp_path: Path):
    rows = 'id,body\n1,"Мост?\nзакрыт?"\n2,нет\n3,река?\n'.encode().replace(b"?", b"\xff")
    assert [record.replaced for record in read_all(write(tmp_path / "x.csv", rows))] == [2, 0, 1]


def test_readers_of_several_files_keep_their_own_limits(tmp_path: Path):
    records = read(write(tmp_path / "long.csv", "id,body\n1,a\n2," + "ы" * 200_000 + "\n"))
    next(records)
    assert read_all(write(tmp_path / "short.csv", "id,body\n1,a\n"), max_bytes=100)
    assert len(next(records).document["body"]) == 200_000


def test_an_empty_cell_of_an_id_is_no_missing_one(tmp_path: Path):
    for rows in ("_id,id\n,7\n", "id,body\n,a\n"):
        (record,) = read_all(write(tmp_path / "x.csv", rows))
        assert "must be text or a whole number" in record.reason
    (record,) = read_all(write(tmp_path / "x.csv", "url,body,id\nu,,\n"), id_field="url")
    assert record.document == {"_id": "u", "url": "u"}


def test_separators_are_named_where_the_header_has_none(tmp_path: Path):
    (record,) = read_all(write(tmp_path / "x.csv", "id/body\n1,a\n"))
    assert record.reason == "2 values in a row, the header has 1; columns are separated by , ; | or tab"


def test_text_after_a_closed_quote_costs_its_row_only(tmp_path: Path):
    bad, last = read_all(write(tmp_path / "x.csv", 'id,body\n1,"x"y"z\n2,b\n'))
    assert "invalid CSV" in bad.reason
    assert last.document == {"_id": "2", "id": "2", "body": "b"}


def test_two_columns_of_one_name_are_refused(tmp_path: Path):
    (record,) = read_all(write(tmp_path / "x.csv", "id,body,body\n1,a,b\n"))
    assert "the column 'body' occurs twice" in record.reason


def test_csv_may_have_a_header_of_several_lines(tmp_path: Path):
    (record,) = read_all(write(tmp_path / "x.csv", 'id,"long\nname"\n1,x\n'))
    assert record.document == {"_id": "1", "id": "1", "long\nname": "x"}
    assert record.line == 3


def test_csv_may_be_separated_by_tabs_and_in_another_encoding(tmp_path: Path):
    path = write(tmp_path / "x.tsv.gz", "id\tbody\n1\tтекст, ещё\n".encode("windows-1251"))
    (record,) = read_all(path, encoding="windows-1251")
    assert record.document == {"_id": "1", "id": "1", "body": "текст, ещё"}


@pytest.mark.parametrize(
    ("joined", "documents", "skipped"),
    [
        ("id,body\n1,a\nid,body\n2,b\n", [("1", "a"), ("2", "b")], 1),
        ("id,body\r\n1,a\r\n\ufeffid,body\r\n2,b\r\n", [("1", "a"), ("2", "b")], 1),
        ('id,body\n1,a\n\n"id","body"\n2,b\nid,body\n', [("1", "a"), ("2", "b")], 2),
        ("id,body\n1,a\nbody,id\nb,2\n", [("1", "a"), ("2", "b")], 1),
        ("id,body\nid,a\n2,body\n", [("id", "a"), ("2", "body")], 0),
        ("body,body2\nbody,x\n", [(None, "body")], 0),
    ],
)
def test_headers_of_joined_files_are_no_documents(tmp_path: Path, joined: str, documents: Any, skipped: int):
    options = ReadOptions()
    found = [one.document or {} for one in read(write(tmp_path / "x.csv", joined), options)]
    assert [(one.get("_id"), one["body"]) for one in found] == documents
    assert options.skipped["repeated_headers"] == skipped


def test_without_a_header_every_row_is_a_document(tmp_path: Path):
    found = read_all(write(tmp_path / "x.csv", "a,b\n1,2\na,b\n"), header=False)
    assert len(found) == 3


@pytest.mark.parametrize("before", ["\n", "\r\n\r\n", ";;\n", " ; \n\n"])
def test_blank_lines_and_empty_cells_before_the_header_are_skipped(tmp_path: Path, before: str):
    path = write(tmp_path / "x.csv", f"{before}id;body;a,b\n1;раз;2\n")
    lines = before.count("\n")
    (record,) = read_all(path)
    assert (record.line, record.document) == (lines + 2, {"_id": "1", "id": "1", "body": "раз", "a,b": "2"})
    header, _ = read_all(path, header=False)
    assert (header.line, header.document["column1"]) == (lines + 1, "id")
    (refused,) = read_all(path, id_field="url")
    assert refused.line == lines + 1


def test_spaces_around_the_name_of_a_column_are_no_part_of_it(tmp_path: Path):
    (record,) = read_all(write(tmp_path / "x.csv", "text, id ,\t,n\nраз,1,2,3\ntext,id,,n\n"))
    assert record.document == {"_id": "1", "text": "раз", "id": "1", "column3": "2", "n": "3"}
    (refused,) = read_all(write(tmp_path / "x.csv", "text, text\n1,2\n"))
    assert "the column 'text' occurs twice" in refused.reason


@pytest.mark.parametrize("name", ["x.tsv", "x.TSV.gz"])
def test_tabs_separate_the_columns_of_tsv_whatever_the_header_has(tmp_path: Path, name: str):
    (record,) = read_all(write(tmp_path / name, "id\tname, first, last\n1\tа, б\n"))
    assert record.document == {"_id": "1", "id": "1", "name, first, last": "а, б"}
    # Many programs write commas to any name.
    (record,) = read_all(write(tmp_path / name, "id,name\n1,а\n"))
    assert record.document == {"_id": "1", "id": "1", "name": "а"}


def test_one_odd_character_in_the_first_row_is_kept(tmp_path: Path):
    first, _ = read_all(write(tmp_path / "x.csv", "1,hello\x1fworld\n2,two\n"), header=False)
    assert first.document["column2"] == "hello\x1fworld"


def test_a_header_that_was_announced_may_name_no_column(tmp_path: Path):
    path = write(tmp_path / "x.csv", ",,\nfoo,bar,baz\nqux,b,z\n")
    assert [one.document["column1"] for one in read_all(path, header=True)] == ["foo", "qux"]
    assert [one.document["foo"] for one in read_all(path)] == ["qux"]


def test_a_file_of_blank_lines_has_no_documents(tmp_path: Path):
    for text in ("", "\n\n", ",,\n", "sep=;\n\n;\n"):
        assert read_all(write(tmp_path / "x.csv", text), header=False) == []
        assert read_all(write(tmp_path / "x.csv", text), id_field="id") == []


def test_a_first_line_that_is_too_long_is_not_skipped_as_a_blank_one(tmp_path: Path):
    (record,) = read_all(write(tmp_path / "x.csv", "id,body\n1,a\n"), max_bytes=5)
    assert record.reason == "the header: longer than 5 bytes"


@pytest.mark.parametrize("quote", ["", '"'])
def test_byte_order_marks_of_joined_files_are_no_part_of_cells(tmp_path: Path, quote: str):
    one, other = (f"\ufeff{quote}id{quote},{quote}body{quote}\n{n},x\n" for n in (1, 2))
    records = read_all(write(tmp_path / "x.csv", one + other))
    assert [record.document["_id"] for record in records] == ["1", "2"]
    bare = [text.replace(f"{quote}id{quote},{quote}body{quote}\n", "") for text in (one, other)]
    records = read_all(write(tmp_path / "x.csv", "".join(bare)), header=False)
    assert [record.document["column1"] for record in records] == ["1", "2"]
    # Within a cell it stays. Line ends within cells are newlines, as at the end of rows.
    (record,) = read_all(write(tmp_path / "x.csv", 'id,body\r\n1,"a\r\nb"\r\n'))
    assert record.document["body"] == "a\nb"
    (record,) = read_all(write(tmp_path / "x.csv", 'id,body\n1,"a\n\ufeffb"\n'))
    assert record.document["body"] == "a\n\ufeffb"


@pytest.mark.parametrize("encoding", ["", "windows-1251", "cp866"])
@pytest.mark.parametrize("header", [None, True, False])
def test_utf_16_that_is_read_as_another_encoding_is_refused(tmp_path: Path, encoding: str, header: bool):
    path = write(tmp_path / "x.csv", f"имя{'я' * 90},текст\nдом,мама мыла раму\n".encode("utf-16-le"))
    (record,) = read_all(path, encoding=encoding, header=header)
    assert record.reason.endswith("has control characters: say the --encoding, such as utf-16")
    assert len(record.reason) < 300
    *_, record = read_all(path, encoding="utf-16", header=header)
    assert "мама мыла раму" in record.document.values()
