"""Signs and single letters keep chunks apart."""

import pytest

from shinglefold import fold_chunks


def _folds(one, other):
    return len(fold_chunks([{"text": one}, {"text": other}]).chunks) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Условие выполняется, если a < b в каждой строке",
            "Условие выполняется, если a > b в каждой строке",
        ),
        ("if (a<b) return the first row of the table", "if (a>b) return the first row of the table"),
        ("the loop ends when x <= limit of rows", "the loop ends when x >= limit of rows"),
        ("when p == q the loop ends at once", "when p != q the loop ends at once"),
        (
            "Курсы программирования на C с нуля для школьников",
            "Курсы программирования на C++ с нуля для школьников",
        ),
        (
            "Курсы программирования на C# с нуля для школьников",
            "Курсы программирования на C++ с нуля для школьников",
        ),
        ("Срочно нужна кровь Rh+ в больницу города", "Срочно нужна кровь Rh- в больницу города"),
        ("Угол наклона 5′ к горизонту по прибору", "Угол наклона 5″ к горизонту по прибору"),
    ],
)
def test_other_signs_are_other_facts(one, other):
    assert not _folds(one, other)
    assert not _folds(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Главная > Обувь > Кроссовки мужские, все размеры",
            "Главная / Обувь / Кроссовки мужские, все размеры",
        ),
        ("a <b>bold</b> word in the middle of the text", "a bold word in the middle of the text"),
        (
            "Курсы программирования на C++ с нуля для школьников",
            "Курсы программирования на C++, с нуля, для школьников",
        ),
    ],
)
def test_the_same_signs_and_none_fold(one, other):
    assert _folds(one, other)
