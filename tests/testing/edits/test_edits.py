"""Each kind of edit does what it says, to the degree it is told, and the same every time."""

import pytest

from shinglefold.canon import Canonicalizer, strip_html
from shinglefold.errors import ConfigError
from shinglefold.examples import articles
from shinglefold.registry import make_scheme
from shinglefold.sketch.verification import similarity
from shinglefold.testing.edits import KINDS, edited, kinds_of
from shinglefold.testing.edits.spelling import EditedPassage

LANGUAGES = ("ru", "uk", "zh", "en")
ALL = [(language, kind) for language in LANGUAGES for kind in kinds_of(language)]
EVERYWHERE = [
    (language, kind) for language, kind in ALL if kind not in ("full width", "ґ to г", "apostrophes")
]
#: Their words are other words afterwards; those of the others are only written otherwise.
WORDING = ("words replaced", "words inserted", "words deleted")
SPELLING = (
    "ё to е",
    "ґ to г",
    "apostrophes",
    "look-alikes",
    "zero-width",
    "soft hyphens",
    "Traditional",
    "full width",
)


@pytest.fixture(scope="module")
def texts():
    made = {}
    for page in articles():
        text = strip_html(page["body"]) if page["format"] == "html" else page["body"]
        made[page["lang"]] = made.get(page["lang"], "") + "\n" + text
    extra = {
        "uk": "\nҐанок і ґрати, п'ять об’єктів.",
        "en": "\nIt's the company's report.",
        "ru": "\nЕщё ёлка.",
    }
    return {language: made[language][:6000] + extra.get(language, "") for language in LANGUAGES}


@pytest.fixture(scope="module")
def canonicalizer():
    return Canonicalizer.of(make_scheme())


def words(text):
    return [word.lower() for word in EditedPassage.of(text).words]


@pytest.mark.long(every=6)
@pytest.mark.parametrize(("language", "kind"), ALL)
def test_a_seed_makes_the_same_copy_and_another_seed_another(texts, language, kind):
    text = texts[language]
    made = edited(text, kind, 0.3, language)
    assert made == edited(text, kind, 0.3, language)
    if made.changed > 5 and kind != "truncated":
        assert made.text != edited(text, kind, 0.3, language, seed=85).text


@pytest.mark.parametrize(("language", "kind"), ALL)
def test_no_share_is_no_edit(texts, language, kind):
    made = edited(texts[language], kind, 0.0, language)
    assert made.changed == 0
    text = strip_html(made.text) if made.format == "html" else made.text
    assert words(text) == words(texts[language])


@pytest.mark.long(every=6)
@pytest.mark.parametrize(("language", "kind"), EVERYWHERE)
def test_a_larger_share_changes_more(texts, language, kind):
    counts = [edited(texts[language], kind, share, language).changed for share in (0.1, 0.3, 1.0)]
    assert counts[2] > 0
    assert counts[0] <= counts[1] <= counts[2]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", WORDING)
def test_the_similarity_of_the_words_follows_from_what_was_changed(texts, language, kind):
    text = texts[language]
    made = edited(text, kind, 0.1, language)
    n, k = made.words, made.changed
    told = {
        "words replaced": (n - k) / n,
        "words inserted": 2 * n / (2 * n + k),
        "words deleted": 2 * (n - k) / (2 * n - k),
    }
    ids = {word: number for number, word in enumerate({*words(text), *words(made.text)})}
    one, other = ([ids[word] for word in words(each)] for each in (text, made.text))
    assert similarity(one, other) == pytest.approx(told[kind], abs=0.002)


@pytest.mark.long(every=5)
@pytest.mark.parametrize(("language", "kind"), [one for one in ALL if one[1] in SPELLING])
def test_another_spelling_is_the_same_canonical_text(texts, canonicalizer, language, kind):
    text = texts[language]
    made = edited(text, kind, 1.0, language)
    one, other = canonicalizer.hash_batch([text, made.text], [language] * 2).offsets[1:].tolist()
    assert other == 2 * one
    before, after = canonicalizer.tokens(text, language), canonicalizer.tokens(made.text, language)
    same = sum(a.text == b.text for a, b in zip(before, after, strict=True))
    assert same >= 0.97 * len(before)


@pytest.mark.parametrize("language", LANGUAGES)
def test_markup_leaves_the_text_a_reader_sees(texts, language):
    made = edited(texts[language], "HTML noise", 0.5, language)
    assert made.format == "html"
    assert words(strip_html(made.text)) == words(texts[language])


def test_nouns_alone_are_inflected():
    made = edited("Старый город стоит у реки", "nouns inflected", 1.0, "ru")
    assert made.changed == 2
    kept = words(made.text)
    assert (kept[0], kept[2], kept[3]) == ("старый", "стоит", "у")
    assert kept[1] != "город"


@pytest.mark.parametrize(
    ("kind", "share", "language", "told"),
    [
        ("words replcaed", 0.1, "ru", "words replaced"),
        ("truncated", 1.5, "ru", "expected a number of 0 to 1"),
        ("truncated", 0.1, "fr", "fr"),
    ],
)
def test_a_wrong_request_is_told(kind, share, language, told):
    with pytest.raises(ConfigError, match=told):
        edited("текст", kind, share, language)


def test_every_kind_is_of_some_language():
    assert {kind for language in LANGUAGES for kind in kinds_of(language)} == set(KINDS)
