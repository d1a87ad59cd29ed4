"""Words kept with their canonical forms."""

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.generated import texts

from shinglefold.canon import Canonicalizer
from shinglefold.canon.lexicon import Lexicon, StringLexicon
from shinglefold.errors import ConfigError, InputError


def forms(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    keys = chance.integers(1, 2**64, count, dtype=np.uint64)
    return keys, keys ^ np.uint64(0xFF), (keys % np.uint64(3)).astype(np.uint8)


def test_what_was_learned_is_found_and_nothing_else():
    lexicon = Lexicon()
    keys, values, repairs = forms(50_000)
    lexicon.learn(keys, values, repairs)
    found = lexicon.find(keys)
    assert found.known.all()
    assert (found.values == values).all()
    assert (found.repairs == repairs).all()
    assert not lexicon.find(forms(1_000, seed=1)[0]).known.any()


def test_keys_that_fall_into_one_slot_are_all_found():
    lexicon = Lexicon()
    keys = (np.arange(1, 500, dtype=np.uint64) << np.uint64(40)) | np.uint64(4095)
    lexicon.learn(keys, keys, np.zeros(len(keys), np.uint8))
    assert (lexicon.find(keys).values == keys).all()


def test_learning_twice_changes_nothing():
    lexicon = Lexicon()
    keys, values, repairs = forms(100)
    lexicon.learn(
        np.concatenate([keys, keys]), np.concatenate([values, values]), np.concatenate([repairs, repairs])
    )
    lexicon.learn(keys, values, repairs)
    assert len(lexicon) == 100


def test_it_never_holds_more_than_its_capacity():
    lexicon = Lexicon(capacity=1_000)
    for seed in range(20):
        lexicon.learn(*forms(700, seed))
        assert len(lexicon) <= 1_000
    lexicon.learn(*forms(5_000, seed=99))
    assert len(lexicon) <= 1_000


def test_a_tiny_lexicon_changes_no_token(scheme, canonicalizer):
    batch = list(texts(2_000, seed=5))
    tiny = Canonicalizer(scheme.languages, 16)
    assert (tiny.hash_batch(batch).hashes == canonicalizer.hash_batch(batch).hashes).all()
    assert len(tiny.lexicon) <= 16


def test_a_saved_lexicon_is_loaded_where_it_fits(tmp_path, scheme):
    batch = list(texts(500, seed=6))
    taught, fresh = (Canonicalizer(scheme.languages) for _ in range(2))
    expected = taught.hash_batch(batch).hashes
    taught.lexicon.save(tmp_path / "forms.npz")
    assert fresh.lexicon.load(tmp_path / "forms.npz")
    assert len(fresh.lexicon) == len(taught.lexicon)
    assert (fresh.hash_batch(batch).hashes == expected).all()
    assert len(fresh.lexicon) == len(taught.lexicon)


def test_a_lexicon_of_other_rules_or_a_damaged_one_is_not_loaded(tmp_path):
    lexicon = Lexicon(identity="one")
    lexicon.learn(*forms(10))
    lexicon.save(tmp_path / "forms.npz")
    assert not Lexicon(identity="two").load(tmp_path / "forms.npz")
    (tmp_path / "damaged.npz").write_bytes((tmp_path / "forms.npz").read_bytes()[:100])
    assert not Lexicon(identity="one").load(tmp_path / "damaged.npz")
    assert not Lexicon(identity="one").load(tmp_path / "missing.npz")


@pytest.mark.long
def test_a_saved_lexicon_of_which_any_byte_has_changed_is_not_loaded_or_the_same(tmp_path):
    keys, values, repairs = forms(4)
    lexicon, place = Lexicon(identity="one"), tmp_path / "forms.npz"
    lexicon.learn(keys, values, repairs)
    lexicon.save(place)
    whole = place.read_bytes()
    for at, byte in enumerate(whole):
        place.write_bytes(whole[:at] + bytes([byte ^ (0x01, 0x08, 0xFF)[at % 3]]) + whole[at + 1 :])
        found = Lexicon(identity="one")
        if found.load(place):
            assert (found.find(keys).values == values).all()


def test_a_file_of_other_arrays_is_not_loaded(tmp_path):
    keys, values, repairs = forms(4)
    square, place = keys.reshape(2, 2), tmp_path / "forms.npz"
    for saved in (
        (keys[0], values, repairs),
        (square, square, repairs.reshape(2, 2)),
        (keys, values[:3], repairs),
        (keys, values, np.array(list("abcd"))),
        (keys, values, repairs.astype(float)),
        (keys.astype(float), values, repairs),
    ):
        np.savez(
            place, identity=np.array("one"), **dict(zip(("keys", "values", "repairs"), saved, strict=True))
        )
        assert not Lexicon(identity="one").load(place)
    with place.open("wb") as file:
        np.save(file, keys)
    assert not Lexicon(identity="one").load(place)


def test_of_a_saved_lexicon_no_more_is_loaded_than_fits(tmp_path):
    keys, values, repairs = forms(100)
    lexicon, small = Lexicon(), Lexicon(capacity=64)
    lexicon.learn(keys, values, repairs)
    lexicon.save(tmp_path / "forms.npz")
    assert small.load(tmp_path / "forms.npz")
    found = small.find(keys)
    assert found.known.sum() == len(small) == 64
    assert (found.values == values)[found.known].all()


def test_saving_to_nowhere_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="can't be saved"):
        Lexicon().save(tmp_path / "no" / "such" / "folder.npz")


