import gzip
import io
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from support.soon import soon

from shinglefold.ingest import read
from shinglefold.ingest.readers.encodings import strip_bom
from shinglefold.ingest.readers.record import ReadOptions, Record
from shinglefold.ingest.readers.streams import decode_lossy

#: U+0A0A holds the byte of a newline twice, in either order.
LINES = '{"id": "1", "body": "текст"}\r\n\r\n{"id": "2", "body": "\u0a0a 😀"}\n'
ROWS = 'id,body\r\n1,"текст\u0a0a"\r\n2,"раз\nдва"\r\n'
WIDE = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]


def read_all(path: Path, content: bytes, **options: Any) -> list[Record]:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return list(read(path, ReadOptions(**options)))


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
@pytest.mark.parametrize("encoding", [*WIDE, "utf-8"])
@pytest.mark.parametrize("bom", ["\ufeff", ""])
def test_json_lines_say_themselves_what_they_are_encoded_in(
    tmp_path: Path, name: str, encoding: str, bom: str
):
    first, second = read_all(tmp_path / name, (bom + LINES).encode(encoding))
    assert first.document == {"_id": "1", "id": "1", "body": "текст"}
    assert second.document == {"_id": "2", "id": "2", "body": "\u0a0a 😀"}
    assert (first.line, second.line, second.fraction) == (1, 3, 1.0)
    assert first.replaced == second.replaced == 0


@pytest.mark.parametrize("encoding", [*WIDE, "utf-8"])
@pytest.mark.parametrize("bom", ["\ufeff", ""])
def test_csv_says_itself_what_it_is_encoded_in(tmp_path: Path, encoding: str, bom: str):
    first, second = read_all(tmp_path / "x.csv", (bom + ROWS).encode(encoding))
    assert first.document == {"_id": "1", "id": "1", "body": "текст\u0a0a"}
    assert second.document == {"_id": "2", "id": "2", "body": "раз\nдва"}


@pytest.mark.parametrize("encoding", [*WIDE, "utf-16", "UTF16", "utf-8-sig", "UTF8", "cp500", "gb18030"])
def test_an_encoding_that_is_given_is_used_with_a_mark_or_without(tmp_path: Path, encoding: str):
    lines = '{"id": "1"}\n{"id": "2", "body": "text"}\n'
    for text in (lines, *(["\ufeff" + lines] if "utf" in encoding.lower() else [])):
        first, second = read_all(tmp_path / "x.jsonl", text.encode(encoding), encoding=encoding)
        assert first.document == {"_id": "1", "id": "1"}
        assert second.document == {"_id": "2", "id": "2", "body": "text"}
    long = "текст из нескольких слов" if "utf" in encoding.lower() else "text"
    (page,) = read_all(tmp_path / "x.txt", long.encode(encoding), encoding=encoding)
    assert page.document["body"] == long


def test_broken_units_of_utf_16_are_replaced_and_counted(tmp_path: Path):
    broken = '\ufeff{"id": "1", "body": "a\ud800b\udc00"}\n'.encode("utf-16-le", "surrogatepass")
    good, rest = read_all(tmp_path / "x.jsonl", broken + b"\n")
    assert good.document == {"_id": "1", "id": "1", "body": "a\ufffdb\ufffd"}
    assert good.replaced == 2
    assert (rest.document, rest.replaced, rest.line) == (None, 1, 2)


def test_replacement_characters_that_stood_there_are_not_counted(tmp_path: Path):
    raw = '{"id": "1", "body": "п\u0457\u0405 '.encode("windows-1251") + b'\x98"}'
    (record,) = read_all(tmp_path / "x.jsonl", raw, encoding="windows-1251")
    assert record.document["body"] == "п\u0457\u0405 \ufffd"
    assert record.replaced == 1


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_the_byte_order_of_a_given_encoding_is_found_without_a_mark(tmp_path: Path, encoding: str):
    lines = '{"id": "1"}\n{"id": "2"}\n'.encode(encoding)
    records = read_all(tmp_path / "x.jsonl", lines, encoding=encoding[:6])
    assert [record.document for record in records] == [{"_id": "1", "id": "1"}, {"_id": "2", "id": "2"}]
    (row,) = read_all(tmp_path / "x.csv", "имя\nдом\n".encode("utf-16-le"), encoding="utf-16")
    assert row.document == {"имя": "дом"}


def test_files_joined_to_one_keep_no_byte_order_marks(tmp_path: Path):
    lines = '\ufeff{"id": "1"}\n\ufeff{"id": "2"}\n\ufeff\n'
    for encoding in ("utf-8", "utf-16-le"):
        records = read_all(tmp_path / "x.jsonl", lines.encode(encoding))
        assert [record.document for record in records] == [{"_id": "1", "id": "1"}, {"_id": "2", "id": "2"}]


