"""Lines of JSON, their encoding, and encodings that pages declare."""

import gc
import json
import pickle
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.cli.shared.sources import reading_notes
from shinglefold.documents import is_plain, to_json
from shinglefold.ingest import read
from shinglefold.ingest.readers import jsonl
from shinglefold.ingest.readers.jsonl import LazyLineDocument, parse_line
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.ingest.readers.streams import Line
from shinglefold.ingest.writing.worker_pool import infrequent_gc

_LINE = '{"id": 7, "title": "Кот", "size": 1.5, "none": null}'


def _document(tmp_path, line=_LINE):
    path = tmp_path / "a.jsonl"
    path.write_text(f"{line}\n", "utf-8")
    (record,) = read(path)
    return record.document


def test_a_document_travels_as_its_line_and_arrives_as_it_was_read(tmp_path):
    document = _document(tmp_path)
    sent = pickle.dumps(document)
    assert _LINE.encode() in sent
    assert pickle.loads(sent) == document == {"_id": "7", "id": 7, "title": "Кот", "size": 1.5, "none": None}
    assert type(pickle.loads(sent)) is type(dict(document)) is dict


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.__setitem__("title", "Пёс"),
        lambda one: one.__delitem__("title"),
        lambda one: one.__ior__({"new": 1}),
        lambda one: one.update(new=1),
        lambda one: one.setdefault("new", 1),
        lambda one: one.pop("size"),
        lambda one: one.popitem(),
        lambda one: one.clear(),
    ],
)
def test_a_document_that_was_changed_arrives_as_it_was_changed(tmp_path, change):
    document = _document(tmp_path)
    before = dict(document)
    change(document)
    assert pickle.loads(pickle.dumps(document)) == document != before


def test_every_method_that_changes_a_dictionary_is_watched():
    own = {name for name, method in vars(LazyLineDocument).items() if callable(method)}
    reading = {"copy", "fromkeys", "get", "items", "keys", "values"}
    assert {name for name in vars(dict) if not name.startswith("_")} <= own | reading


@pytest.mark.parametrize("line", ['{"tags": ["a"]}', '{"at": {"x": 1}}', f'{{"body": "{"а" * (1 << 21)}"}}'])
def test_mutable_values_and_long_lines_are_pickled_as_dictionaries(tmp_path, line):
    assert type(_document(tmp_path, line)) is dict


def test_garbage_is_looked_for_among_what_is_new_and_afterwards_everywhere():
    # What lasts as long as the tests is frozen.
    gc.unfreeze()
    # Python 3.12 freezes some hundred objects by itself.
    assert gc.get_freeze_count() < 1_000
    with infrequent_gc():
        assert gc.get_freeze_count() > 1_000
    assert gc.get_freeze_count() < 1_000


def test_frozen_objects_stay_frozen():
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        # Other threads may free some frozen objects meanwhile.
        with infrequent_gc():
            assert before - 1_000 < gc.get_freeze_count() <= before
        assert before - 1_000 < gc.get_freeze_count() <= before
    finally:
        gc.unfreeze()


def test_garbage_is_collected_rarely_unless_collection_is_off():
    often = gc.get_threshold()
    try:
        for first, meanwhile in ((700, 10_000), (20_000, 20_000), (0, 0)):
            gc.set_threshold(first, *often[1:])
            with infrequent_gc():
                assert gc.get_threshold()[0] == meanwhile
            assert gc.get_threshold() == (first, *often[1:])
    finally:
        gc.set_threshold(*often)


def test_objects_frozen_by_the_caller_stay_frozen():
    gc.freeze()
    try:
        with infrequent_gc():
            pass
        assert gc.get_freeze_count() > 1_000
    finally:
        gc.unfreeze()


_QUICK, _CAREFUL = ReadOptions(encoding="utf-8"), ReadOptions(encoding="utf_8")


def _same(raw: bytes) -> None:
    line = Line(7, raw, "")
    assert repr(parse_line(line, "a", _QUICK, 0.5)) == repr(parse_line(line, "a", _CAREFUL, 0.5)).replace(
        "utf_8", "utf-8"
    )


