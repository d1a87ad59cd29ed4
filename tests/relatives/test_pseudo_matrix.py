"""The pseudo-matrix: placement, deletion, compaction."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from shinglefold.errors import ConfigError
from shinglefold.relatives.bloom import PseudoMatrixFilter, Shape, pseudo_matrix_rows
from shinglefold.relatives.bloom.pseudo_matrix import place

CAPACITY = 40


def elements_of(name: str) -> np.ndarray:
    """A document's elements, all its own: its name is its number and its length."""
    number, length = map(int, name.split(":"))
    drawn = np.random.default_rng(number).integers(0, 2**64, length, np.uint64)
    # A text comes back to what it said before.
    return np.concatenate((drawn, drawn[: length // 3]))


class Changed(RuleBasedStateMachine):
    """Documents come and go, rows are compacted: whatever is in is found where the indexes say it is."""

    whole = True

    def __init__(self):
        super().__init__()
        self.filter = PseudoMatrixFilter(Shape.of(CAPACITY, 0.05), self.whole)
        self.number = 0
        self.names: list[str] = []
        self.steps = None

    @rule(length=st.integers(0, 3 * CAPACITY))
    def insert(self, length):
        self.number += 1
        name = f"{self.number}:{length}"
        self.filter.insert(name, elements_of(name))
        self.names.append(name)

    @precondition(lambda self: self.names)
    @rule(data=st.data())
    def delete(self, data):
        name = data.draw(st.sampled_from(self.names))
        self.filter.delete(name, elements_of)
        self.names.remove(name)
        assert name not in self.filter

    @rule()
    def compact_a_step(self):
        before = self.filter.rows
        for left in self.filter.compact(elements_of):
            assert left <= before or not self.whole
            break

    @invariant()
    def nothing_is_denied(self):
        for name in self.names:
            elements = elements_of(name)[: int(name.split(":")[1])]
            for piece in self.filter.pieces(name):
                part = elements[piece.begin : piece.end]
                assert self.filter.bit_rows.contains(piece.row, part).all()
            covered = sorted(at for piece in self.filter.pieces(name) for at in range(piece.begin, piece.end))
            assert covered == list(range(len(elements)))

    @invariant()
    def the_indexes_agree(self):
        held = np.zeros(len(self.filter.free), int)
        for name in self.names:
            for piece in self.filter.pieces(name):
                held[piece.row] += len(piece)
                assert name in self.filter.documents(piece.row)
        assert (self.filter.free == CAPACITY - held).all()
        assert (self.filter.free >= 0).all()

    @invariant()
    def rows_hold_nothing_of_what_is_gone(self):
        for row, free in enumerate(self.filter.free.tolist()):
            if free == CAPACITY:
                bit = np.uint64(1 << row % 64)
                assert not (self.filter.bit_rows.blocks[row // 64] & bit).any()


class ChangedAndSplit(Changed):
    whole = False


TestDocumentsKeptWhole = Changed.TestCase
TestDocumentsSplit = ChangedAndSplit.TestCase
for case in (TestDocumentsKeptWhole, TestDocumentsSplit):
    case.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)


@given(st.integers(0, 120), st.lists(st.integers(0, CAPACITY), max_size=8), st.booleans())
def test_placed_is_everything_or_nothing(length, free, whole):
    space = np.array(free, np.int64)
    placed = place(length, space, CAPACITY, whole)
    if placed is None:
        if not whole:
            assert space.sum() < length
        return
    assert sum(part for _, part in placed) == length
    taken = np.zeros(len(free), int)
    for row, part in placed:
        assert part > 0
        taken[row] += part
    assert (taken <= space).all()
    if whole and 0 < length <= CAPACITY:
        assert len(placed) == 1


@pytest.mark.parametrize("whole", [True, False])
def test_deleted_documents_are_never_answered(whole):
    filled = PseudoMatrixFilter(Shape.of(500, 0.05), whole)
    names = [f"{at}:{200 + 37 * at % 400}" for at in range(60)]
    for name in names:
        filled.insert(name, elements_of(name))
    for name in names[::3]:
        filled.delete(name, elements_of)
        shares = filled.shares(elements_of(name))
        assert name not in shares
        assert max(shares.values()) < 0.12
    for name in set(names) - set(names[::3]):
        assert filled.shares(elements_of(name))[name] > 0.9


def test_deleting_rebuilds_only_the_rows_of_the_document():
    filled = PseudoMatrixFilter(Shape.of(100, 0.05))
    names = [f"{at}:45" for at in range(40)]
    for name in names:
        filled.insert(name, elements_of(name))
    asked = []
    before = filled.bit_rows.blocks[0].copy()
    (piece,) = filled.pieces(names[7])
    filled.delete(names[7], lambda name: asked.append(name) or elements_of(name))
    assert set(asked) == filled.documents(piece.row)
    others = np.uint64(~(1 << piece.row) & (2**64 - 1))
    assert np.array_equal(filled.bit_rows.blocks[0] & others, before & others)


def test_other_elements_than_those_inserted_are_refused_before_anything_changes():
    filled = PseudoMatrixFilter(Shape.of(100, 0.05))
    for name in ("1:40", "2:40"):
        filled.insert(name, elements_of(name))
    before = filled.bit_rows.blocks[0].copy()
    with pytest.raises(ConfigError, match="'2:40' has other elements"):
        filled.delete("1:40", lambda _: elements_of("9:12"))
    assert "1:40" in filled
    assert np.array_equal(filled.bit_rows.blocks[0], before)


def test_compaction_gives_rows_back_a_step_at_a_time():
    filled = PseudoMatrixFilter(Shape.of(100, 0.05))
    names = [f"{at}:30" for at in range(600)]
    for name in names:
        filled.insert(name, elements_of(name))
    assert len(filled.bit_rows) == 256
    kept = names[::5]
    for name in set(names) - set(kept):
        filled.delete(name, elements_of)
    rows = [filled.rows]
    for left in filled.compact(elements_of):
        rows.append(left)
        assert all(filled.shares(elements_of(name))[name] > 0.9 for name in kept[::17])
    assert rows == sorted(rows, reverse=True)
    # Three of 30 elements fit into a row; after that, rows only move down to where others were.
    assert rows[-1] == 40
    assert len(filled.bit_rows) == 64


def test_a_document_that_is_there_is_not_taken_in_again():
    filled = PseudoMatrixFilter(Shape.of(100, 0.05))
    filled.insert("1:40", elements_of("1:40"))
    with pytest.raises(ConfigError, match="delete it first"):
        filled.insert("1:40", elements_of("1:40"))


def test_rows_of_one_size_are_as_many_as_the_elements_fill():
    assert pseudo_matrix_rows([38_000] * 14_428, 123_000) == 4_458
