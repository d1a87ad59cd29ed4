"""What is true of Russian, Ukrainian, Chinese, English and the language of the rest, and must stay so."""

import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.errors import SchemeMismatch
from shinglefold.model.scheme import CanonOptions, LanguageRef
from shinglefold.plugins.zh import simplified
from shinglefold.registry import language_class, load_languages, references

DROPPING = CanonOptions(drop_function_words=True)


def canonical(code, word, options=CanonOptions()):
    return language_class(code)(options).canonical(word)


def tokens(text, options=CanonOptions()):
    canonicalizer = Canonicalizer(references(["any", "en"], options))
    return [token.text for token in canonicalizer.tokens(text)]


@pytest.mark.parametrize(
    ("code", "form", "lemma"),
    [
        ("ru", "крышами", "крыша"),
        ("ru", "дети", "ребенок"),
        ("ru", "брюками", "брюки"),
        ("ru", "елок", "елка"),
        ("ru", "ежами", "еж"),
        ("ru", "пошел", "пойти"),
        ("ru", "красивейшие", "красивый"),
        ("uk", "книжками", "книжка"),
        ("uk", "діти", "дитина"),
        ("uk", "прийшов", "прийти"),
        ("uk", "об'єктами", "об'єкт"),
        ("uk", "грунту", "грунт"),
        ("uk", "ганками", "ганок"),
        ("uk", "гвинтів", "гвинт"),
    ],
)
def test_words_become_their_dictionary_form(code, form, lemma):
    """In Russian without yo, in Ukrainian the most frequent one."""
    assert canonical(code, form) == lemma


@pytest.mark.parametrize(("code", "other"), [("ru", "їжак"), ("uk", "объект"), ("en", "mp3s")])
def test_words_with_digits_or_other_letters_and_overlong_ones_stay_as_they_are(code, other):
    for word in (other, "абв1", "а" * 65, "a" * 65, "\ud800", "-", "'"):
        assert canonical(code, word) == word


@pytest.mark.parametrize(
    "kind", ["под", "чтобы", "лишь", "мы", "ах", "который", "наших", "ее", "все", "кое-кто"]
)
@pytest.mark.parametrize("mode", ["lemma", "stem", "surface"])
def test_prepositions_conjunctions_particles_pronouns_and_interjections_are_dropped_on_request(kind, mode):
    assert canonical("ru", kind, CanonOptions(mode, drop_function_words=True)) is None
    assert canonical("ru", kind, CanonOptions(mode)) is not None


@pytest.mark.parametrize("mode", ["lemma", "stem", "surface"])
def test_adjectives_are_dropped_only_on_request(mode):
    assert canonical("ru", "красивыми", CanonOptions(mode, drop_adjectives=True)) is None
    assert canonical("ru", "красив", CanonOptions(mode, drop_adjectives=True)) is None
    assert canonical("ru", "красивыми", CanonOptions(mode)) is not None


def test_adjectives_go_without_function_words_going():
    options = CanonOptions(drop_adjectives=True)
    assert [canonical("ru", word, options) for word in ("под", "серой", "крышей")] == ["под", None, "крыша"]


def test_pronouns_that_decline_as_adjectives_stay_with_the_other_function_words():
    assert canonical("ru", "наших") == "наш"


def test_stems_cut_endings_and_surface_keeps_them():
    assert (
        canonical("ru", "крышами", CanonOptions("stem"))
        == canonical("ru", "крыша", CanonOptions("stem"))
        == "крыш"
    )
    assert canonical("ru", "крышами", CanonOptions("surface")) == "крышами"


def test_all_function_words_are_found_with_yo_written_either_way():
    canonicalizer = Canonicalizer(references(["any", "ru"], DROPPING))
    assert canonicalizer.tokens("ещё её моё всё", "ru") == canonicalizer.tokens("еще ее мое все", "ru")


def test_russian_and_ukrainian_analyzers_live_in_one_process():
    russian, ukrainian = (language_class(code)(DROPPING) for code in ("ru", "uk"))
    for _ in range(2):
        assert (russian.canonical("который"), russian.canonical("стол")) == (None, "стол")
        assert (ukrainian.canonical("який"), ukrainian.canonical("столами")) == (None, "стіл")


# Written by hand, not taken from the plugin: what an editor adds or leaves out without changing the sense.
FUNCTION_WORDS = """
і й та але або чи бо що щоб якщо хоча коли як ніж тому адже отже
в у на з із зі до від за для без при про під над між через після перед біля крім серед
не ні ж же б би хай нехай навіть лише тільки саме ось теж також ще вже немає нема
я ти він вона воно ми ви вони мене тебе його її їх мій твій наш ваш свій їхній цей той такий весь
хто який чий скільки хтось щось ніхто ніщо ой ох
"""


@pytest.mark.parametrize("mode", ["lemma", "surface"])
def test_function_words_are_found_though_the_first_reading_is_arbitrary(mode):
    language = language_class("uk")(CanonOptions(mode, drop_function_words=True))
    kept = [word for word in FUNCTION_WORDS.split() if language.canonical(word) is not None]
    assert kept == []


