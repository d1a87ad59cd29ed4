"""Files and folders as sources, repeated ids, and first rows that are no header."""

import gzip
import json
import os
import time
from array import array
from base64 import encodebytes
from fcntl import ioctl
from pathlib import Path
from quopri import encodestring
from termios import FIONREAD
from threading import Thread

import pytest
from support.soon import soon

from shinglefold.ingest import index_documents, read
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.ingest.writing.accounting import SeenIds


@pytest.fixture
def plain(make_pipeline):
    return make_pipeline({"fail": {"if": "ctx.bad == true", "message": "bad"}})


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_what_is_not_read_in_a_folder_is_counted(tmp_path: Path):
    written(tmp_path / "site" / "a.html", "<p>one")
    written(tmp_path / "site" / ".hidden.html", "<p>two")
    written(tmp_path / "site" / ".git" / "notes.txt", "three")
    written(tmp_path / "site" / "image.png", "")
    (tmp_path / "site" / "elsewhere").symlink_to(tmp_path)
    (tmp_path / "site" / "gone.html").symlink_to(tmp_path / "nowhere.html")
    options = ReadOptions()
    page, gone = read(tmp_path / "site", options)
    assert page.document["_id"] == "a.html"
    assert (gone.document, gone.reason) == (None, "cannot be read: a broken link")
    # A file that is one document: what fails in it fails in its first line.
    assert gone.line == page.line == 1
    assert (page.fraction, gone.fraction) == (0.5, 1)
    assert options.skipped == {"hidden_skipped": 2, "other_files_skipped": 1, "linked_folders_skipped": 1}


@pytest.mark.parametrize(
    "name",
    [
        "page.html?sid=1",
        "news.php?id=12",
        "article",
        "page.shtml",
        "index.html;jsessionid=12",
        "a.html.gz",
        "a.1",
    ],
)
@pytest.mark.parametrize(
    "head", ["<!DOCTYPE html><html>", "\ufeff <!-- saved -->\n<HTML>", '<?xml version="1.0"?><html>']
)
def test_pages_of_a_mirrored_site_are_read_whatever_their_names(tmp_path: Path, name: str, head: str):
    page = f"{head}<title>Мост</title><p>закрыт".encode()
    (tmp_path / name).write_bytes(gzip.compress(page) if name.endswith(".gz") else page)
    (tmp_path / "news.php").write_text("<?php echo '<html>';")
    (tmp_path / "style.css").write_text("html { color: red }")
    options = ReadOptions()
    (record,) = read(tmp_path, options)
    assert record.document
    assert (record.document["_id"], record.document["title"]) == (name, "Мост")
    assert options.skipped == {"other_files_skipped": 2, "hidden_skipped": 0, "linked_folders_skipped": 0}


def test_files_whose_names_are_not_utf_8_keep_ids_of_their_own(tmp_path: Path):
    for name in ("мост", "парк", "порт"):
        (tmp_path / os.fsdecode(name.encode("cp1251") + b".html")).write_text("<p>один")
    found = [(record.document or {}).get("_id") for record in read(tmp_path)]
    assert found == ["%EC%EE%F1%F2.html", "%EF%E0%F0%EA.html", "%EF%EE%F0%F2.html"]


@pytest.mark.parametrize(
    "title",
    ["<!-- <title>нет</title> -->", "<script>'<title>нет</title>'</script>", "<svg><title>нет</title></svg>"],
)
def test_a_title_is_that_of_the_document(tmp_path: Path, title: str):
    (record,) = read(written(tmp_path / "a.html", f"<html><head>{title}<title>Мост</title></head><p>закрыт"))
    assert (record.document or {}).get("title") == "Мост"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_read_is_a_failure(tmp_path: Path):
    written(tmp_path / "site" / "a.html", "<p>one")
    closed = tmp_path / "site" / "closed"
    closed.mkdir(mode=0)
    failed, _ = read(tmp_path / "site")
    assert (failed.source, failed.reason) == (str(closed), "the folder cannot be read: Permission denied")


