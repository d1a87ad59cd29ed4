"""Letters: their normal forms, look-alikes, tables of Unicode and limits."""

import re
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.generated import texts
from support.servers.choose import examples

from shinglefold.canon.normalization import clean_texts
from shinglefold.canon.unicode_tables import (
    APOSTROPHE,
    COMPOSING,
    INVISIBLE,
    UNIT,
    WORD,
    characters,
    fold_character,
    repair,
)
from shinglefold.testing.edits import edited

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


@pytest.mark.long(every=6)
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


@pytest.mark.long
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


@pytest.mark.parametrize(
    ("word", "repaired", "replaced", "script"),
    [
        ("cтoлицa", "столица", 3, "Cyrl"),
        ("раypal", "paypal", 2, "Latn"),
        ("kоd", "kod", 1, "Latn"),
        ("слово", "слово", 0, "Cyrl"),
        ("москвaλ", "москвaλ", 0, ""),
        ("usbшный", "usbшный", 0, ""),
    ],
)
def test_foreign_letters_with_a_twin_are_folded_to_the_script_of_the_word(word, repaired, replaced, script):
    assert repair(word) == (repaired, replaced, script)


def test_the_company_a_word_keeps_decides_its_script(canonicalizer):
    russian = [t.text for t in canonicalizer.tokens("Мост закрыли yтpoм у тpoтyapa, где ocтaнoвкa и сop")]
    assert russian == ["мост", "закрыть", "утром", "у", "тротуар", "где", "остановка", "и", "сор"]
    assert [t.text for t in canonicalizer.tokens("the сop and раypal")] == ["the", "cop", "and", "paypal"]


def test_a_letter_without_a_twin_tells_the_script_whatever_the_company(canonicalizer):
    names = "GNOME Terminal Preferences Profiles Scrolling"
    text = f"Виберіть {names}: кожна закладка пояснена окремо, налаштування застосовуються одразу"
    tampered = edited(text, "look-alikes", 1.0, "uk")
    assert tampered.changed > 6
    both = canonicalizer.tokens_batch([tampered.text, text])
    found, wanted = ([(t.text, t.language) for t in tokens] for tokens in both)
    assert found == wanted
    assert ("закладка", "uk") in found


def test_repairs_are_counted_with_the_document(canonicalizer):
    batch = canonicalizer.hash_batch(["Cтoлица Pоссии", "Столица России", "сто\u00adлица Rоссии"])
    assert batch.repairs.tolist() == [3, 0, 1]
    first, second = (batch.hashes[batch.offsets[d] : batch.offsets[d + 1]].tolist() for d in (0, 1))
    assert first == second


def test_a_repaired_word_is_lemmatized_in_its_language(canonicalizer):
    assert [t.text for t in canonicalizer.tokens("Кpacивые PАМЫ")] == ["красивый", "рама"]
    assert [(t.text, t.language) for t in canonicalizer.tokens("runnіng")] == [("run", "en")]


def clean_text(text: str) -> str:
    block = clean_texts([text], characters().kind)
    return "".join(map(chr, block.codes[1:-1].tolist()))


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("сло\u00adво", "слово"),
        ("сло\u200b\u2060во", "слово"),
        ("\u202eтекст\u202c", "текст"),
        ("и\u0306 е\u0308 і\u0308", "й ё ї"),
        ("за\u0301мок", "замок"),
        ("e\u0301", "é"),
        ("ﬁn", "fin"),
        ("ᄒ\u1161\u11ab", "한"),
        ("т\u0335\u0336\u0337е\u0338кст", "текст"),
    ],
)
def test_clean_up(given_text, expected):
    assert clean_text(given_text) == expected


def test_invisible_characters_inside_words_are_counted_and_others_are_not():
    block = clean_texts(["сло\u00ad\u00adво \u200b и", "слово", "а\u200bб", "末\u2060班"], characters().kind)
    assert block.removed.tolist() == [2, 0, 1, 1]


def test_a_clean_text_is_left_alone():
    block = clean_texts(["Мама мыла раму", "漢字"], characters().kind)
    assert block.places is None