def test_function_words_stay_unless_asked_to_go():
    language = language_class("uk")(CanonOptions())
    assert [word for word in FUNCTION_WORDS.split() if language.canonical(word) is None] == []


def test_there_is_no_ukrainian_stemmer_so_stem_means_surface():
    assert language_class("uk").mode_for("stem") == "surface"
    assert canonical("uk", "книжками", CanonOptions("stem")) == "книжками"


@pytest.mark.parametrize("mode", ["lemma", "surface"])
def test_adjectives_are_dropped_only_on_request_and_participles_never(mode):
    assert canonical("uk", "гарними", CanonOptions(mode, drop_adjectives=True)) is None
    assert canonical("uk", "гарними", CanonOptions(mode)) is not None
    assert canonical("uk", "написаними", CanonOptions(mode, drop_adjectives=True)) is not None


def test_every_apostrophe_reaches_the_dictionary():
    canonicalizer = Canonicalizer(references(["any", "uk"]))
    for apostrophe in "'’ʼ`‘":
        tokens = canonicalizer.tokens(f"сім{apostrophe}ями", "uk")
        assert [token.text for token in tokens] == ["сім'я"]


def test_ghe_with_upturn_is_found_with_either_letter():
    canonicalizer = Canonicalizer(references(["any", "uk"]))
    for with_upturn, without in (("ґрунтами", "грунтами"), ("Ґанок", "ганку"), ("ґудзики", "гудзиком")):
        assert [t.text for t in canonicalizer.tokens(with_upturn, "uk")] == [
            t.text for t in canonicalizer.tokens(without, "uk")
        ]


def test_what_was_stored_by_the_first_rules_is_still_made_by_them():
    reference = LanguageRef("uk", language_class("uk").version().replace("2+", "1+", 1))
    (first,) = load_languages([reference])
    assert first.version() == reference.version
    assert first.canonical("людині") == "людинь"
    assert canonical("uk", "людині") == "людина"
    with pytest.raises(SchemeMismatch):
        load_languages([LanguageRef("uk", language_class("uk").version().replace("2+", "0+", 1))])


@pytest.fixture(scope="module")
def table():
    return simplified()


def test_the_table_has_thousands_of_single_characters_and_is_final_at_once(table):
    assert len(table) > 4000
    assert all(len(character) == 1 for character in table.values())
    assert not {ord(character) for character in table.values()} & table.keys()


@pytest.mark.parametrize(
    ("traditional", "expected"),
    [
        ("開放中文轉換", "开放中文转换"),
        ("裡裏", "里里"),
        ("為爲", "为为"),
        ("說説", "说说"),
        ("眾衆", "众众"),
        ("著", "着"),
        ("甚麼", "什么"),
        ("妳", "你"),
        ("頭髮出發", "头发出发"),
        ("衞敍糭", "卫叙粽"),
    ],
)
def test_traditional_regional_and_variant_forms_fold_to_one(table, traditional, expected):
    assert traditional.translate(table) == expected


def test_simplified_text_stays_as_it_is(table):
    text = "我们的软件可以在计算机上运行后里面发干台么云只松"
    assert text.translate(table) == text


def test_function_characters_are_few_simplified_and_dropped_on_request(table):
    language, keeping = (
        language_class("zh")(CanonOptions(drop_function_words=drop)) for drop in (True, False)
    )
    characters = [chr(code) for code in range(0x4E00, 0xA000)]
    dropped = [character for character in characters if language.canonical(character) is None]
    assert 20 <= len(dropped) <= 30
    assert not {ord(character) for character in dropped} & table.keys()
    assert all(keeping.canonical(character) == character for character in dropped)


def test_traditional_function_characters_are_dropped_too():
    options = CanonOptions(drop_function_words=True)
    tokens = Canonicalizer(references(["any", "zh"], options)).tokens("貓與狗嗎", "zh")
    assert [token.text for token in tokens] == ["猫", "狗"]
    assert [token.start for token in tokens] == [0, 2]


def test_lemma_falls_to_stem_because_there_is_no_dictionary():
    assert language_class("en").mode_for("lemma") == "stem"
    assert tokens("connections connected") == ["connect", "connect"]


@pytest.mark.parametrize("mode", ["stem", "surface"])
def test_function_words_are_dropped_on_request_in_every_mode(mode):
    text = "It's not for us, but of the others: oh!"
    assert tokens(text, CanonOptions(mode, drop_function_words=True)) == []
    assert len(tokens("not for us", CanonOptions(mode))) == 3


def test_possessives_fold_with_their_noun():
    assert tokens("the dogs’ bone, the dog's bone, dog bone", DROPPING) == ["dog", "bone"] * 3


def test_accented_words_are_stemmed_with_their_accents():
    assert tokens("cafés") == ["café"]


def test_any_takes_words_of_every_script_and_drops_nothing():
    canonicalizer = Canonicalizer(references(["any"]))
    found = [token.text for token in canonicalizer.tokens("The ΚΑΛΗΜΈΡΑ и გამარჯობა 42")]
    assert found == ["the", "καλημέρα", "и", "გამარჯობა", "42"]