@pytest.mark.long(every=2)
@pytest.mark.parametrize("workers", [1, 2])
def test_repeated_ids_are_counted_and_reported(engine, plain, tmp_path: Path, workers: int):
    lines = [json.dumps({"id": str(n % 2_000), "n": n}) for n in range(2_003)]
    file = written(tmp_path / "in.jsonl", "\n".join(lines))
    summary = index_documents(engine, "i", read(file), plain, workers=workers)
    assert (summary.indexed, summary.counts["equal_ids"]) == (2_003, 3)
    (note,) = summary.notes
    assert note.startswith("3 documents have an id that came before in this run")
    assert note.endswith(f"the first is '0' ({file}:2001)")
    again = index_documents(engine, "i", read(file), plain, workers=workers)
    assert again.counts["equal_ids"] == 3


def test_repeated_ids_are_found_in_blocks_of_any_size():
    seen = SeenIds()
    assert seen.add([]) == []
    assert seen.add(["a", "b", "a"]) == [2]
    for start in range(0, 5_000, 7):
        assert seen.add([str(n) for n in range(start, start + 7)]) == []
    assert seen.add(["x", "4000", "b", "x"]) == [1, 2, 3]


def test_a_summary_tells_where_a_reason_was_met_first(engine, plain, tmp_path: Path):
    file = written(tmp_path / "in.jsonl", '{"n": 1}\n{"n": 2, "bad": true}\n{"n": 3, "bad": true}\n{x\n')
    told = index_documents(engine, "i", read(file), plain, workers=1).to_json()
    assert [(one["source"], one["line"], one["stage"]) for one in told["failures"]] == [
        (str(file), 2, "pipeline"),
        (str(file), 4, "read"),
    ]


@pytest.mark.parametrize(
    "row",
    [
        "1001,some text",
        "https://a.example/,x",
        "a,2024-05-01",
        "name,someone@a.example",
        "name," + "x" * 500,
        "no," + "слово " * 8 + "слово",
    ],
)
def test_a_first_row_that_looks_like_data_is_rejected(tmp_path: Path, row: str):
    file = written(tmp_path / "x.csv", row + "\n2,other\n")
    (refused,) = read(file)
    assert "looks like data" in refused.reason
    assert len(refused.reason) < 220
    assert "give --no-header if it is, else --header" in refused.reason
    assert [record.line for record in read(file, ReadOptions(header=False))] == [1, 2]
    first, _ = read(file, ReadOptions(header=False))
    assert list(first.document) == ["column1", "column2"]
    (named,) = read(file, ReadOptions(header=True))
    assert list(named.document) == row.split(",")


def test_an_empty_cell_is_an_absent_value(tmp_path: Path):
    one, two = read(written(tmp_path / "x.csv", "id,price,body\n1,,a\n2,5,\n"))
    assert one.document == {"_id": "1", "id": "1", "body": "a"}
    assert two.document == {"_id": "2", "id": "2", "price": "5"}


@pytest.mark.parametrize(
    "element",
    ["math", "xmp", "iframe", "noscript", "textarea", "style", "title-bar", "svg viewBox='0 0 1 1'"],
)
def test_an_element_with_a_title_of_its_own_does_not_name_the_document(tmp_path: Path, element: str):
    inner = "нет" if element == "title-bar" else "<title>нет</title>"
    part = f"<{element}>{inner}</{element.split(maxsplit=1)[0]}>"
    (record,) = read(written(tmp_path / "a.html", f"{part}<title lang=ru>Мост</title ><p>закрыт"))
    assert (record.document or {}).get("title") == "Мост"


@pytest.mark.parametrize(
    "part", ["<svg/>", "<script src='a.js' />", "<!-->", "<!-- x --!>", "<svg viewBox='' />"]
)
def test_what_closes_itself_does_not_hide_the_title(tmp_path: Path, part: str):
    (record,) = read(written(tmp_path / "a.html", f"{part}<title>Мост</title><p>закрыт"))
    assert (record.document or {}).get("title") == "Мост"