@pytest.mark.parametrize(
    "value",
    [
        *(f"1{'0' * digits}" for digits in (0, 18, 19, 20, 400, 4_299, 4_300, 5_000)),
        *(
            "1e400",
            "-1e400",
            "1e-400",
            "1.7976931348623159e308",
            "2.2250738585072011e-308",
            "-0",
            "-0.0",
            "1E5",
        ),
        *("NaN", "-Infinity", "01", "1.", ".5", "+1", "tru", "null", "[1,]", '{"a":1,}', '{"a":1,"a":2}'),
        *(r'"\ud800"', r'"\ud83d\ude00"', r'"\ude00\ud83d"', r'"\u0000"', r'"\x"', '"\t"', '"\x7f"', "'a'"),
        *('"\ufeff"', '"\u2028"', "[" * 99 + "]" * 99, "[" * 100 + "]" * 100, "[" * 5_000 + "]" * 5_000, ""),
    ],
)
def test_odd_values_are_read_alike(value):
    _same(f'{{"id": "1", "field": {value}}}'.encode())
    _same(value.encode())


@pytest.mark.parametrize(
    "text", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xd0", b"\xef\xbf\xbf"]
)
def test_bytes_that_are_no_utf_8_are_read_alike(text):
    _same(b'{"id": "1", "text": "' + text + b'"}')


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["id", "_id", "_source", "a"]), _JSON), st.booleans())
def test_documents_are_read_alike(document, ascii_only):
    _same(json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"))


def test_most_lines_are_read_fast(monkeypatch):
    monkeypatch.setattr(jsonl.json, "loads", None)
    raw = '{"id": 5, "title": "Кот", "tags": ["a", 1, 0.5, null], "at": {"x": true}}'.encode()
    assert parse_line(Line(1, raw, ""), "a", _QUICK).document == {
        "_id": "5", "id": 5, "title": "Кот", "tags": ["a", 1, 0.5, None], "at": {"x": True},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('{"id": "1", "body": "a", "body": "b"}', "body"),
        ('{"id": "1", "body": "body", "id": "2"}', "id"),
        ('{"id": "1", "body": "a", "bod\\u0079": "b"}', "body"),
        ('{"id": "1", "meta": {"host": "a", "host": "b"}}', "host"),
        ('{"id": "1", "meta": [{"a": 1}, {"host": "a", "n": 1, "host": "b"}]}', "host"),
        ('{"_id": "1", "_source": {"body": "a", "body": "b"}}', "body"),
        ('{"id": "1", "é": 1, "é": 2}', "é"),
        # However many colons stand apart from their keys.
        ('{"id" : "1", "body": "a", "body": "b"}', "body"),
        ('{"id"\t: "1", "body": "a", "body": "b"}', "body"),
        ('{"id"  : "1", "body" : "a", "body": "b"}', "body"),
        ('{"id" \t: "1", "body": "a", "body": "b"}', "body"),
    ],
)
def test_a_key_that_occurs_twice_in_an_object_is_refused_by_name(tmp_path: Path, line: str, name: str):
    file = tmp_path / "x.jsonl"
    file.write_text(line, "utf-8")
    (record,) = read(file)
    assert record.document is None
    assert record.raw == line
    assert f"the key {name!r} occurs twice" in record.reason


@pytest.mark.parametrize("encoding", ["", "koi8-r"])
def test_a_line_in_another_encoding_is_kept_byte_by_byte(tmp_path: Path, encoding: str):
    text = '{"url": "1", "body": "Мост через реку закрыт до весны"}'
    line = text.encode("cp1251" if not encoding else "utf-8")
    (tmp_path / "x.jsonl").write_bytes(line + b"\r\n")
    (record,) = read(tmp_path / "x.jsonl", ReadOptions(encoding=encoding, id_field="url"))
    assert "try --encoding" in record.reason
    assert record.raw.encode(encoding or "utf-8", "surrogateescape") == line
    assert (record.id_field, record.fraction) == ("url", 1)


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "body", "body": "id"}',
        '{"id": "1", "body": "\\"body\\": 1, \\"body\\": 2"}',
        '{"id": "1", "meta": [{"host": "a"}, {"host": "b"}], "host": {"host": "c"}}',
        '{"id": "1", "bod\\u0079": "b"}',
    ],
)
def test_equal_keys_of_several_objects_and_equal_values_are_read(tmp_path: Path, line: str):
    file = tmp_path / "x.jsonl"
    file.write_text(line, "utf-8")
    (record,) = read(file)
    assert dict(record.document or {}).items() >= json.loads(line).items()