def test_bytes_like_a_mark_inside_a_file_change_no_encoding(tmp_path: Path):
    (row,) = read_all(tmp_path / "x.csv", b'id,body\n1,"a\n\xff\xfe\xd0\xb1\xd0\xb2"\n')
    assert row.document["body"] == "a\n\ufffd\ufffdбв"
    assert row.replaced == 2


def test_a_mark_alone_or_half_a_letter_is_no_crash(tmp_path: Path):
    assert read_all(tmp_path / "x.jsonl", b"\xff\xfe") == []
    assert read_all(tmp_path / "x.jsonl", b"\xef\xbb\xbf") == []
    (only,) = read_all(tmp_path / "x.jsonl", b"\xff\xfe{")
    assert only.reason.startswith("invalid JSON")


def test_standard_input_is_read_in_utf_16_as_shells_write_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LINES.encode("utf-16"))))
    assert [record.document["_id"] for record in read("-")] == ["1", "2"]


def test_a_damaged_archive_in_utf_16_gives_what_is_whole(tmp_path: Path):
    text = "".join(f'{{"id": {n}, "x": "{n * 7919}"}}\n' for n in range(5000))
    path = tmp_path / "cut.jsonl.gz"
    data = gzip.compress(text.encode("utf-16"))
    path.write_bytes(data[: len(data) // 2])
    *good, broken = read(path)
    assert [record.document["_id"] for record in good] == [str(n) for n in range(len(good))]
    assert len(good) > 100
    assert "damaged from here on" in broken.reason


@pytest.mark.long
def test_a_long_file_in_utf_16_is_read_piece_by_piece(tmp_path: Path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(("\ufeff" + '{"body": "' + "слово " * 50 + '"}\n').encode("utf-16-le") * 10_000)
    fractions = []
    tracemalloc.start()
    try:
        for record in read(path):
            assert record.document is not None
            fractions.append(record.fraction)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size / 4
    assert len(fractions) == 10_000
    assert fractions == sorted(fractions)
    assert fractions[5_000] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("encoding", WIDE)
def test_a_page_is_read_by_its_byte_order_mark(encoding: str):
    assert decode_lossy(*strip_bom("\ufeff<p>текст".encode(encoding), html=True)) == ("<p>текст", 0)
    assert decode_lossy(*strip_bom("\ufeffтекст".encode(encoding), encoding.upper())) == ("текст", 0)


RU = "Сегодня в городе выпал первый снег, и стало совсем тихо, только вороны кричали над рекой"
ZH = "今天城市里下了第一场雪，变得非常安静，只有乌鸦在河上叫"
TW = "今天城市裡下了第一場雪，變得非常安靜，只有烏鴉在河上叫"
FR = "Aujourd’hui, la première neige est tombée à la campagne, où l’été n’était plus là"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(RU, "windows-1251"), (RU, "koi8-r"), (RU, "cp866"), (ZH, "gb18030"), (TW, "big5")],
)
@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.txt", "x.html"])
def test_text_in_another_encoding_is_refused_with_the_one_to_try(tmp_path: Path, text, encoding, name):
    whole = {"x.jsonl": f'{{"id": "1", "body": "{text}"}}\n', "x.csv": f'id,body\n1,"{text}"\n'}.get(
        name, text
    )
    raw = whole.encode(encoding)
    (record,) = read_all(tmp_path / name, raw)
    assert record.document is None
    assert record.reason.endswith(f"it looks like {encoding}, try --encoding {encoding}")
    (again,) = read_all(tmp_path / name, raw, encoding=encoding)
    assert text in again.document["body"]
    (wrongly,) = read_all(tmp_path / name, raw, encoding="utf-8")
    assert "the text is not UTF-8" in wrongly.reason


@pytest.mark.parametrize("encoding", ["windows-1251", "gb18030", "cp866"])
@pytest.mark.parametrize("text", [RU, ZH, FR])
@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.txt", "x.html"])
def test_utf8_read_in_another_encoding_is_refused(tmp_path: Path, text, encoding, name):
    whole = {"x.jsonl": f'{{"id": "1", "body": "{text}"}}\n', "x.csv": f'id,body\n1,"{text}"\n'}
    (record,) = read_all(tmp_path / name, whole.get(name, text).encode(), encoding=encoding)
    assert record.document is None
    assert record.reason == f"the text is UTF-8, not {encoding}: try --encoding utf-8"


@pytest.mark.parametrize("text", [RU, ZH])
def test_a_page_of_utf8_that_declares_something_else_is_read(tmp_path: Path, text):
    page = f'<html><head><meta charset="windows-1251"></head><body><p>{text}</p></body></html>'
    (record,) = read_all(tmp_path / "x.html", page.encode())
    assert record.document["body"] == page
    assert record.replaced == 0


@pytest.mark.parametrize(
    ("text", "encoding"), [("Р° Р±", "windows-1251"), ("联通", "gb18030"), ("plain words", "cp866")]
)
def test_a_few_letters_that_are_also_valid_utf8_keep_the_given_encoding(tmp_path: Path, text, encoding):
    (record,) = read_all(tmp_path / "x.txt", text.encode(encoding), encoding=encoding)
    assert record.document["body"] == text


@pytest.mark.parametrize("encoding", ["windows-1251", "mac-cyrillic"])
@pytest.mark.parametrize("text", ["Мост через реку закрыт на ремонт до весны", "Да, Мария и Яна, я знаю"])
def test_short_russian_text_is_not_taken_for_the_twin_of_its_encoding(tmp_path: Path, encoding, text):
    (record,) = read_all(tmp_path / "x.csv", f"id;title;body\n1;Мост;{text}\n".encode(encoding))
    assert record.reason.endswith(f"try --encoding {encoding}")


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.txt"])
def test_a_byte_order_mark_of_utf_8_contradicts_another_encoding(tmp_path: Path, name: str):
    text = {"x.jsonl": '{"id": "1"}', "x.csv": "id,body\n1,a"}.get(name, "text")
    (record,) = read_all(tmp_path / name, b"\xef\xbb\xbf" + text.encode(), encoding="windows-1251")
    assert record.reason.endswith("the text is UTF-8, not windows-1251: try --encoding utf-8")


def test_one_stray_letter_of_another_encoding_is_enough(tmp_path: Path):
    (record,) = read_all(tmp_path / "x.txt", FR.replace("è", "").encode("windows-1252"))
    # Its letters are others in windows-1250, and words there, too.
    assert record.reason.endswith("(10 undecodable bytes): say its --encoding")


_NOT_CYRILLIC = {
    "windows-1253": "Το δημοτικό συμβούλιο αποφάσισε τη Δευτέρα να κλείσει η παλιά γέφυρα του ποταμού",
    "iso-8859-7": "Το δημοτικό συμβούλιο αποφάσισε τη Δευτέρα να κλείσει η παλιά γέφυρα του ποταμού",
    "windows-1255": "מועצת העיר החליטה ביום שני לסגור את הגשר הישן מעל הנהר לתיקונים עד סוף הקיץ",
    "windows-1256": "قرر المجلس البلدي يوم الاثنين إغلاق الجسر القديم فوق النهر للإصلاحات حتى نهاية الصيف",
    "windows-1254": "Belediye meclisi pazartesi günü nehrin üzerindeki eski köprünün kapatılmasına karar",
    "windows-1252": "Le conseil a décidé lundi de fermer l'ancien pont jusqu'à la fin de l'été à cause d'eux",
    "mac-roman": "Le conseil a décidé lundi de fermer l’ancien pont jusqu’à la fin de l’été",
    "iso-8859-2": "Městská rada v pondělí rozhodla, že starý most přes řeku bude do konce léta uzavřen",
    "windows-1250": "Rada miasta postanowiła w poniedziałek zamknąć stary most, gdyż pęknięcia są groźne",
}


@pytest.mark.parametrize(("encoding", "text"), _NOT_CYRILLIC.items())
@pytest.mark.parametrize("times", [1, 9])
def test_advice_that_is_followed_stores_the_text_itself(tmp_path: Path, encoding: str, text: str, times: int):
    (record,) = read_all(tmp_path / "x.txt", (text * times).encode(encoding))
    found = record.reason.rpartition("try --encoding ")[2]
    if found == record.reason:
        assert record.reason.endswith("say its --encoding")
        return
    (record,) = read_all(tmp_path / "x.txt", (text * times).encode(encoding), encoding=found)
    assert (record.document or {}).get("body") == text * times


def test_a_header_in_another_encoding_is_refused(tmp_path: Path):
    (record,) = read_all(tmp_path / "x.csv", f"номер,текст статьи\n1,{RU}\n".encode("windows-1251"))
    assert record.reason.startswith("the header: the text is not UTF-8")


def test_the_encoding_of_short_rows_is_guessed_from_the_others(tmp_path: Path):
    rows = "".join(f"{n},Да нет,{RU}\n" for n in range(5)) + "9,Ох,\n"
    *_, last = read_all(tmp_path / "x.csv", ("id,a,b\n" + rows).encode("windows-1251"))
    assert "try --encoding windows-1251" in last.reason


def test_utf_8_that_is_damaged_here_and_there_is_read(tmp_path: Path):
    (record,) = read_all(tmp_path / "x.txt", RU.encode()[:-1] + b"\xff")
    assert record.document["body"].startswith(RU[:-1])
    assert record.replaced > 0


RU = "Администрация района сообщает, что с понедельника начинается капитальный ремонт моста через реку."
ZH = "本报讯：市长朱喆昨天会见了企业家王堃和工程师李玥，讨论了滨江新区的建设方案。"
EN = "The mayor’s office said it’s not going to close the bridge; they’re repairing it."


@pytest.mark.parametrize(
    ("label", "written", "text"),
    [
        ("gb2312", "gbk", ZH),
        ("gbk", "gb18030", ZH + "㐂"),
        ("iso-8859-1", "cp1252", EN),
        ("latin1", "cp1252", EN),
        ("us-ascii", "cp1252", EN),
        ("big5", "big5hkscs", "佢哋話嗰度嘅車流太多，喺繁忙時間塞車好嚴重"),
        ("shift_jis", "cp932", "①東京都内の㈱高橋商会は、髙島町に新しい店舗を開く"),
        ("x-sjis", "cp932", "髙島町"),
        ("euc-kr", "cp949", "똠양꿍 전문점이 서울에 문을 열었다. 펲시콜라도 판다."),
        ("ks_c_5601-1987", "cp949", "똠양꿍 전문점이"),
        ("x-cp1251", "cp1251", RU),
        ("tis-620", "cp874", "สะพาน…"),
    ],
)
@pytest.mark.parametrize(
    "head",
    [
        '<meta charset="{}">',
        "<META CONTENT='text/html; charset={}' http-equiv=content-type>",
        '<!-- <meta charset="koi8-r"> --><meta charset={}>',
        '<meta name="description" content="charset=koi8-r"><meta data-charset="koi8-r" charset={}>',
        '<?xml version="1.0" encoding="{}"?>',
        "<style>" + "a{{}} " * 300 + "</style><meta charset={}>",
        '<meta charset="no-such"><meta charset="{}">',
    ],
    ids=["charset", "content", "comment", "description", "xml", "late", "unknown"],
)
def test_a_label_means_what_browsers_read_for_it(
    tmp_path: Path, label: str, written: str, text: str, head: str
):
    start = "" if head.startswith("<?xml") else "<!DOCTYPE html><html>"
    page = f"{start}{head.format(label)}<title>{text}</title><p>{text}"
    (read_page,) = read_all(tmp_path / "x.html", page.encode(written))
    assert (read_page.document or {}).get("title") == text
    assert read_page.replaced == 0


@pytest.mark.parametrize(
    ("label", "text"),
    [
        *(
            (label, one)
            for label in ("windows-1251", "koi8-r", "cp866", "iso-8859-5")
            for one in (RU, "Ещё раз")
        ),
        ("koi8-u", "Міст через річку закрито на ремонт до весни"),
        ("windows-1252", FR),
        ("iso-8859-1", "École élémentaire à Sète, été"),
        ("windows-1250", "Zażółć gęślą jaźń, święto w mieście"),
    ],
)
@pytest.mark.parametrize("capitals", [False, True])
def test_a_page_keeps_the_encoding_that_it_declares(tmp_path, label, text, capitals):
    text = text.replace("’", "'").upper() if capitals else text.replace("’", "'")
    page = f"<html><head><meta charset={label}/><title>{text}</title></head><body><p>{text}</p></body>"
    (record,) = read_all(tmp_path / "x.html", page.encode(label))
    assert (record.document or {}).get("title") == text


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("name", ["x.html", "x.txt"])
@pytest.mark.parametrize("text", [RU, EN, ZH * 3 + "\n" + ZH], ids=["ru", "en", "zh"])
def test_pages_and_texts_in_utf_16_are_read_without_a_mark(
    tmp_path: Path, encoding: str, name: str, text: str
):
    (record,) = read_all(tmp_path / name, text.encode(encoding))
    assert (record.document or {}).get("body") == text


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("text", ["plain text", RU, "Ελληνικά: ναι", "שלום: כן", "abc\n"])
def test_pages_in_a_given_encoding_have_the_byte_order_that_is_seen(tmp_path: Path, encoding: str, text: str):
    (record,) = read_all(tmp_path / "x.txt", text.encode(encoding), encoding=encoding[:6])
    assert record.document["body"] == text
    (record,) = read_all(tmp_path / "x.txt", text.encode(encoding))
    assert record.document["body"] == text


@pytest.mark.parametrize("text", [RU, "x" * 50, EN, "abc", "some plain words", "a,b"])
def test_a_text_with_nul_characters_stays_utf_8(tmp_path: Path, text: str):
    (record,) = read_all(tmp_path / "x.txt", f"{text}\0{text}\0".encode())
    assert (record.document or {}).get("body") == f"{text}\0{text}\0"


def test_each_file_of_a_mixed_folder_is_told_its_own_encoding(tmp_path: Path):
    written = {
        "a": ("cp1251", RU),
        "b": ("koi8-r", RU),
        "c": ("gb18030", ZH * 3),
        "d": ("cp1251", RU),
        "e": ("cp866", RU),
    }
    for name, (encoding, text) in written.items():
        (tmp_path / f"{name}.txt").write_bytes((text * 3).encode(encoding))
    usual = {"cp1251": "windows-1251"}
    for record, (encoding, _) in zip(read(tmp_path), written.values(), strict=True):
        assert record.reason.endswith(f"try --encoding {usual.get(encoding, encoding)}")
    # Who follows the advice of one stores no garbage of the others.
    for record, (encoding, text) in zip(
        read(tmp_path, ReadOptions(encoding="windows-1251")), written.values(), strict=True
    ):
        if encoding == "cp1251":
            assert (record.document or {}).get("body") == text * 3
        else:
            assert f"looks like {encoding}" in record.reason


@pytest.mark.parametrize(
    "begin", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"%PDF-1.4\n", b"\xff\xd8\xff\xe0\0\x10JFIF\0\1"]
)
def test_a_picture_or_an_archive_gets_no_advice_on_its_encoding(tmp_path: Path, begin: bytes):
    for name in ("x.html", "x.txt"):
        (record,) = read_all(tmp_path / name, begin + bytes(range(256)) * 4)
        assert record.reason.startswith("the file is not text: it ")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text", ["一九九九年的一个早上，一位老人在山上看见一只鸟。", f"{ZH}一", "一月\n二月\n三月\n春天来了"]
)
def test_chinese_in_utf_16_without_a_mark_has_the_byte_order_in_which_it_is_chinese(
    tmp_path: Path, encoding: str, text: str
):
    """The lower byte of 一 is zero, as the upper byte of a Latin letter is."""
    (record,) = read_all(tmp_path / "x.txt", text.encode(encoding))
    assert record.document["body"] == text


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("text", [RU, EN])
def test_a_text_in_utf_16_whose_last_letter_is_cut_off_is_read_without_a_mark(tmp_path, encoding, text):
    (record,) = read_all(tmp_path / "x.txt", text.encode(encoding)[:-1])
    assert record.document["body"] == text[:-1] + "\ufffd"
    assert record.replaced == 1


