"""Facts tell apart what is alike otherwise, however they are written."""

import time

import pytest

from shinglefold.canon.facts import fact_set, facts_of

#: Pairs of equal facts: grouping, fractions, units, models, moved sentences.
SAME = [
    *(
        (f"цена {one} грн", f"цена {other} грн")
        for one in ("1 500", "1\u00a0500", "1,500", "1.500", "1'500", "1’500")
        for other in ("1500", "1\u2009500")
    ),
    ("1 000 000 просмотров", "1000000 просмотров"),
    ("1,500.50 руб", "1 500,50 ₽"),
    ("iPhone 14 128 ГБ", "iPhone 14, 128 ГБ"),
    ("128 ГБ памяти", "128GB памяти"),
    ("школа №5", "школа № 5"),
    ("Galaxy A52", "Galaxy А52"),
    ("Galaxy S23, 128", "Galaxy S\u200b23, 1\u00ad28"),
    ("дрель ДУ-650", "дрель ду650"),
    ("1.5 л", "1,5 л"),
    ("5,0 мг", "5 мг"),
    ("в 9:00", "в 09:00"),
    ("до +15", "до 15"),
    ("12×40 см", "12 х 40 см"),
    ("12x40 см", "12*40 см"),
    ("1 м ткани", "1м ткани"),
    *((f"квартира {one}, рядом парк", "квартира 54 м², рядом парк")
      for one in ("54 кв. м", "54 кв.м.", "54 м2", "54 m²", "54кв.м", "54 квадратных метра", "54 м^2")),
    ("面积54平方米", "面积54平米"),
    ("размер 42, чёрные", "чёрные, 42 размер"),
    ("X5 128 ГБ", "128 ГБ X5"),
    ("10–14 часов", "с 10 до 14 ч"),
    ("в 2020 г.", "в 2020 году"),
    ("Первый абзац о 5 домах.\n\nВторой о 7 реках.", "Второй о 7 реках.\n\nПервый абзац о 5 домах."),
    ("Дом 5. Река 7.", "Река 7. Дом 5."),
    ("３８ 码", "38 码"),
    ("рост ≥ веса", "рост >= веса"),
    ("Том II", "Том 2"),
    ("ХІХ век", "XIX век"),
    ("XX–XXI века", "20–21 века"),
    ("第三册", "第3册"),
    ("第二十五届", "第 25 届"),
    ("一百二十元", "120 元"),
    ("两千零二十六人", "2026人"),
    ("二〇二六年", "2026年"),
    ("三万五千人", "35000人"),
    ("размер 7½", "размер 7.5"),
    ("½ литра", "0,5 литра"),
    ("一起去，十分好，万一", "去，好"),
    ("p ≠ q", "p != q"),
    ("Главная > Обувь > Кроссовки", "Главная / Обувь / Кроссовки"),
    ("Ура!== конец ==", "Ура! конец"),
    ("<- назад -> далее => итог <= 5", "назад, далее, итог <= 5"),
    ("без чисел \ud800", "совсем без чисел"),
]  # fmt: skip
#: Pairs of different facts.
OTHER = [
    ("счёт 3:1", "счёт 1:3"),
    ("по 0,5 мг", "по 5,0 мг"),
    ("по 0,5 мг утром и 5 мг вечером", "по 5 мг утром и 0,5 мг вечером"),
    ("ночью +15", "ночью −15"),
    ("ночью 15", "ночью -15"),
    ("12×40", "40×12"),
    ("12 рядов по 40", "40 рядов по 12"),
    ("12 кг, 5 шт", "5 кг, 12 шт"),
    ("8 (495) 123-45-67", "8 (495) 123-67-45"),
    ("8 495 1234567", "8 495 1236745"),
    ("5 мг", "5 г"),
    ("54 м", "54 м²"),
    ("54 м²", "54 м³"),
    (">= 5", "< 5"),
    (">= нормы", "< нормы"),
    ("рост ≥ веса", "рост ≤ веса"),
    ("рост < веса", "рост > веса"),
    ("если a >= b, то c < d", "если a < b, то c >= d"),
    ("p ≠ q", "p = q"),
    ("Том II", "Том III"),
    ("Том I", "Том II"),
    ("第三册", "第四册"),
    ("三十五个座位", "五十三个座位"),
    ("размер 7½", "размер 7"),
    ("размер 7½", "размер 7⅓"),
    ("x != 5", "x = 5"),
    ("1000", "1 000 000"),
    ("1 500", "1 600"),
    ("1500", "15"),
    ("1500", "15,00"),
    ("A52", "B52"),
    ("ДУ-650", "ПР-650"),
    ("S23", "S23+"),
    ("X12", "X12 Pro 13"),
    ("1.5", "15"),
    ("3.10", "3.1"),
    ("2026", "2025"),
    ("12.05.2026", "05.12.2026"),
]
#: Sizes and single letters: equal and different.
LETTERS_SAME = [
    ("размер XL", "Размер: XL."),
    ("размер М", "размер M"),
    ("a cat", "the cat"),
    ("в с к", "у о а"),
]
LETTERS_OTHER = [
    ("размер XL", "размер XXL"),
    ("размер S", "размер M"),
    ("язык C++", "язык C#"),
    ("язык C", "язык C++"),
    ("класс A+++", "класс A"),
    ("кровь B+", "кровь B−"),
    ("витамин B", "витамин D"),
    ("батарейка AA", "батарейка AAA"),
    ("кабель USB-A", "кабель USB-C"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_number_is_the_same_however_it_is_written(one, other):
    assert fact_set(one) == fact_set(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_another_number_is_another_fact(one, other):
    assert fact_set(one) != fact_set(other)


def test_sizes_and_letters_are_facts_of_their_own():
    for one, other in LETTERS_SAME:
        assert fact_set(one, ["letters"]) == fact_set(other, ["letters"]), (one, other)
    for one, other in LETTERS_OTHER:
        assert fact_set(one, ["letters"]) != fact_set(other, ["letters"]), (one, other)
        assert fact_set(one, []) == fact_set(other, []) == frozenset()


#: Names: equal and different.
NAMES_SAME = [
    ("Мэр открыл школу в Заречном районе", "Мэр в Заречный район"),
    ("Кроссовки Волна Стиль", "КРОССОВКИ «Волна Стиль»"),
    ("Цвет: Чёрный, размер 42", "размер 42, цвет: чёрный"),
    ("Смотрите. Новый дом", "Новый дом. Смотрите"),
    ("Vector HD-650 hammer drill", "Hammer drill Vector HD-650"),
]
NAMES_OTHER = [
    ("Мэр открыл школу в Заречном районе", "Мэр открыл школу в Октябрьском районе"),
    ("Кофеварка Гранит чёрная", "Кофеварка Базальт чёрная"),
    ("house in Garden Street", "house in Forest Street"),
    ("市长为河西区新学校揭牌", "市长为城东区新学校揭牌"),
]


def test_names_are_facts_of_their_own():
    for one, other in NAMES_SAME:
        assert fact_set(one, ["names"]) == fact_set(other, ["names"]), (one, other)
    for one, other in NAMES_OTHER:
        assert fact_set(one, ["names"]) != fact_set(other, ["names"]), (one, other)


def test_a_hash_covers_words_and_stated_values():
    texts = ["S23 128", "128, S23", "S23 256", ""]
    made = facts_of(texts, ["numbers"])
    assert len(set(made)) == 3
    assert made[0] == made[1]
    assert {len(one) for one in made} == {11}
    stated = facts_of(["a"] * 4, [], [["size=1 м"], ["size=1м"], ["size=1М"], ["size=2 м"]])
    assert stated[0] == stated[1] == stated[2] != stated[3]


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "7",
        "7 ",
        " ",
        ".",
        "5-",
        "м2",
        "1,5;",
        "кв. ",
        "\n",
        "5    ",
        ">=",
        "< ",
        "XL ",
        "XI",
        "十",
        "万",
        "½",
    ],
)
def test_no_text_takes_more_than_linear_time(piece):
    start = time.process_time()
    facts_of([piece * (200_000 // len(piece)) + "7"], ["numbers", "letters", "names"])
    assert time.process_time() - start < 3
