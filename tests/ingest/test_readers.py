import bz2
import gzip
import io
import json
import lzma
import os
import re
import zlib
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from support.record_sources import read_all, write

from shinglefold.errors import ConfigError, InputError
from shinglefold.ingest import read
from shinglefold.ingest.readers.record import ReadOptions


@pytest.mark.parametrize("name", ["pages.jsonl", "pages.jsonl.gz", "pages.ndjson", "pages.JSON"])
def test_jsonl_gives_a_document_a_line_with_its_number(tmp_path: Path, name: str):
    path = write(
        tmp_path / name, '{"id": "a", "title": "раз"}\n\n  \r\n{"_id": 7, "body": "два"}\r\n{"body": "три"}'
    )
    records = read_all(path)
    documents = [{"_id": "a", "id": "a", "title": "раз"}, {"_id": "7", "body": "два"}, {"body": "три"}]
    assert [record.document for record in records] == documents
    assert [record.line for record in records] == [1, 4, 5]
    assert {record.source for record in records} == {str(path)}
    assert records[-1].fraction == 1.0


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{not json", "invalid JSON"),
        ('{"a": 1', "invalid JSON"),
        ("{", "an object over several lines: write each on one, as jq -c . does"),
        ("[", "write one object a line"),
        ('{"a": NaN}', "NaN is no JSON; write null or leave it out"),
        ('{"a": [-Infinity]}', "-Infinity is no JSON; write null or leave it out"),
        ('{"a": [{"b": -1e999}]}', "a number too large for JSON, beyond 1.8e308; write it as text"),
        ("[" * 100_000, "nested too deeply"),
        ('{"n": ' + "9" * 10_000 + "}", "invalid JSON"),
        ('{"a": ' * 101 + "1" + "}" * 101, "nested deeper than 100 levels"),
        ('{"a": ' + "[" * 900 + "]" * 900 + "}", "nested"),
        ("5", "expected a JSON object, found a number"),
        ("null", "found null"),
        ('[{"id": 1}]', "write one object a line"),
        ('{"id": ["x"]}', r"the id in \[id\] must be text"),
        ('{"_id": true}', r"the id in \[_id\] must be text"),
        ('{"id": ""}', "must be text"),
        ('{"id": 1.5}', "must be text"),
        ("id,title,body", "invalid JSON: .*; if these are rows of CSV, add --format csv$"),
        ('"1";"a title"', "invalid JSON: .*; if these are rows of CSV, add --format csv$"),
        ("1\ttext", "; if these are rows of CSV, add --format csv$"),
        ('{"id": "a"},', "invalid JSON: a comma after the object; leave it out$"),
        ('{"id": "a",}', r"invalid JSON: .*, column 12$"),
        ("no cells", r"invalid JSON: [^;]*$"),
        ('{"a": 1, "b": 2', r"invalid JSON: [^;]*$"),
    ],
)
def test_a_line_that_is_no_document_says_why_and_stops_nothing(tmp_path: Path, line: str, reason: str):
    path = write(tmp_path / "x.jsonl", f'{{"id": "1"}}\n{line}\n{{"id": "3"}}\n')
    first, bad, last = read_all(path)
    assert (first.line, bad.line, last.line) == (1, 2, 3)
    assert bad.document is None
    assert bad.raw == line
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(bad.reason)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[{"id": "1"},\n{"id": "2"}]\n',
            r"holds an array, not an object a line.*: jq -c '\.\[\]' '.*/my x\.json' >",
        ),
        ('\ufeff\n [\n{"id": "1"}\n]\n', r"holds an array, .*jq -c '\.\[\]' "),
        ('[{"id": "1"}]', r"holds an array"),
        (
            '{\n"id": "1"\n}\n{\n"id": "2"\n}\n',
            r"objects over several lines, .*: jq -c \. '.*' >",
        ),
    ],
)
def test_a_file_of_one_array_or_of_printed_objects_is_refused_as_a_whole_with_the_command_that_helps(
    tmp_path: Path, text: str, told: str
):
    (record,) = read_all(write(tmp_path / "my x.json", text))
    assert record.document is None
    assert re.search(told, record.reason)