@given(st.text(max_size=60))
@settings(max_examples=examples(300), deadline=None)
def test_composed_and_decomposed_texts_end_up_the_same(canonicalizer, text):
    forms = {
        tuple(t.text for t in canonicalizer.tokens(unicodedata.normalize(f, text))) for f in ("NFC", "NFD")
    }
    assert len(forms) == 1


def test_every_text_of_a_block_keeps_its_place():
    batch = list(texts(300, seed=3))
    block = clean_texts(batch, characters().kind)
    for number, text in enumerate(batch):
        end = block.origins[number + 1] - 1 if number + 1 < len(batch) else len(block.codes) - 1
        own = block.codes[block.origins[number] : end]
        assert "".join(map(chr, own.tolist())) == clean_text(text), repr(text)


def test_a_token_of_a_decomposed_text_covers_all_its_marks(canonicalizer):
    text = unicodedata.normalize("NFD", "Йод, мой й\u0301од — ёж и їжак")
    spans = [text[token.start : token.end] for token in canonicalizer.tokens(text)]
    assert spans == [unicodedata.normalize("NFD", w) for w in ("Йод", "мой", "й\u0301од", "ёж", "и", "їжак")]


#: A plane and a half, where the scripts are, and a part of what is taken by range.
_CODES = [*range(0x20100), *range(0x2F800, 0x2FA1E)]
_FILLERS = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10)}


@pytest.fixture(scope="module")
def plain() -> list[int]:
    """Letters, marks and numbers that are seen and join no letters."""
    facts = characters()
    apart = facts.kind & (APOSTROPHE | INVISIBLE) > 0
    kept = [code for code in _CODES if unicodedata.category(chr(code))[0] in "LMN" and not apart[code]]
    return sorted(kept + [code for code in _CODES if _stands_for_letters(chr(code))])


def _stands_for_letters(character: str) -> bool:
    """Whether a character is a symbol for letters or numbers, and no mark above a word, nor the sign №."""
    folded = fold_character(character)
    lettered = folded != character and any(unicodedata.category(c)[0] in "LN" for c in folded)
    above = unicodedata.decomposition(character).startswith("<super>")
    return unicodedata.category(character)[0] == "S" and lettered and not above and character != "№"


def test_letters_marks_and_numbers_are_of_words_and_nothing_else_is(plain):
    kind = characters().kind
    assert [code for code in _CODES if kind[code] & (WORD | UNIT)] == plain
    assert not [code for code in plain if kind[code] & WORD and kind[code] & UNIT]


def test_each_is_compared_by_its_own_fold_or_written_out(plain):
    facts = characters()
    for code in plain:
        folded = fold_character(chr(code))
        assert facts.fold[code] == (ord(folded) if len(folded) == 1 else code), hex(code)
        assert len(folded) == 1 or facts.kind[code] & COMPOSING, hex(code)


def test_whatever_normalization_changes_beside_a_letter_is_composed_first(plain):
    kind = characters().kind
    moved = [code for code in plain if unicodedata.combining(chr(code))]
    moved += [
        ord(unicodedata.normalize("NFD", chr(code))[1]) for code in range(0xC0, 0x250) if _composed(code)
    ]
    assert len(moved) > 800
    assert not [hex(code) for code in moved if not kind[code] & COMPOSING]


def test_the_script_is_that_of_the_letter_it_is_compared_by(plain):
    facts = characters()
    told = {"CYRILLIC": "Cyrl", "LATIN": "Latn", "GREEK": "Grek", "CJK": "Hani", "HEBREW": "Hebr"}
    told["HANGUL"] = "Hang"
    for code in plain:
        folded = chr(facts.fold[code])
        name = unicodedata.name(folded, "").partition(" ")[0]
        if unicodedata.category(folded)[0] != "L":
            assert facts.script_of(chr(code)) == "Zyyy", hex(code)
        elif name in told:
            assert facts.script_of(chr(code)) == told[name], hex(code)


def test_what_is_never_seen_is_told_from_what_is():
    kind = characters().kind
    formats = {code for code in _CODES if unicodedata.category(chr(code)) == "Cf"}
    assert {code for code in _CODES if kind[code] == INVISIBLE} == formats | _FILLERS


def _composed(code: int) -> bool:
    return len(unicodedata.normalize("NFD", chr(code))) == 2
