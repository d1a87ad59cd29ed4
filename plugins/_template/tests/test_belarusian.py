from shinglefold.registry import language_class
from shinglefold.scheme import CanonOptions
from shinglefold.testing.language import LanguageConformance


class TestStems(LanguageConformance):
    code = "be"


class TestWords(LanguageConformance):
    code = "be"
    options = CanonOptions("surface", drop_function_words=False)


def test_endings_come_off_and_function_words_go():
    language = language_class("be")(CanonOptions())
    assert [language.canonical(word) for word in ("кнігамі", "кніга", "яшчэ", "лес")] == [
        "кніг",
        "кніг",
        None,
        "лес",
    ]