@pytest.mark.parametrize("wrong", ["[]", '[{"id": "0"}]', "[1, 2]"])
def test_an_array_before_documents_is_one_wrong_line(tmp_path: Path, wrong: str):
    array, *rest = read_all(write(tmp_path / "x.jsonl", f'{wrong}\n\n{{"id": "1"}}\n{{"id": "2"}}\n'))
    assert array.document is None
    assert "an array: write one object a line" in array.reason
    assert [record.document and record.document["id"] for record in rest] == ["1", "2"]


def test_standard_input_of_one_array_is_to_be_piped_through_what_makes_lines(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'[{"id": "1"}]')))
    (record,) = list(read("-"))
    assert record.reason.endswith("not an object a line; pipe it through jq -c '.[]' first")


def test_a_search_hit_is_unwrapped(tmp_path: Path):
    hit = {"_index": "i", "_id": "9", "_score": 1.0, "_source": {"body": "текст", "id": "inner"}}
    (record,) = read_all(write(tmp_path / "x.jsonl", json.dumps(hit)))
    assert record.document == {"_id": "9", "body": "текст", "id": "inner"}


def test_documents_may_all_be_declared_to_be_html(tmp_path: Path):
    good, bad = read_all(write(tmp_path / "x.jsonl", '{"body": "<p>раз", "format": "text"}\n5\n'), html=True)
    assert (good.document, bad.document) == ({"body": "<p>раз", "format": "html"}, None)


def test_fields_beside_a_source_are_not_lost(tmp_path: Path):
    crawled = {"title": "Мост", "_source": {"name": "crawler"}}
    helper = {"_id": "1", "routing": "here", "_source": {"a": 1}}
    for line, reason in ((crawled, "the field 'title' is beside"), (helper, "a [routing] is beside")):
        (record,) = read_all(write(tmp_path / "x.jsonl", json.dumps(line)))
        assert (record.document, record.reason.startswith(reason)) == (None, True)
    # What answers have beside the source of a hit is not the document's.
    for line in ({"_id": "1", "resemblance": 0.9, "sort": [1]}, {"_index": "i", "found": True}):
        (record,) = read_all(write(tmp_path / "x.jsonl", json.dumps({**line, "_source": {"a": 1}})))
        assert record.document["a"] == 1
    (record,) = read_all(write(tmp_path / "x.jsonl", '{"title": "Мост", "_source": "crawler"}'))
    assert record.document == {"title": "Мост", "_source": "crawler"}


def test_an_id_of_null_leaves_the_id_to_the_field_id(tmp_path: Path):
    documents = [
        one.document for one in read_all(write(tmp_path / "x.jsonl", '{"_id": null, "id": 7}\n{"_id": null}'))
    ]
    assert documents == [{"_id": "7", "id": 7}, {}]


def test_the_id_field_can_be_chosen(tmp_path: Path):
    path = write(tmp_path / "x.jsonl", '{"url": "u", "id": 5}\n{"_id": 3, "url": "v"}')
    assert [r.document for r in read_all(path, id_field="url")] == [
        {"_id": "u", "url": "u", "id": 5},
        {"_id": "v", "url": "v"},
    ]


@pytest.mark.parametrize("line", ['{"id": 6}', '{"_id": "6"}', '{"url": null}', '{"_id": 6, "_source": {}}'])
def test_a_record_without_the_field_its_id_is_to_come_from_is_refused(tmp_path: Path, line: str):
    (record,) = read_all(write(tmp_path / "x.jsonl", line), id_field="url")
    assert record.document is None
    assert record.reason == "no [url], the id field; add it or name another id field"
    assert (record.raw, record.id_field) == (line, "url")


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path):
    assert read_all(write(tmp_path / "x.jsonl", '\ufeff{"id": "1"}\n'))[0].document == {"_id": "1", "id": "1"}
    (text,) = read_all(write(tmp_path / "x.txt", "\ufeffтекст"))
    assert text.document["body"] == "текст"
    (page,) = read_all(write(tmp_path / "x.html", "<p>текст".encode("utf-16")))
    assert page.document["body"] == "<p>текст"


def test_bad_utf_8_is_replaced_and_counted(tmp_path: Path):
    path = write(tmp_path / "x.jsonl", b'{"id": "1", "body": "\xd0\xb0\xff\xfe\xd0\xb1 \xef\xbf\xbd"}\n')
    (record,) = read_all(path)
    assert record.document["body"] == "а\ufffd\ufffdб \ufffd"
    assert record.replaced == 2


