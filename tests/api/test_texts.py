"""Pairs and groups of texts, without an index."""

import tracemalloc
from time import process_time

import pytest

import shinglefold
from shinglefold.errors import ConfigError

NOTICE = "Мост через Каменку закроют на ремонт в понедельник, автобусы пустят в объезд."
REPRINT = "Мост через Каменку закрыли на ремонт в понедельник: автобусы пустят в объезд!"
OTHER = "В порту открыли выставку старых карт, вход свободный до конца мая."


def test_pairs_are_found_by_place():
    (pair,) = shinglefold.pairs([OTHER, NOTICE, REPRINT])
    assert (pair.a, pair.b) == (1, 2)
    assert 0 < pair.resemblance <= 1


def test_groups_hold_places_and_leave_single_texts_out():
    assert shinglefold.groups([NOTICE, OTHER, REPRINT, NOTICE]) == [[0, 2, 3]]
    assert shinglefold.groups([]) == []


@pytest.mark.long
def test_a_crowd_costs_groups_what_its_members_cost():
    """Not what its pairs cost, in memory where texts are equal, nor in time where they are nearly so."""
    tracemalloc.start()
    assert shinglefold.groups([NOTICE] * 4_000 + [REPRINT] * 4_000) == [list(range(8_000))]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200_000_000
    words = " ".join(f"слово{at}" for at in range(60))
    crowd = [f"{words} выпуск {number} страница {number * 7}" for number in range(500)]
    begin = process_time()
    assert shinglefold.groups(crowd) == [list(range(500))]
    of_groups, begin = process_time() - begin, process_time()
    assert len(shinglefold.pairs(crowd)) == 500 * 499 // 2
    assert 3 * of_groups < process_time() - begin


def test_two_texts_are_compared():
    assert shinglefold.compare(NOTICE, REPRINT).folds
    assert not shinglefold.compare(NOTICE, OTHER).folds


def test_a_similarity_of_its_own_decides():
    changed = NOTICE.replace("понедельник", "четверг").replace("автобусы", "трамваи")
    assert shinglefold.pairs([NOTICE, changed], similarity=0.6)
    assert not shinglefold.pairs([NOTICE, changed], similarity=0.95)


@pytest.mark.parametrize("given", [{"similarity": 2}, {"languages": "ru"}, {"languages": ["xx"]}])
def test_bad_arguments_are_refused(given):
    with pytest.raises(ConfigError):
        shinglefold.pairs([NOTICE], **given)


def test_one_string_is_no_list():
    with pytest.raises(ConfigError, match=r"give \[text\]"):
        shinglefold.pairs(NOTICE)
