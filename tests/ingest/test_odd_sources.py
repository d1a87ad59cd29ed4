"""Files whose encoding is given or declared wrongly, and answers of HTTP that were saved as they came."""

import codecs
from pathlib import Path
from typing import Any

import pytest

from shinglefold.ingest import read
from shinglefold.ingest.readers.record import ReadOptions, Record

ENGLISH = "The old bridge over the river was repaired in spring.\n" * 3
RUSSIAN = "Старый мост через реку починили этой весной, сообщает мэр города.\n" * 3
CHINESE = "老桥横跨河流今年春天修好了市长说" * 3
NAMES = ["x.csv", "x.jsonl", "x.txt", "x.html"]


def content(name: str, text: str) -> str:
    line = text.partition("\n")[0]
    return {
        "x.csv": f"id,title\n1,{line.replace(',', '')}\n",
        "x.jsonl": f'{{"id": "1", "title": "{line}"}}\n',
        "x.txt": text,
        "x.html": f"<html><body><p>{text}</p></body></html>",
    }[name]


def read_bytes(path: Path, data: bytes, **options: Any) -> list[Record]:
    path.write_bytes(data)
    return list(read(path, ReadOptions(**options)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("given", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be", "cp037"])
@pytest.mark.parametrize("text", [ENGLISH, RUSSIAN])
def test_utf_8_that_is_said_to_be_of_wide_letters_is_refused(
    tmp_path: Path, name: str, given: str, text: str
):
    records = read_bytes(tmp_path / name, content(name, text).encode(), encoding=given)
    assert records
    for one in records:
        assert one.document is None
        assert f"the text is UTF-8, not {given}: try --encoding utf-8" in one.reason


@pytest.mark.parametrize("name", ["x.jsonl", "x.txt", "x.html"])
@pytest.mark.parametrize("given", ["utf-16", "utf-16-be", "utf-32"])
def test_a_text_of_one_byte_a_letter_is_not_read_as_utf_16(tmp_path: Path, name: str, given: str):
    for one in read_bytes(tmp_path / name, content(name, RUSSIAN).encode("cp1251"), encoding=given):
        assert one.document is None
        assert (
            one.reason == f"the text is no {given}: it looks like windows-1251, try --encoding windows-1251"
        )


@pytest.mark.parametrize("name", ["x.txt", "x.html"])
@pytest.mark.parametrize("real", ["utf-16-le", "utf-16-be", "utf-32-be"])
@pytest.mark.parametrize("given", ["utf-8", "windows-1251", "utf-16-le", "utf-32-be"])
def test_a_wide_text_in_another_encoding_than_said_is_refused(
    tmp_path: Path, name: str, real: str, given: str
):
    (one,) = read_bytes(tmp_path / name, content(name, RUSSIAN).encode(real), encoding=given)
    if real == given:
        assert one.document
        assert one.document["body"] == content(name, RUSSIAN)
    else:
        assert (one.document, one.reason.partition(":")[2]) == (None, f" try --encoding {real}")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("real", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-16", "utf-7", "cp037"])
@pytest.mark.parametrize("text", [ENGLISH, RUSSIAN, CHINESE + "\n", "Мост"])
def test_an_encoding_that_is_said_rightly_is_read(tmp_path: Path, name: str, real: str, text: str):
    if real == "cp037" and text != ENGLISH:
        return
    (one,) = read_bytes(tmp_path / name, content(name, text).encode(real), encoding=real)
    assert one.document, one.reason
    assert text.partition("\n")[0].replace(",", "") in str(
        one.document.get("title") or one.document["body"]
    ).replace(",", "")


def test_chinese_csv_in_utf_16_has_the_byte_order_that_is_seen(tmp_path: Path):
    for real in ("utf-16-le", "utf-16-be"):
        (one,) = read_bytes(tmp_path / "x.csv", f"标题\n{CHINESE}\n".encode(real), encoding="utf-16")
        assert one.document == {"标题": CHINESE}


@pytest.mark.parametrize(
    "label",
    ["utf-7", "UTF-7", "unicode-1-1-utf-7", "utf-32", "cp037", "unicode_escape", "raw-unicode-escape"],
)
@pytest.mark.parametrize("where", ["page", "server"])
def test_a_page_is_not_read_in_what_no_browser_reads(tmp_path: Path, label: str, where: str):
    codecs.lookup(label)
    text = "1+2 +AGEAYg- \\x41 \\u0041"
    page = (
        f"<html><head>{f'<meta charset={label}>' if where == 'page' else ''}</head><body>{text}</body></html>"
    )
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset={label}\r\n\r\n"
    (one,) = read_bytes(tmp_path / "x.html", (page if where == "page" else head + page).encode())
    assert one.document
    assert one.document["body"] == page


PAGE = "<html><head><title>Брод</title></head><body><p>0\r\n14\r\nThe old bridge</p></body></html>".encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunks(size: int) -> bytes:
    pieces = (PAGE[at : at + size] for at in range(0, len(PAGE), size))
    return b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in pieces)


@pytest.mark.parametrize(
    "saved",
    [
        HEAD + chunks(20) + b"0\r\n\r\n",
        HEAD + chunks(7) + b"0\r\nExpires: 0\r\n\r\n",
        HEAD + chunks(1000).replace(b"\r\n", b";name=value\r\n", 1) + b"0\r\n\r\n",
        HEAD[17:] + chunks(1) + b"00\r\n\r\n",
        HEAD + chunks(20),
        HEAD + chunks(20)[:-2],
        HEAD + PAGE,
    ],
    ids=["chunks", "trailer", "one with a parameter", "no status", "no end", "no newline", "joined before"],
)
def test_the_sizes_of_chunks_are_no_part_of_a_page(tmp_path: Path, saved: bytes):
    (one,) = read_bytes(tmp_path / "x.html", saved)
    assert one.document
    assert (one.document["title"], one.document["body"]) == ("Брод", PAGE.decode())


def test_what_is_no_chunk_is_left_as_it_is(tmp_path: Path):
    (one,) = read_bytes(tmp_path / "x.html", HEAD + b"5\r\n" + PAGE)
    assert one.document
    assert one.document["body"] == "5\r\n" + PAGE.decode()