def test_lone_surrogates_are_replaced_and_counted(tmp_path: Path):
    line = '{"id": "1", "\\udC00k": ["\\ud800", {"x": "a\\uDFFFb"}], "good": "\\ud83d\\ude00"}'
    (record,) = read_all(write(tmp_path / "x.jsonl", line))
    assert record.replaced == 3
    assert record.document["\ufffdk"] == ["\ufffd", {"x": "a\ufffdb"}]
    assert record.document["good"] == "😀"
    json.dumps(record.document, ensure_ascii=False).encode()


def test_keys_that_differ_in_lone_surrogates_alone_keep_their_values(tmp_path: Path):
    line = '{"id": "1", "x": {"\\uD800": 1, "\\uDC00": 2, "\ufffd": 3, "\\uD801": "\\uD802"}}'
    (record,) = read_all(write(tmp_path / "x.jsonl", line))
    assert record.replaced == 4
    assert record.document["x"] == {
        "\ufffd": 3,
        "\ufffd\ufffd": 1,
        "\ufffd\ufffd\ufffd": 2,
        "\ufffd\ufffd\ufffd\ufffd": "\ufffd",
    }


def test_a_line_longer_than_allowed_is_refused_without_the_rest(tmp_path: Path):
    path = write(tmp_path / "x.jsonl.gz", '{"id": "1"}\n{"body": "' + "я" * 3_000_000 + '"}\n{"id": "3"}\n')
    first, long, last = read_all(path, max_bytes=1_000)
    assert long.reason == "longer than 1,000 bytes"
    assert (first.line, long.line, last.line) == (1, 2, 3)
    assert last.document == {"_id": "3", "id": "3"}


