from shinglefold.model.scheme import CanonOptions
from shinglefold.registry import language_class
from shinglefold.testing.languages.conformance import LanguageConformance


class TestStems(LanguageConformance):
    code = "be"


class TestWords(LanguageConformance):
    code = "be"
    options = CanonOptions("surface", drop_function_words=True)


def test_endings_come_off_and_function_words_go_on_request():
    language = language_class("be")(CanonOptions(drop_function_words=True))
    assert [language.canonical(word) for word in ("кнігамі", "кніга", "яшчэ", "лес")] == [
        "кніг",
        "кніг",
        None,
        "лес",
    ]