@pytest.mark.long(every=3)
@pytest.mark.parametrize("part", ["<!-- ", "<script ", "<svg>", "<title>", "<title", "<style>", "<textarea>"])
@pytest.mark.parametrize("begin", ["", "</title>"])
def test_the_title_of_a_page_of_open_elements_takes_linear_time(tmp_path: Path, part: str, begin: str):
    written(tmp_path / "a.html", begin + part * 30_000)
    with soon():
        (record,) = read(tmp_path / "a.html")
    assert (record.document or {}).get("title") == ""


@pytest.mark.parametrize("name", ["a", "a.php", "a.xml"])
def test_comments_before_what_is_no_page_take_linear_time(tmp_path: Path, name: str):
    """Each further comment doubled the time."""
    written(tmp_path / name, "<!---->" * 60 + "<svg>")
    with soon():
        assert list(read(tmp_path)) == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("head", ["<meta charset=utf-8>", "<title>Мост</title>", "<!DOCTYPE html>"])
def test_a_mirrored_page_may_leave_out_tags_or_be_of_utf_16(tmp_path: Path, encoding: str, head: str):
    page = f"{head}<title>Мост</title><p>закрыт"
    (tmp_path / "news.php?id=1").write_bytes(page.encode(encoding))
    assert [(record.document or {}).get("body") for record in read(tmp_path)] == [page]


@pytest.mark.parametrize(
    "begin",
    [
        "<div class=a>", "<p>", "<table><tr><td>", "<h1>Мост</h1>", "<script>x</script>", "<a name=top></a>",
        "<style>p {}</style>", "<font size=2>", "<link rel=icon><div>", "<base href=/>",
        "<br />\n<b>Warning</b>: x in <b>/x.php</b><br />\n<!DOCTYPE html>",
        "<!-- " + "saved " * 300 + "-->\n<html>",
    ],
)  # fmt: skip
def test_a_mirrored_page_may_begin_as_browsers_recognize_pages(tmp_path: Path, begin: str):
    written(tmp_path / "news.php?id=1", f"{begin}<p>закрыт")
    written(tmp_path / "feed.xml", f"<?xml version='1.0'?><rss>{begin}")
    written(tmp_path / "code.php", f"<?php x() ?>{begin}")
    assert [(record.document or {}).get("_id") for record in read(tmp_path)] == ["news.php?id=1"]


_PARTS = (
    "From: <Blink>\r\nSubject: x\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related;"
    '\r\n\ttype="text/html";\r\n\tboundary="--B"\r\n\r\n\r\n----B\r\nContent-Type: text/html; charset={}\r\n'
    "Content-Transfer-Encoding: {}\r\n\r\n{}\r\n----B\r\nContent-Type: text/css\r\n\r\np {{}}\r\n----B--\r\n"
)


@pytest.mark.parametrize("name", ["a.mht", "a.MHTML", "a.html"])
@pytest.mark.parametrize("encoding", ["utf-8", "windows-1251"])
@pytest.mark.parametrize(
    ("transfer", "encode"), [("quoted-printable", encodestring), ("base64", encodebytes)]
)
def test_a_page_saved_as_one_file_is_its_page(tmp_path: Path, name, encoding, transfer, encode):
    page = f"<!DOCTYPE html><title>Мост</title><p class=x>{'Мост закрыт до осени. ' * 9}</p>"
    saved = encode(page.encode(encoding)).decode("ascii")
    (tmp_path / name).write_bytes(_PARTS.format(encoding, transfer, saved).encode())
    for source in (tmp_path, tmp_path / name):
        (record,) = read(source)
        assert (record.document or {}).get("title") == "Мост"
        assert (record.document or {})["body"].strip() == page


@pytest.mark.parametrize("status", ["HTTP/1.1 200 OK\r\n", "HTTP/2 200 \r\n", ""])
@pytest.mark.parametrize("kind", ["text/html", "application/xhtml+xml"])
@pytest.mark.parametrize("label", ["windows-1251", "x-none"])
def test_the_headers_of_a_server_are_no_text_and_name_the_encoding(
    tmp_path: Path, status: str, kind: str, label: str
):
    page = f"<html>{'<meta charset=cp1251>' if label == 'x-none' else ''}<p>{'Мост закрыт. ' * 9}"
    headers = f"{status}Date: Mon, 1 Jan 2024\r\n folded\r\nContent-Type: {kind}; charset={label}\r\n\r\n"
    (tmp_path / "a.html").write_bytes(headers.encode() + page.encode("cp1251"))
    (record,) = read(tmp_path)
    assert (record.document or {}).get("body") == page