def test_a_damaged_archive_gives_what_is_whole_and_says_where_it_broke(tmp_path: Path):
    data = gzip.compress("".join(f'{{"id": {n}, "x": "{n * 7919}"}}\n' for n in range(5000)).encode())
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(data[: len(data) // 2])
    *good, broken = read_all(cut)
    assert len(good) > 100
    assert [record.document["_id"] for record in good] == [str(n) for n in range(len(good))]
    assert "damaged from here on" in broken.reason
    garbage = tmp_path / "garbage.jsonl.gz"
    garbage.write_bytes(b"this is no archive")
    (only,) = read_all(garbage)
    assert only.reason.startswith("invalid JSON")


_LINES = "".join(f'{{"id": {n}, "x": "{n * 7919}"}}\n' for n in range(9_000)).encode()
_PACKED_LINES = gzip.compress(_LINES, mtime=0)
_PACKER = zlib.compressobj(wbits=31)
#: Archives that end too early, with another sum, with a wrong block, and before other bytes.
DAMAGED = {
    "Compressed file ended": _PACKED_LINES[:-9],
    "CRC check failed": _PACKED_LINES[:-8] + b"\0\0\0\0" + _PACKED_LINES[-4:],
    "invalid": _PACKER.compress(_LINES) + _PACKER.flush(zlib.Z_FULL_FLUSH) + b"\xff" * 99,
    "Not a gzipped file": _PACKED_LINES + b"more",
}


@pytest.mark.parametrize("reason", DAMAGED)
def test_however_an_archive_is_damaged_its_run_goes_on(tmp_path: Path, reason: str):
    for name in ("x.jsonl.gz", "x.csv.gz"):
        (tmp_path / name).write_bytes(DAMAGED[reason])
    *good, broken = read_all(tmp_path / "x.jsonl.gz")
    assert len(good) > 1_000
    assert f"the file is damaged from here on: {reason}" in broken.reason
    *_, broken = read_all(tmp_path / "x.csv.gz", header=False)
    assert f"the file is damaged from here on: {reason}" in broken.reason
    (tmp_path / "x.html.gz").write_bytes(DAMAGED[reason])
    (tmp_path / "x.txt").symlink_to(tmp_path / "x.html.gz")
    options = ReadOptions()
    for record in read(tmp_path, options):
        assert f"the file is damaged: {reason}" in record.reason
    assert options.skipped["other_files_skipped"] == 2
    (record,) = read_all(tmp_path / "x.html.gz")
    assert f"the file is damaged: {reason}" in record.reason


@pytest.mark.parametrize(
    "begin",
    [_PACKED_LINES[:15], b"\x1f\x8b broken", _PACKED_LINES[:10] + b"\xff" * 99],
    ids=["cut off", "header", "block"],
)
def test_a_file_of_a_folder_that_is_damaged_at_once_is_one_of_another_kind(tmp_path: Path, begin: bytes):
    (tmp_path / "x.bin").write_bytes(begin)
    options = ReadOptions()
    assert list(read(tmp_path, options)) == []
    assert options.skipped["other_files_skipped"] == 1


@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz"])
def test_a_text_is_read_up_to_the_limit(tmp_path: Path, name: str):
    text = "слово " * 300_000
    size = len(text.encode())
    path = write(tmp_path / name, text)
    for limit in (size, 2**62):
        (record,) = read_all(path, max_bytes=limit)
        assert record.document["body"] == text
    for limit in (size - 1, 1 << 20, 1):
        (record,) = read_all(path, max_bytes=limit)
        assert record.reason == f"longer than {limit:,} bytes"


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.csv"])
def test_an_empty_file_has_no_documents(tmp_path: Path, name: str):
    assert read_all(write(tmp_path / name, "")) == []


def test_a_line_as_long_as_allowed_costs_no_other_line(tmp_path: Path):
    lines = ['{"id": 1}', '{"id": 22}', '{"id": 3}', '{"id": 4}']
    for end in ("\n", "\r\n"):
        path = write(tmp_path / "x.jsonl", end.join([*lines, ""]))
        one, long, *rest = read_all(path, max_bytes=8 + len(end))
        assert [record.document["id"] for record in (one, *rest)] == [1, 3, 4]
        assert long.reason.startswith("longer than")


def test_a_file_that_grows_is_read_to_its_end(tmp_path: Path):
    path = write(tmp_path / "x.jsonl", '{"id": 1}\n')
    records = read(path)
    next(records)
    path.write_text('{"id": 1}\n' + '{"id": 2}\n' * 3)
    assert [record.fraction for record in records] == [1, 1, 1]


def test_a_file_without_a_size_is_read(tmp_path: Path):
    (record,) = read_all(Path("/proc/version"), format="jsonl")
    assert (record.raw[:5], record.fraction) == ("Linux", 1)


def test_a_named_pipe_is_read_like_a_file(tmp_path: Path):
    path = tmp_path / "pages"
    os.mkfifo(path)
    writer = Thread(target=path.write_bytes, args=(b'{"id": "1"}\n',))
    writer.start()
    (record,) = read_all(path, format="jsonl")
    writer.join()
    assert record.document == {"_id": "1", "id": "1"}


def test_a_folder_gives_its_pages_and_texts_by_name(tmp_path: Path):
    write(tmp_path / "b.txt", "просто текст")
    (tmp_path / "a" / "deep").mkdir(parents=True)
    write(tmp_path / "a" / "deep" / "p.HTML", "<title> Заго&shy;ловок\n и </title><p>да")
    write(tmp_path / "a" / "empty.htm", "")
    write(tmp_path / "logo.png", b"\x89PNG")
    page, empty, text = sorted(
        read_all(tmp_path), key=lambda record: record.document["_id"] != "a/deep/p.HTML"
    )
    assert page.document == {
        "_id": "a/deep/p.HTML",
        "title": "Заго\xadловок и",
        "format": "html",
        "body": "<title> Заго&shy;ловок\n и </title><p>да",
    }
    assert empty.document == {"_id": "a/empty.htm", "title": "", "format": "html", "body": ""}
    assert text.document == {"_id": "b.txt", "format": "text", "body": "просто текст"}


@pytest.mark.parametrize(
    "declaration",
    [
        '<meta charset="windows-1251">',
        '<META http-equiv=Content-Type content="text/html; charset=windows-1251">',
    ],
)
def test_a_page_is_read_in_the_encoding_it_declares(tmp_path: Path, declaration: str):
    path = write(tmp_path / "x.html", f"<html><head>{declaration}</head><p>Привет".encode("windows-1251"))
    assert read_all(path)[0].document["body"].endswith("<p>Привет")


@pytest.mark.parametrize("charset", ["no-such-thing", "utf-16", "rot13", "hex", "idna", "punycode"])
def test_a_page_that_declares_nonsense_is_read_as_utf_8(tmp_path: Path, charset: str):
    path = write(tmp_path / "x.html", f'<meta charset="{charset}"><p>Привет')
    assert read_all(path)[0].document["body"].endswith("<p>Привет")
    (record,) = read_all(write(path, f'<meta charset="{charset}"><p>Привет'.encode("windows-1251")))
    assert record.reason.endswith("try --encoding windows-1251")


def test_standard_input_is_jsonl_by_default(monkeypatch: pytest.MonkeyPatch):
    def given(data: str) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data.encode())))

    given('{"id": "1"}\n')
    assert [(r.document, r.source) for r in read("-")] == [({"_id": "1", "id": "1"}, "standard input")]
    given("<p>страница")
    (page,) = read("-", ReadOptions(format="html"))
    assert page.document["body"] == "<p>страница"


