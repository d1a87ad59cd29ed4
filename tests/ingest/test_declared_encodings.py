"""Pages that declare an encoding in which they were not written."""

from pathlib import Path

import pytest

from shinglefold.cli.shared.sources import reading_notes
from shinglefold.ingest import read
from shinglefold.ingest.readers.record import ReadOptions

RU = "Администрация района сообщает, что с понедельника начинается капитальный ремонт моста через реку."
ZH = "本报讯：市长朱喆昨天会见了企业家王堃和工程师李玥，讨论了滨江新区的建设方案。"
TW = "本報訊：市長昨天會見了企業家和工程師，討論了濱江新區的建設方案，預計明年開始施工。"
JA = "東京都内の高橋商会は、新しい店舗を開くと発表した。営業時間は午前九時から午後八時までである。"
MARKUP = "<script>var a = 1 < 2;</script><div class='column'>" * 40


def declaring(label: str, text: str) -> str:
    return (
        f"<html><head><meta charset={label}/><title>{text}</title></head><body>{MARKUP}<p>{text}</p></body>"
    )


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
