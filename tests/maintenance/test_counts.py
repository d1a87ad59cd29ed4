from hypothesis import given
from hypothesis import strategies as st
from support.maintenance import adds_up

from shinglefold.maintenance.guarded_updates import BackfillCounts

OUTCOMES = ("updated", "unchanged", "dropped", "gone")


def counted(outcomes: list[str]) -> BackfillCounts:
    counts = BackfillCounts(read=len(outcomes))
    for number, outcome in enumerate(outcomes):
        if outcome == "failed":
            counts.fail(str(number), f"reason {number % 3}")
        else:
            setattr(counts, outcome, getattr(counts, outcome) + 1)
    return counts


lists = st.lists(st.sampled_from([*OUTCOMES, "failed"]), max_size=30)


@given(lists, lists)
def test_counts_of_two_blocks_are_the_counts_of_both(one, other):
    both = counted(one)
    both.add(counted(other))
    assert adds_up(both)
    assert both.read == len(one) + len(other)
    assert sum(both.reasons.values()) == both.failed == len(both.failures)
    assert BackfillCounts.from_json(both.to_json()) == both


def test_beginning_anew_keeps_what_was_updated():
    counts = counted(["updated", "updated", "failed", "gone"])
    counts.add_changed("7")
    counts.restart()
    assert counts == BackfillCounts(earlier=2, changed=["7"])


def test_lists_are_bounded_and_the_counts_go_on():
    counts = BackfillCounts()
    for number in range(3_000):
        one = BackfillCounts(read=1)
        one.fail(str(number), f"reason {number}")
        one.add_changed(str(number))
        counts.add(one)
    assert counts.failed == sum(counts.reasons.values()) == 3_000
    assert len(counts.failures) == len(counts.changed) == 1_000
    assert len(counts.reasons) <= 1_001
