"""What is true of Chinese and must stay so."""

import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.model.scheme import CanonOptions
from shinglefold.plugins.zh import simplified
from shinglefold.registry import language_class, references


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