@pytest.mark.parametrize(
    "page",
    [
        "Note: a\n\nContent-Type: x",
        "a: b\n" * 3,
        "Content-Type: text/plain\n\nx",
        "Content-Type: message/rfc822\n\n" * 3000,
        "",
    ],
)
def test_a_text_that_begins_like_headers_is_read_whole(tmp_path: Path, page: str):
    (record,) = read(written(tmp_path / "a.html", page))
    assert (record.document or {}).get("body") == page


@pytest.mark.parametrize("name", ["a.txt.gz", "a.md.gz", "a.html.gz"])
def test_a_compressed_file_of_a_folder_is_what_its_name_says(tmp_path: Path, name: str):
    packed = gzip.compress(b"plain text, no markup")
    (tmp_path / name).write_bytes(packed)
    (record,) = read(tmp_path)
    assert (record.document or {}).get("format") == ("html" if "html" in name else "text")
    (tmp_path / name).write_bytes(packed[:-9])
    (record,) = read(tmp_path)
    assert "damaged" in record.reason


@pytest.mark.parametrize("name", ["a.html", "a.txt"])
@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("%PDF-1.4\n1 0 obj", "PDF"),
        ("{\\rtf1\\ansi text}", "RTF"),
        ("a.txt".ljust(257, "\0") + "ustar", "a tar archive"),
    ],
)
def test_a_file_that_is_no_text_though_it_is_ascii_is_refused(
    tmp_path: Path, name: str, content: str, kind: str
):
    (record,) = read(written(tmp_path / name, content))
    assert record.reason == f"the file is not text: it is {kind}"


def test_rows_of_empty_cells_are_blank_lines(tmp_path: Path):
    written(tmp_path / "a.csv", 'title,text\na,b\n,\n , \n"",""\n,,\n,c\n')
    assert [record.document for record in read(tmp_path / "a.csv")] == [
        {"title": "a", "text": "b"},
        {"text": "c"},
    ]


def test_a_text_that_begins_as_a_magic_number_does_is_a_text(tmp_path: Path):
    for text in ("BZh9 is the mark of bzip2", "PK is no zip", "7z", "Rar", "ustar, at the wrong place"):
        (record,) = read(written(tmp_path / "a.txt", text))
        assert (record.document or {})["body"] == text


def test_separators_within_quotes_of_the_header_part_no_columns(tmp_path: Path):
    written(tmp_path / "a.csv", 'id;"size, colour, model"\n1;a\n')
    (record,) = read(tmp_path / "a.csv")
    assert record.document == {"_id": "1", "id": "1", "size, colour, model": "a"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
@pytest.mark.parametrize("pieces", ["bytes", "lines"])
def test_lines_of_a_pipe_are_read_as_they_arrive(tmp_path: Path, encoding: str, pieces: str):
    """Whatever is written is read before more is: a byte order mark may come alone, and a line at once."""
    os.mkfifo(tmp_path / "pages")
    lines = [line.encode(encoding) for line in ('\ufeff{"id": "1"}\n', '{"id": "2"}\n')]
    left: list[int] = []

    def write() -> None:
        with (tmp_path / "pages").open("wb", buffering=0) as pipe:
            for piece in lines if pieces == "lines" else [bytes([one]) for one in b"".join(lines)]:
                pipe.write(piece)
                unread, until = array("i", [1]), time.monotonic() + 10
                while unread[0] and time.monotonic() < until:
                    time.sleep(0.001)
                    ioctl(pipe, FIONREAD, unread)
                left.append(unread[0])

    writer = Thread(target=write)
    writer.start()
    records = read(tmp_path / "pages", ReadOptions(format="jsonl"))
    assert (next(records).document or {}).get("_id") == "1"
    # The second line is not there before the first one was read.
    assert pieces == "bytes" or writer.is_alive()
    assert [(record.document or {}).get("_id") for record in records] == ["2"]
    writer.join()
    assert not any(left)