ENDS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES = st.recursive(ENDS, lambda some: st.lists(some) | st.dictionaries(st.text(), some), max_leaves=8)


@given(st.dictionaries(st.text(), VALUES))
def test_it_is_read_as_what_was_written_on_one_line(document):
    made = to_json(document)
    assert json.loads(made) == document
    assert b"\n" not in made
    assert is_plain(document)


@pytest.mark.parametrize(
    "other", [float("nan"), float("inf"), (1, 2), date(2026, 1, 1), {1: 2}, Decimal(1), b"a", {1}]
)
@pytest.mark.parametrize("around", [lambda one: {"a": one}, lambda one: {"a": [1.5, {"b": one}]}])
def test_what_json_has_not_is_written_or_refused_as_the_standard_library_does(other, around):
    document = around(other)
    assert not is_plain(document)
    try:
        expected = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    except TypeError:
        with pytest.raises(TypeError):
            to_json(document)
    else:
        assert to_json(document) == expected


def test_whole_numbers_of_any_length_stay_and_half_a_surrogate_pair_is_refused():
    assert to_json({"n": 2**70}) == b'{"n":1180591620717411303424}'
    with pytest.raises(UnicodeEncodeError):
        to_json({"text": "\ud800"})
    endless: dict[str, object] = {}
    with pytest.raises(ValueError, match="Circular"):
        to_json(endless | {"a": endless.setdefault("b", [endless])})


RU = "Администрация района сообщает, что с понедельника начинается капитальный ремонт моста через реку."
ZH = "本报讯：市长朱喆昨天会见了企业家王堃和工程师李玥，讨论了滨江新区的建设方案。"
TW = "本報訊：市長昨天會見了企業家和工程師，討論了濱江新區的建設方案，預計明年開始施工。"
JA = "東京都内の高橋商会は、新しい店舗を開くと発表した。営業時間は午前九時から午後八時までである。"
MARKUP = "<script>var a = 1 < 2;</script><div class='column'>" * 40


def declaring(label: str, text: str) -> str:
    return (
        f"<html><head><meta charset={label}/><title>{text}</title></head><body>{MARKUP}<p>{text}</p></body>"
    )


