from hypothesis import given
from hypothesis import strategies as st
from support.upkeep import adds_up

from shinglefold.ingest.upkeep.tally import Tally

OUTCOMES = ("updated", "unchanged", "dropped", "gone")


def books(outcomes: list[str]) -> Tally:
    tally = Tally(read=len(outcomes))
    for number, outcome in enumerate(outcomes):
        if outcome == "failed":
            tally.fail(str(number), f"reason {number % 3}")
        else:
            setattr(tally, outcome, getattr(tally, outcome) + 1)
    return tally


lists = st.lists(st.sampled_from([*OUTCOMES, "failed"]), max_size=30)


@given(lists, lists)
def test_books_of_two_blocks_are_the_books_of_both(one, other):
    both = books(one)
    both.add(books(other))
    assert adds_up(both)
    assert both.read == len(one) + len(other)
    assert sum(both.reasons.values()) == both.failed == len(both.failures)
    assert Tally.from_json(both.to_json()) == both


def test_beginning_anew_keeps_what_was_updated():
    tally = books(["updated", "updated", "failed", "gone"])
    tally.change("7")
    tally.restart()
    assert tally == Tally(earlier=2, changed=["7"])


def test_lists_are_bounded_and_the_counts_go_on():
    tally = Tally()
    for number in range(3_000):
        one = Tally(read=1)
        one.fail(str(number), f"reason {number}")
        one.change(str(number))
        tally.add(one)
    assert tally.failed == sum(tally.reasons.values()) == 3_000
    assert len(tally.failures) == len(tally.changed) == 1_000
    assert len(tally.reasons) <= 1_001
