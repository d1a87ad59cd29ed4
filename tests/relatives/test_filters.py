"""What every filter promises: it never denies what it holds, on disk or in memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sketches import words_of_a_text

from shinglefold.errors import ConfigError, InputError
from shinglefold.relatives.bloom import ClassicFilter, CountingFilter, MatrixFilter, PseudoMatrixFilter, Shape

SETS = [ClassicFilter, CountingFilter]
shapes = st.builds(Shape.of, st.integers(1, 50), st.floats(0.001, 0.5))
sets_of_elements = words_of_a_text().map(np.unique)


def drawn(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, count, np.uint64)


@pytest.mark.parametrize("kind", SETS)
@given(shape=shapes, parts=st.lists(words_of_a_text(), max_size=4))
def test_a_filter_never_denies_what_it_holds_however_full(kind, shape, parts):
    filled = kind(shape)
    for part in parts:
        filled.add(part)
    assert all(filled.contains(part).all() for part in parts)


@given(shapes, st.lists(sets_of_elements, max_size=4))
def test_a_matrix_never_denies_what_a_document_holds(shape, parts):
    filled = MatrixFilter(shape)
    kept = {str(at): part[: shape.elements] for at, part in enumerate(parts)}
    for name, part in kept.items():
        filled.insert(name, part)
    for name, part in kept.items():
        assert filled.counts(part)[name] == len(part)


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("rate", [0.05, 0.01])
def test_strangers_are_taken_for_its_own_as_often_as_it_was_made_for(kind, rate):
    shape = Shape.of(20_000, rate)
    filled = kind(shape)
    filled.add(drawn(20_000))
    taken = filled.contains(drawn(100_000, seed=1)).mean()
    assert abs(taken - shape.rate(20_000)) < 5 * np.sqrt(rate / 100_000)
    assert taken < rate * 1.1


def test_the_size_is_the_literature_s():
    shape = Shape.of(123_000, 0.05)
    assert (shape.bits, shape.hashes) == (766_933, 4)


@given(shapes, words_of_a_text(), words_of_a_text())
def test_what_is_taken_out_of_a_counting_filter_leaves_the_rest(shape, kept, gone):
    filled = CountingFilter(shape)
    filled.add(kept)
    filled.add(gone)
    filled.remove(gone)
    assert filled.contains(kept).all()
    only = CountingFilter(shape)
    only.add(kept)
    strangers = drawn(200)
    assert np.array_equal(filled.contains(strangers), only.contains(strangers))


def test_a_full_counter_stays_full_so_that_nothing_held_is_denied():
    filled = CountingFilter(Shape.of(10, 0.1))
    element = drawn(1)
    filled.add(np.repeat(element, 1_000))
    filled.remove(np.repeat(element, 999))
    assert filled.contains(element).all()


def test_what_was_never_taken_in_is_not_taken_out():
    filled = CountingFilter(Shape.of(10, 0.1))
    filled.add(drawn(3))
    with pytest.raises(KeyError):
        filled.remove(drawn(4))
    assert filled.contains(drawn(3)).all()


@given(sets_of_elements, sets_of_elements)
def test_a_document_deleted_from_a_matrix_leaves_nothing(one, other):
    filled = MatrixFilter(Shape.of(60, 0.05))
    filled.insert("one", one)
    filled.insert("other", other)
    filled.delete("one")
    assert filled.counts(one).keys() == {"other"}
    filled.insert("third", other)
    fresh = MatrixFilter(Shape.of(60, 0.05))
    fresh.insert("third", other)
    assert filled.counts(one)["third"] == fresh.counts(one)["third"]


def test_a_matrix_says_what_it_can_t_take():
    filled = MatrixFilter(Shape.of(10, 0.05))
    filled.insert("one", drawn(5))
    with pytest.raises(ConfigError, match="delete it first"):
        filled.insert("one", drawn(5))
    with pytest.raises(ConfigError, match="pseudo-matrix"):
        filled.insert("long", drawn(11))


@pytest.mark.parametrize(("elements", "rate"), [(0, 0.1), (5, 0.0), (5, 1.0), (10**9, 0.001)])
def test_impossible_shapes_are_refused(elements, rate):
    with pytest.raises(ConfigError):
        Shape.of(elements, rate)


def filters() -> list:
    made = [kind(Shape.of(50, 0.05)) for kind in SETS]
    for one in made:
        one.add(drawn(50))
    for kind in (MatrixFilter, PseudoMatrixFilter):
        rows = kind(Shape.of(50, 0.05))
        for at in range(70):
            rows.insert(f"документ {at}", drawn(50, at))
        made.append(rows)
    return made


def answers(one) -> list:
    if isinstance(one, MatrixFilter):
        return sorted(one.counts(drawn(50, 3)).items())
    if isinstance(one, PseudoMatrixFilter):
        return [*one.counts(drawn(50, 3)).tolist(), *sorted(one.shares(drawn(50, 3)).items())]
    return one.contains(drawn(500)).tolist()


@pytest.mark.parametrize("one", filters(), ids=lambda one: type(one).__name__)
def test_a_filter_read_again_answers_as_before_and_can_be_changed(one, tmp_path):
    one.save(tmp_path / "filter")
    again = type(one).load(tmp_path / "filter")
    assert answers(again) == answers(one)
    if hasattr(again, "insert"):
        again.insert("new", drawn(50, 99))
        one.insert("new", drawn(50, 99))
    else:
        again.add(drawn(9, 99))
        one.add(drawn(9, 99))
    assert answers(again) == answers(one)
    again.save(tmp_path / "filter")
    assert answers(type(one).load(tmp_path / "filter")) == answers(one)


@pytest.mark.parametrize("one", filters(), ids=lambda one: type(one).__name__)
def test_a_changed_byte_on_disk_is_detected(one, tmp_path):
    path = tmp_path / "filter"
    one.save(path)
    whole = path.read_bytes()
    chance = np.random.default_rng(5)
    for at in [0, 8, 16, 30, 4095, 4096, len(whole) - 1, *chance.integers(0, len(whole), 25).tolist()]:
        changed = bytearray(whole)
        changed[at] ^= 1 << int(chance.integers(8))
        path.write_bytes(changed)
        with pytest.raises(InputError):
            answers(type(one).load(path))


@pytest.mark.parametrize("one", filters(), ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("length", [0, 10, 100, -1, None])
def test_a_file_of_another_length_is_detected(one, length, tmp_path):
    path = tmp_path / "filter"
    one.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0" if length is None else whole[:length])
    with pytest.raises(InputError):
        answers(type(one).load(path))


def test_a_filter_of_another_kind_is_told_by_its_name(tmp_path):
    ClassicFilter(Shape.of(5, 0.1)).save(tmp_path / "filter")
    with pytest.raises(InputError, match="a classic filter, not a matrix one"):
        MatrixFilter.load(tmp_path / "filter")
    with pytest.raises(InputError, match="cannot read a filter"):
        MatrixFilter.load(tmp_path / "none")