@pytest.mark.parametrize("encoding", ["windows-1251", "koi8-r", "cp866", "koi8-u", "iso-8859-5"])
@pytest.mark.parametrize("text", ["Цена: 5 руб", "Москва", "О компании", "СКИДКА 50%", "ООО «Ромашка»"])
@pytest.mark.parametrize("name", ["x.txt", "x.jsonl"])
def test_a_short_russian_text_is_told_an_encoding_in_which_it_reads_right(tmp_path, encoding, text, name):
    written = text.encode(encoding, "ignore")
    line = b'{"body": "' + written + b'"}\n' if name == "x.jsonl" else written
    (record,) = read_all(tmp_path / name, line)
    assert written.decode(record.reason.rpartition(" ")[2]) == written.decode(encoding)


@pytest.mark.parametrize("text", ["价格：五元", "新闻中心", "你好"])
def test_few_letters_that_read_well_in_several_encodings_get_no_advice(tmp_path: Path, text: str):
    (record,) = read_all(tmp_path / "x.txt", text.encode("gb18030"))
    assert record.reason.endswith("say its --encoding")


@pytest.mark.parametrize("name", ["x.txt", "x.html"])
@pytest.mark.parametrize(
    ("text", "encoding"), [("今朝私たちは公園へ", "iso-2022-jp"), ("오늘 아침", "iso-2022-kr")]
)
def test_a_text_in_ascii_with_escape_sequences_is_read(tmp_path: Path, name: str, text: str, encoding: str):
    (record,) = read_all(tmp_path / name, text.encode(encoding))
    assert record.document["body"] == text


def test_comments_that_do_not_end_take_linear_time():
    with soon():
        strip_bom(b"<!-- " * 13_000, "", html=True)
