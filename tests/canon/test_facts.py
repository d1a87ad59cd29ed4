"""Words with digits tell apart what is alike otherwise, where that is asked for."""

import numpy as np
import pytest

from shinglefold.errors import ConfigError
from shinglefold.ingest import Fingerprinter
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldOptions
from shinglefold.rerank.similar import SimilarOptions
from shinglefold.scheme import Decision
from shinglefold.sketch import facts_of, numbers_of

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
    with pytest.raises(ConfigError, match="say verify text"):
        Decision(verify="signature", facts="numbers")
    with pytest.raises(ConfigError, match="facts"):
        Decision(facts="names")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match='add "verify": "text"'):
        FoldOptions(facts="numbers")
    with pytest.raises(ConfigError, match="say verify text"):
        SimilarOptions(facts="numbers", min_resemblance=0.7)
