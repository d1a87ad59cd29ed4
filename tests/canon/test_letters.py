"""One text in all forms that real texts have: relations of Unicode's tables × languages, or a reason."""

import re
import unicodedata
from collections.abc import Callable

import pytest

TEXTS = {
    "ru": "Пёстрые попугаи выучили новые песни и поют их каждое утро возле открытого окна",
    "uk": "Щороку восени їжаки ховаються під об'їденим листям, бо м'яка земля гріє їхні гнізда. Її вистачить",
    "be": "Увечары дзеці з'елі п'яць яблыкаў, пайшлі глядзець на зоркі ў полі",
    "kk": "Әжем маған өз қолымен жаһанның ең әдемі көйлегін тігіп берді",
    "sr": "Стари рибар је сваке ноћи бацао мрежу и враћао се кући са пуним чамцем",
    "ce": "Гӏалгӏай мехкахь вехаш волу кӏант",
    "zh": "人民在山上用木材和石头建造小屋，老人说马车走得很慢，鸟儿飞到门前",
    "ja": "古いカメラで山の写真をとるガイドがパンを食べながらバスを待つ",
}
_OWN = re.compile("[бгджзийлпфцчшщыьэюяћқғңўє]", re.IGNORECASE)
_CYRILLIC = ("ru", "uk", "be", "kk", "sr", "ce")
_STRESSED = ("ru", "uk", "be", "sr")

Edit = Callable[[str], str]


def swapped(table: dict[str, str]) -> Edit:
    """Replace one letter of each word that has another letter which shows its script."""

    def word(match: re.Match[str]) -> str:
        found = next((c for c in match[0] if c in table), "") if _OWN.search(match[0]) else ""
        return match[0].replace(found, table[found], 1) if found else match[0]

    return lambda text: re.sub(r"\w+", word, text)


def stressed(mark: str, form: str = "NFC") -> Edit:
    """Put a mark on the last vowel of each word."""

    def word(match: re.Match[str]) -> str:
        return unicodedata.normalize(form, f"{match[1]}{mark}{match[2]}")

    return lambda text: re.sub(r"\b(\w+[аеиоуыэюя])([^\Wаеиоуыэюяёїіўәө]*)\b", word, text)


def inverse(first: int, last: int) -> dict[str, str]:
    """Return the compatibility forms in a range of code points, by what they stand for."""
    codes = map(chr, range(first, last))
    return {unicodedata.normalize("NFKC", c): c for c in codes if unicodedata.normalize("NFKC", c) != c}


def spelled(table: dict[str, str], form: str = "NFC") -> Edit:
    return lambda text: "".join(table.get(c, c) for c in unicodedata.normalize(form, text))


def broken(hyphen: str, end: str = "\n") -> Edit:
    """Break words of six letters and more at line ends."""
    return lambda text: re.sub(r"\b(\w{3,4})(\w{3,})\b", rf"\1{hyphen}{end}\2", text)


_LATIN = dict(zip("аеорсухіјәөһӏАЕОРСТХІӘ", "aeopcyxijəɵhIAEOPCTXIƏ", strict=True))
_RADICALS = inverse(0x2F00, 0x2FD6) | dict(zip("民马车鸟飞门", "⺠⻢⻋⻦⻜⻔", strict=True))
_HALF_WIDTH = inverse(0xFF65, 0xFFA0)
#: Two spellings that follow a text of any language.
SPELLINGS = [
    ("25 °C", "25 ℃"), ("54 m2", "54 ㎡"), ("54 m2", "54 m²"), ("5 kg", "5 ㎏"), ("1 2", "① ②"),
    ("1 2", "❶ ❷"), ("1 2", "1️⃣ 2️⃣"), ("10", "❿"), ("a b", "ⓐ Ⓑ"), ("A B", "🅰 🄱"), ("iv", "Ⅳ"), ("(株)", "㈱"),
    ("令和", "㋿"), ("株式会社", "㍿"), ("キロ", "㌔"), ("1月", "㋀"), ("ガギ", "ｶﾞｷﾞ"), ("가나", "ﾡￂﾤￂ"),
    ("fin", "ﬁn"), ("لا", "ﻻ"), ("C++", "Ｃ＋＋"), ("C#", "C♯"), ("Na+", "Na⁺"), ("Cl−", "Cl⁻"),
    ("o'zbek", "oʻzbek"), ("naïve Citroën", "naїve Citroёn"),
    ("Galaxy S23, 128 GB", "Ｇａｌａｘｙ　Ｓ２３，　１２８　ＧＢ"),
]  # fmt: skip
STAND_INS = '’‘ʼ`´ʻˈʺ"*“”„‚″'
LINE_ENDS = [
    ("-", "\n"),
    ("-", "\r\n"),
    ("-", "\n    "),
    ("-", "\r\n\t"),
    ("\u2010", "\n"),
    ("\u00ad", "\n"),
    ("\u00ad", ""),
]
#: The name of a relation, the languages that show it, and what it does to a text.
RELATIONS: list[tuple[str, tuple[str, ...], Edit]] = [
    ("Latin letters", _CYRILLIC, swapped(_LATIN)),
    ("Latin letters with accents", ("ru", "uk"), swapped({"ё": "ë", "ї": "ï", "Ё": "Ë", "Ї": "Ï"})),
    ("Latin capitals", ("kk", "ru"), swapped(dict(zip("нкмтв", "HKMTB", strict=True)))),
    ("acute", _STRESSED, stressed("\u0301")),
    ("grave", _STRESSED, stressed("\u0300")),
    ("grave, decomposed", _STRESSED, stressed("\u0300", "NFD")),
    ("Latin acute", _STRESSED, swapped(dict(zip("аеоу", "áéóý", strict=True)))),
    ("decomposed", ("ru", "uk", "be", "kk", "ja"), lambda text: unicodedata.normalize("NFD", text)),
    ("radicals", ("zh", "ja"), spelled(_RADICALS)),
    ("compatibility ideographs", ("zh",), spelled(inverse(0xF900, 0xFB00))),
    ("half-width", ("ja",), spelled(_HALF_WIDTH, "NFD")),
    *((new, tuple(TEXTS), lambda text, new=new: f"{text} {new}") for _, new in SPELLINGS),
    *((s, ("uk", "be"), lambda text, s=s: text.replace("'", s)) for s in STAND_INS),
    ("a word of Latin letters", ("uk",), lambda text: text.replace("Її", "Ïï")),
    ("no apostrophe", ("uk",), lambda text: text.replace("'", "")),
    *((f"broken by {hyphen + end!a}", _CYRILLIC, broken(hyphen, end)) for hyphen, end in LINE_ENDS),
]
_PLAIN = {new: old for old, new in SPELLINGS}


