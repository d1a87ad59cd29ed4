"""Canonical words by key: each key its own word, whatever is forgotten, by whichever thread or process."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from shinglefold.canon.lexicon import StringLexicon


def _keys(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint64)


def _word(key: int) -> str:
    """A word of each key; those of every seventh are dropped."""
    return f"word{key}" if key % 7 else ""


def _told(strings: StringLexicon, keys: np.ndarray, asked: list[int] | None = None) -> list[str]:
    def words(places: np.ndarray) -> list[str]:
        wanted = keys[places].tolist()
        if asked is not None:
            asked.extend(wanted)
        return [_word(key) for key in wanted]

    numbers, said = strings.find_or_learn(keys, words)
    assert [number == 0 for number in numbers.tolist()] == [not _word(key) for key in keys.tolist()]
    return said[numbers].tolist()


def test_each_word_is_asked_for_once():
    strings, asked = StringLexicon(100), []
    for keys in (_keys(3, 7, 3, 12), _keys(12, 14, 3), _keys()):
        assert _told(strings, keys, asked) == [_word(key) for key in keys.tolist()]
    assert asked == [3, 7, 12, 14]


def test_words_that_were_told_are_not_asked_for():
    strings, asked = StringLexicon(100), []
    strings.learn(_keys(5, 7, 9), ["word5", "", "word9"])
    strings.learn(_keys(9, 11), ["another", "word11"])
    assert _told(strings, _keys(11, 9, 7, 5, 9), asked) == ["word11", "word9", "", "word5", "word9"]
    assert asked == []


@pytest.mark.parametrize("capacity", [1, 2, 5, 50])
def test_what_does_not_fit_is_forgotten_and_every_block_told_whole(capacity):
    strings = StringLexicon(capacity)
    for begin in range(0, 300, 20):
        keys = _keys(*range(begin + 1, begin + 31), begin + 1)
        assert _told(strings, keys) == [_word(key) for key in keys.tolist()]
        strings.learn(keys[:10] + np.uint64(1000), [_word(key + 1000) for key in keys[:10].tolist()])


def test_threads_that_learn_at_once_get_their_own_words():
    strings = StringLexicon(3_000)
    random = np.random.default_rng(5)
    blocks = [random.integers(1, 6_000, 400).astype(np.uint64) for _ in range(300)]
    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(lambda keys: _told(strings, keys), blocks))
    assert told == [[_word(key) for key in keys.tolist()] for keys in blocks]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes can be forked here")
def test_a_process_forked_while_words_are_learned_learns_its_own():
    strings = StringLexicon(100)
    assert _told(strings, _keys(1, 2)) == ["word1", "word2"]
    with strings.kept._lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if _told(strings, _keys(2, 3)) == ["word2", "word3"] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