def test_a_save_that_fails_leaves_nothing_behind(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match="can't be saved"):
        Lexicon().save(tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_file_that_holds_something_else_is_not_replaced(tmp_path):
    place = tmp_path / "pages.jsonl"
    place.write_text('{"id": "1"}\n')
    with pytest.raises(InputError, match="holds something else, which would be lost"):
        Lexicon().save(place)
    assert place.read_text() == '{"id": "1"}\n'
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="holds something else"):
        Lexicon().save(tmp_path / "pipe")


def test_a_lexicon_that_does_not_fit_or_is_damaged_is_replaced(tmp_path):
    place = tmp_path / "forms.npz"
    for before in (b"", b"cut"):
        Lexicon(identity="one").save(place)
        place.write_bytes(place.read_bytes()[:100] if before else b"")
        Lexicon(identity="two").save(place)
        assert Lexicon(identity="two").load(place)


def test_words_forgotten_are_found_again(scheme):
    batches = [list(texts(200, seed)) for seed in range(3)]
    whole, tiny = Canonicalizer.of(scheme), Canonicalizer(scheme.languages, 50)
    for batch in [*batches, *batches]:
        assert tiny.text_batch(batch) == whole.text_batch(batch)


def test_a_capacity_below_one_is_refused():
    with pytest.raises(ConfigError, match="below 1"):
        Lexicon(capacity=0)


@pytest.mark.long
def test_threads_may_read_and_learn_together(scheme):
    shared = Canonicalizer(scheme.languages, 300)
    batches = [list(texts(300, seed)) for seed in range(4)]
    expected = [Canonicalizer(scheme.languages).hash_batch(batch).hashes for batch in batches]
    wrong: list[int] = []

    def work(number: int) -> None:
        answers = (shared.hash_batch(batches[number]).hashes for _ in range(5))
        wrong.extend(number for answer in answers if not np.array_equal(answer, expected[number]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert not wrong


def test_a_forked_worker_starts_with_what_the_parent_learned(scheme):
    parent = Canonicalizer(scheme.languages)
    batch = list(texts(300, seed=8))
    expected = parent.hash_batch(batch).hashes
    known = len(parent.lexicon)
    context = multiprocessing.get_context("fork")
    answer = context.Queue()

    def work() -> None:
        same = np.array_equal(parent.hash_batch(batch).hashes, expected)
        answer.put((len(parent.lexicon) == known, same, len(parent.hash_batch(["незнакомость"]).hashes)))

    child = context.Process(target=work)
    child.start()
    assert answer.get(timeout=60) == (True, True, 1)
    child.join(timeout=60)


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