@pytest.mark.parametrize(
    ("relation", "code", "edit"), [(name, code, edit) for name, codes, edit in RELATIONS for code in codes]
)
def test_forms_of_a_text_have_the_same_canonical_text(canonicalizer, relation, code, edit):
    text = TEXTS[code] + (f" {_PLAIN[relation]}" if relation in _PLAIN else "")
    other = edit(TEXTS[code])
    assert text != other
    wanted, found = canonicalizer.text_batch([text, other])
    assert found == wanted


#: What keeps its own canonical text, and why.
DIFFERENT = [
    (
        "№ 5",
        "No 5",
        "the sign is also left out; spelled out, it would join its number",
    ),
    ("Windows™", "WindowsTM", "a mark above a word is no part of it"),
    ("старый хор", "старый xop", "a word of look-alikes only may be one of either script"),
    ("гӏалгӏай", "г1алг1ай", "a digit in a word is a fact (S1, S2)"),
    ("гӏалгӏай", "гlалгlай", "a Latin l shows a Latin word (раураl)"),
    ("старая", "ст+арая", "a plus before a stressed vowel is a convention of speech software"),
    ("мясо", "м'ясо", "a text of one Russian word; within Ukrainian words it is Ukrainian"),
    (
        "well-known",
        "well-\nknown",
        "English has no dictionary, and most hyphens at line ends only break words",
    ),
    ("Rh", "Rh+", "a sign after a short word belongs to it"),
]


@pytest.mark.parametrize(("one", "other", "reason"), DIFFERENT)
def test_forms_that_differ_have_a_reason(canonicalizer, one, other, reason):
    first, second = canonicalizer.text_batch([one, other])
    assert first != second, reason


def test_every_compatibility_form_is_what_nfkc_makes_of_it(canonicalizer):
    forms = [chr(code) for code in (*range(0x20000), *range(0x2F800, 0x2FA20)) if _is_form(chr(code))]
    assert len(forms) > 3_500
    for around in ("слово {} и", "моё{}", "{}ka", "中{}", "カ{}カ", "6{}"):
        texts = [around.format(form) for form in forms]
        found = canonicalizer.text_batch(texts)
        wanted = canonicalizer.text_batch([unicodedata.normalize("NFKC", text) for text in texts])
        rows = zip(forms, found, wanted, strict=True)
        assert [row for row in rows if row[1] != row[2]] == [], around


def _is_form(character: str) -> bool:
    """Whether NFKC changes a character that stands for letters or numbers; DIFFERENT has the others."""
    above = unicodedata.decomposition(character).startswith("<super>")
    if character == "№" or (above and unicodedata.category(character)[0] == "S"):
        return False
    spelled_out = unicodedata.normalize("NFKC", character)
    return spelled_out != character and any(unicodedata.category(c)[0] in "LN" for c in spelled_out)


@pytest.mark.parametrize(
    "text", ["из-за", "какой-нибудь", "по-русски", "научно-технический", "будь-який", "ось-ось"]
)
def test_a_hyphen_of_the_word_stays_one_at_a_line_end(canonicalizer, text):
    assert (
        len(set(canonicalizer.text_batch([text, text.replace("-", "-\n"), text.replace("-", "-\r\n")]))) == 1
    )


def test_lines_that_end_with_a_dash_or_begin_with_a_name_stay_apart(canonicalizer):
    texts = ["это слово -\nдело", "улица Тверская-\nЯмская", "этажи 12-\n34", "это слово-\n\nдело"]
    texts += ["перево-\n  \nзка", "перево-\n", "  зка", f"перево-\n{' ' * 33}зка", "перево-\n  "]
    assert canonicalizer.text_batch(texts) == canonicalizer.text_batch(
        [t.replace("-\n", "- \n") for t in texts]
    )


def test_signs_after_short_words_tell_names_apart(canonicalizer):
    names = ["C", "C++", "C#", "F#", "A", "A+", "A+++", "Rh", "Rh+", "Rh−", "Na+", "18", "18+"]
    assert len(set(canonicalizer.text_batch(names))) == len(names)
    for one, other in [
        ("a+b", "a b"),
        ("1 + 2", "1 2"),
        ("Installation#", "Installation"),
        ("#слово", "слово"),
    ]:
        assert len(set(canonicalizer.text_batch([one, other]))) == 1, one
    assert [token[:3] for token in canonicalizer.tokens("на C++, то есть")][1] == ("c++", 3, 6)
