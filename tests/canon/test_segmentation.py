import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.generated import texts
from support.reference import plain, words
from support.servers.choose import examples

from shinglefold.canon.segmentation import LONGEST_WORD, Tables, segment
from shinglefold.canon.unicode_tables import CODE_POINTS, UNIT, WORD, characters

TABLES = Tables(characters().kind, np.zeros(CODE_POINTS, np.uint32))


def segmented(text: str) -> list[str]:
    return list(segment([text], TABLES).words())


@pytest.mark.long
def test_like_the_reference_on_generated_texts():
    for text in map(plain, texts(3_000, seed=7)):
        assert segmented(text) == words(text), repr(text)


@given(st.text(max_size=60).map(plain))
@settings(max_examples=examples(300), deadline=None)
def test_like_the_reference_on_any_text(text):
    assert segmented(text) == words(text)


def test_letters_that_fold_to_one_are_of_one_script():
    facts = characters()
    letters = np.flatnonzero(facts.kind & (WORD | UNIT))
    scripts = {}
    for fold, script in zip(facts.fold[letters].tolist(), facts.script[letters].tolist(), strict=True):
        scripts.setdefault(fold, set()).add(script)
    assert [chr(fold) for fold, found in scripts.items() if len(found) > 1] == []


def test_apostrophes_join_letters_and_nothing_else():
    assert segmented("'м’ята' 'n' dogs' o''k") == ["м'ята", "n", "dogs", "o", "k"]


def test_a_chinese_character_is_a_token_of_its_own():
    assert segmented("學Python3和C") == ["學", "python3", "和", "c"]


def test_a_run_longer_than_any_word_is_left_out():
    assert segmented("a " + "b" * (LONGEST_WORD + 1) + " " + "c" * LONGEST_WORD) == ["a", "c" * LONGEST_WORD]


def test_keys_are_equal_for_equal_words_only():
    segments = segment(["слово дело слово", "слово"], TABLES)
    first, second, third, fourth = segments.keys.tolist()
    assert first == third == fourth != second


@pytest.mark.long
def test_keys_do_not_collide_over_a_million_words():
    numbers = [f"{n:x}" for n in range(200_000)] + [f"ы{n:x}ж" for n in range(200_000)]
    keys = segment([" ".join(numbers)], TABLES).keys
    assert len(np.unique(keys)) == len(numbers)
