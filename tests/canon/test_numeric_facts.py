"""Words with digits tell apart what is alike otherwise, where that is asked for."""

import time

import numpy as np
import pytest

from shinglefold.canon.numeric_facts import facts_of, numbers_of
from shinglefold.errors import ConfigError
from shinglefold.ingest import Fingerprinter
from shinglefold.model.scheme import Decision
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldOptions
from shinglefold.rerank.similar import SimilarOptions

CARD = "Смартфон Samsung Galaxy S23 на 128 ГБ, чёрный, две камеры, экран шесть дюймов, доставка завтра"


@pytest.fixture(scope="module")
def scheme():
    return make_scheme()


def _folds(scheme, *texts):
    pairs = Fingerprinter(scheme).fingerprint_arrays(list(texts)).pairs(scheme)
    return len(pairs.a) > 0


def test_numbers_are_found_in_any_script_width_and_case():
    assert numbers_of("Galaxy S23, 128ГБ, ２５６ и x86_64") == {"s23", "128", "256", "x86", "64"}
    assert numbers_of("男士跑步鞋黑色42码") == {"42"}
    assert numbers_of("без чисел \ud800") == frozenset()
    assert len(np.unique(facts_of(["S23 128", "128 s23 128", "S23 256", ""]))) == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("цена 1 500 грн", "цена 1500 грн"),
        ("за 1\u00a0500 ₽", "за 1,500 ₽"),
        ("1 000 000 просмотров", "1000000 просмотров"),
        ("iPhone 14 128 ГБ", "iPhone 14, 128 ГБ"),
        ("школа №5", "школа № 5"),
        ("Galaxy A52", "Galaxy А52"),
        ("Galaxy S23, 128", "Galaxy S\u200b23, 1\u00ad28"),
        ("1.5 л", "1,5 л"),
    ],
)
def test_a_number_is_the_same_however_it_is_written(one, other):
    assert numbers_of(one) == numbers_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1000", "1 000 000"),
        ("1 500", "1 600"),
        ("1500", "15"),
        ("A52", "B52"),
        ("1.5", "15"),
        ("2026", "2025"),
    ],
)
def test_another_number_is_another_fact(one, other):
    assert numbers_of(one) != numbers_of(other)


def test_long_runs_of_letters_or_digits_take_no_time():
    start = time.process_time()
    assert numbers_of("a" * 300_000) == frozenset()
    assert len(numbers_of("7" * 300_000)) == 100_000
    assert time.process_time() - start < 5


def test_other_numbers_part_what_is_alike_and_other_words_do_not(scheme):
    strict = scheme.with_options(facts="numbers")
    other, same = CARD.replace("128", "256"), CARD.replace("завтра", "сегодня")
    assert _folds(scheme, CARD, other)
    assert not _folds(strict, CARD, other)
    assert _folds(strict, CARD, same)
    assert _folds(strict, CARD, CARD)
    assert strict.id == scheme.id


def test_a_text_too_long_to_be_compared_is_told_apart_by_its_numbers(scheme):
    strict = scheme.with_options(facts="numbers")
    long = " ".join(f"word{at}".translate(str.maketrans("0123456789", "abcdefghij")) for at in range(21_000))
    assert _folds(strict, long, f"{long} another")
    assert not _folds(strict, long, f"{long} 7")


def test_facts_want_texts():
    with pytest.raises(ConfigError, match="set verify to text"):
        Decision(verify="signature", facts="numbers")
    with pytest.raises(ConfigError, match="facts"):
        Decision(facts="names")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match='add "verify": "text"'):
        FoldOptions(facts="numbers")
    with pytest.raises(ConfigError, match="set verify to text"):
        SimilarOptions(facts="numbers", min_resemblance=0.7)