@pytest.mark.long(every=6)
@pytest.mark.parametrize(
    ("written", "text", "labels"),
    [
        ("big5", TW, ["gb2312", "gbk", "gb18030"]),
        ("gb18030", ZH, ["big5", "big5-hkscs"]),
        ("shift_jis", JA, ["euc-jp"]),
        ("euc_jp", JA, ["shift_jis", "x-sjis"]),
        ("cp1251", RU, ["koi8-r", "koi8-u", "iso-8859-1", "windows-1252", "cp866", "iso-8859-5"]),
        ("cp1251", RU, ["gb2312", "big5"]),
        ("koi8-r", RU, ["windows-1251", "iso-8859-1", "windows-1252"]),
        ("cp866", RU, ["windows-1251", "koi8-r"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("times", [1, 20])
def test_a_page_that_declares_a_wrong_encoding_is_read_in_its_own(tmp_path, written, text, labels, times):
    for label in labels:
        options = ReadOptions()
        page = declaring(label, text * times)
        (tmp_path / "x.html").write_bytes(page.encode(written))
        (record,) = read(tmp_path / "x.html", options)
        assert (record.reason, record.document and record.document["body"]) == ("", page), label
        assert list(reading_notes(options)) == ["read in another encoding than they declare: 1"]
        # What is given is no mistake of the page.
        (record,) = read(tmp_path / "x.html", ReadOptions(encoding=label))
        assert record.document is None or record.document["body"] != page


@pytest.mark.parametrize("label", ["windows-1251", "iso-8859-1", "gb2312", "big5", "shift_jis", "koi8-r", ""])
@pytest.mark.parametrize("text", [RU, ZH, TW])
@pytest.mark.parametrize(
    "damage",
    [
        lambda page: page[: page.index(b"</p>") - 1],  # A crawler's limit.
        lambda page: page.replace(b"</p>", b" \xa9 2020</p>"),
    ],
)
def test_a_damaged_page_in_utf_8_is_utf_8_whatever_it_declares(tmp_path: Path, label, text, damage):
    text = text.rstrip(".。")
    page = declaring(label, text).replace("charset=/", "")
    (tmp_path / "x.html").write_bytes(damage(page.encode()))
    (record,) = read(tmp_path / "x.html")
    assert record.document is not None, record.reason
    assert text[:-1] in record.document["body"]
    assert record.replaced == 1


@pytest.mark.parametrize("label", ["iso-8859-1", "windows-1252", "koi8-r", "koi8-u"])
def test_a_page_whose_encoding_is_only_a_guess_is_refused(tmp_path: Path, label: str):
    (tmp_path / "x.html").write_bytes(declaring(label, ZH).encode("gb18030"))
    (record,) = read(tmp_path / "x.html")
    assert record.document is None
    assert "try --encoding gb18030" in record.reason


@pytest.mark.parametrize(
    ("label", "text"),
    [
        *((label, ZH) for label in ("gb2312", "gbk", "gb18030")),
        *((label, TW) for label in ("big5", "big5-hkscs")),
        *((label, JA) for label in ("shift_jis", "euc-jp")),
        ("gb2312", "帮助：JIS 函数转换 ｱｲｳｴｵ ｶｷｸｹｺ"),
        ("gb2312", "ひらがなとカタカナの表：あいうえおかきくけこさしすせそたちつてとなにぬねの"),
        ("gb2312", "Ελληνικά ─ ┌┐ ①②③ Русский текст в китайской кодировке"),
        ("gb18030", "朱喆 王堃 李玥 张彧 陈翀 赵昺 淼焱垚犇骉羴"),
        ("shift_jis", "ｱｲｳｴｵｶｷｸｹｺｻｼｽｾｿﾀﾁﾂﾃﾄ"),
        ("iso-8859-1", "Ça été où l'île à côté, dès l'été"),
        ("iso-8859-2", "Zażółć gęślą jaźń. Święta były piękne, choć śnieg już się roztopił"),
        ("windows-1254", "Çocuklar güneşli bir günde okula yürüdüler, öğretmenleri İstanbul'u anlattı"),
        ("iso-8859-7", "ΤΑ ΠΑΙΔΙΑ ΠΗΓΑΝ ΣΤΟ ΣΧΟΛΕΙΟ ΜΕ ΤΑ ΠΟΔΙΑ ΓΙΑΤΙ Ο ΟΔΗΓΟΣ ΑΡΡΩΣΤΗΣΕ"),
        ("windows-1255", "הילדים הלכו לבית הספר ברגל כי נהג האוטובוס חלה"),
        *(
            (label, "Деца су ишла у школу пешке, јер се возач разболео. Љубав, њива, џеп, ћуран, ђак.")
            for label in ("windows-1251", "iso-8859-5")
        ),
        *(
            (label, "ЦСКА ФСБ МВД ГУВД ЦУМ ГУМ ФССП ФЗ РФ СССР КГБ ВЦСПС ГЭС ТЭЦ ЦБ ФРГ ГДР ЧССР")
            for label in ("windows-1251", "koi8-r", "cp866", "iso-8859-5")
        ),
        *((label, "鑢鑪鑰鑵鑷鑽鑚鑼鑾钁鑿閂閇閊閔閖閘閙閠閨閧閭") for label in ("shift_jis", "euc-jp")),
        ("big5-hkscs", "鬱麤龘齉齾灪爩虋饢驫鱻麷黷齺"),
        ("gb2312", "鼢鼠 鼬獾 豺狼 獐麂 貔貅 饕餮 魑魅魍魉 螳螂 蟋蟀 蜈蚣 蚯蚓 蜻蜓 蜘蛛 蟑螂 牡蛎"),
    ],
)
@pytest.mark.parametrize("times", [1, 20])
def test_a_rightly_declared_page_is_never_read_in_another_encoding(tmp_path, label, text, times):
    options, page = ReadOptions(), declaring(label, text * times)
    (tmp_path / "x.html").write_bytes(page.encode("gb18030" if label.startswith("gb") else label))
    (record,) = read(tmp_path / "x.html", options)
    assert (record.document or {}).get("body") == page
    assert not options.skipped
