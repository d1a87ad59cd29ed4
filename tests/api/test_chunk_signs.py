"""Signs, digits, units, names and single letters keep chunks apart."""

import pytest

from shinglefold import fold_chunks

REST = (
    "the river and the market are closed while the old bridge waits for its new engine and a garden of stone "
    "where every letter that a teacher wrote during summer lies in some window of an island near our forest"
)
CHINESE = "员工每年享有带薪休假可以分段" * 3


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
        ("the loop ends when x ≤ limit of rows", "the loop ends when x ≥ limit of rows"),
        ("when p == q the loop ends at once", "when p != q the loop ends at once"),
        ("when p = q the loop ends at once", "when p ≠ q the loop ends at once"),
        (
            "Курсы программирования (C) с нуля для школьников",
            "Курсы программирования (C++) с нуля для школьников",
        ),
        (
            "Курсы программирования на C# с нуля для школьников",
            "Курсы программирования на C++ с нуля для школьников",
        ),
        ("Срочно нужна кровь Rh+ в больницу города", "Срочно нужна кровь Rh- в больницу города"),
        ("Срочно нужна кровь B− в больницу города", "Срочно нужна кровь B в больницу города"),
        ("Холодильник класса A+ с доставкой", "Холодильник класса A++ с доставкой"),
        ("Угол наклона 5′ к горизонту по прибору", "Угол наклона 5″ к горизонту по прибору"),
        *(
            (f"Take {one} of it: {REST}", f"Take {other} of it: {REST}")
            for one, other in zip("½⅓①❶𝟓", "¾⅔②❷𝟑", strict=True)
        ),
        (f"ХІ століття: {REST}", f"ХІХ століття: {REST}"),
        (f"{CHINESE}根据第五条规定,六天", f"{CHINESE}根据第六条规定,六天"),
        (f"{CHINESE}罚款三万元,两天", f"{CHINESE}罚款两万元,两天"),
        (f"more than USD 5 {REST}", f"less than USD 5 {REST}"),
        (f"more than about 5 {REST}", f"less than about 5 {REST}"),
        (f"at least around $5 {REST}", f"at most around $5 {REST}"),
        (f"не более примерно 5 {REST}", f"не менее примерно 5 {REST}"),
        (f"понад приблизно 5 {REST}", f"до приблизно 5 {REST}"),
        (f"{CHINESE}超过约5天", f"{CHINESE}少于约5天"),
        (f"a bar of 54 mm {REST}", f"a bar of 54 m {REST}"),
        (f"5 km, 1 kg, 2026 m {REST}", f"5.1.2026 {REST}"),
        (f"RTX 4090 {REST}", f"RTX 4080 {REST}"),
        (f"Press Ctrl. {REST}", f"Press Ａｌｔ. {REST}"),
        ("Вода", "Огонь"),
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
            "Курсы программирования на C++, быстро, с нуля, для школьников",
        ),
        # Capitals that begin sentences, in every way, and I and A are no names.
        (REST, f"«Also» it: {REST}! Then? Now; Here… It\nOnce\n---------- There. I said. A"),
        (CHINESE, f"{CHINESE}。Wiki可以！Blog可以？Forum"),
        (f"the iPhone, {REST}", f"the iPhone-cover, {REST}"),
        (f"vitamin c: {REST}", f"Vitamin C: {REST}"),
        # What the other one says too, or nothing of it.
        (f"repair it, {REST}", f"repair it, {REST}, not repair"),
        (REST, f"{REST}, do not smoke"),
        # As many words, and as large a part, as are just enough.
        (REST, " ".join(f"{word}x" if at % 5 == 1 else word for at, word in enumerate(REST.split()))),
        (REST, f"{' '.join(REST.split()[:5])} xyz"),
        (REST, "old bridge"),
    ],
)
def test_the_same_signs_and_none_fold(one, other):
    assert _folds(one, other)


def test_a_chunk_folds_under_the_first_one_that_contains_it_in_a_list_of_several_languages():
    words = REST.split()
    parts = [" ".join(words[begin:end]) for begin, end in ((0, 30), (10, 40), (12, 28))]
    given = [CHINESE, *parts, f"{CHINESE}可以"]
    found = fold_chunks([{"id": at, "text": text} for at, text in enumerate(given)])
    folded = {one["id"]: [source["id"] for source in one["sources"]] for one in found.chunks}
    assert folded == {0: [4], 1: [3], 2: []}