def test_what_cannot_be_opened_is_an_input_error(tmp_path: Path):
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "missing.jsonl")
    with pytest.raises(ConfigError, match="the name of a source is empty"):
        read("")
    with pytest.raises(ConfigError, match="say its format"):
        read(write(tmp_path / "x.docx", "x"))
    with pytest.raises(InputError, match="no such file"):
        read("x" * 5_000 + ".jsonl")
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    (record,) = [r for r in read(tmp_path) if r.document is None]
    assert record.reason == "cannot be read: a broken link"


@pytest.mark.parametrize(
    "options",
    [
        {"format": "xml"},
        {"encoding": "no-such"},
        {"encoding": "hex"},
        {"encoding": "undefined"},
        {"encoding": "idna"},
        {"encoding": "punycode"},
        {"encoding": "\0"},
        {"max_bytes": 0},
        {"max_bytes": 2**63},
    ],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, Any]):
    with pytest.raises(ConfigError):
        ReadOptions(**options)


@pytest.mark.parametrize("megabytes", [11, pytest.param(110, marks=pytest.mark.long)])
def test_a_long_document_is_read(tmp_path: Path, megabytes: int):
    path = tmp_path / "big.jsonl"
    path.write_text(
        json.dumps({"id": "1", "body": "слово " * (megabytes * 1_000_000 // 11)}, ensure_ascii=False), "utf-8"
    )
    (record,) = read(path)
    assert len(record.document["body"]) == 6 * (megabytes * 1_000_000 // 11)


def test_gzip_is_unpacked_whatever_its_name(tmp_path):
    packed = tmp_path / "pages.jsonl"
    packed.write_bytes(gzip.compress(b'{"_id": "1", "body": "text"}\n'))
    plain = tmp_path / "pages.jsonl.gz"
    plain.write_bytes(b'{"_id": "1", "body": "text"}\n')
    for path in (packed, plain):
        assert [record.document for record in read(path)] == [{"_id": "1", "body": "text"}]


_PACKED = {
    "bzip2": bz2.compress(b'{"id": "1"}\n'),
    "xz": lzma.compress(b'{"id": "1"}\n'),
    "zstd": b"\x28\xb5\x2f\xfd\x04\x58\x61\x00\x00" + b'{"id": "1"}\n',
    "zip": b"PK\x03\x04\x14\x00\x00\x00",
}


@pytest.mark.parametrize("name", _PACKED)
@pytest.mark.parametrize("format_", ["jsonl", "csv", "html", "text"])
def test_other_compressions_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, format_: Any
):
    packed = io.TextIOWrapper(io.BufferedReader(io.BytesIO(_PACKED[name])))  # type: ignore[arg-type]
    monkeypatch.setattr("sys.stdin", packed)
    with pytest.raises(InputError, match=f"standard input is compressed by {name}.*pipe it through"):
        list(read("-", ReadOptions(format=format_)))
    path = write(tmp_path / "pages", _PACKED[name])
    with pytest.raises(InputError, match=f"pages is compressed by {name}.*decompress it: .*pages > FILE"):
        read_all(path, format=format_)


def test_a_compressed_page_of_a_folder_is_named(tmp_path: Path):
    write(tmp_path / "a.html", _PACKED["bzip2"])
    (tmp_path / "b.html").symlink_to(tmp_path / "a.html")
    for record in read_all(tmp_path):
        assert "compressed by bzip2" in record.reason
