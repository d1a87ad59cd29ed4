"""Guarded updates: refusals, retries and counts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.maintenance import adds_up, stored

from shinglefold.contracts.engine import BulkFailure, BulkResult
from shinglefold.maintenance import BackfillOptions, backfill
from shinglefold.maintenance.guarded_updates import BackfillCounts
from shinglefold.runtime.backoff import Backoff

_ID, _ALONE = "page-7", BackfillOptions(workers=1, backoff=Backoff(2, 0.01))


class Refusing:
    """A real engine that refuses so many times to update a document, after others did something to it."""

    def __init__(self, engine, status, reason="", *, times=1, others=None):
        self._engine, self._left, self._others = engine, times, others
        self._failure = status, reason

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def bulk(self, actions):
        due = [*actions]
        refused = [one for one in due if one["_id"] == _ID and self._left > 0]
        self._left -= len(refused)
        if refused and self._others is not None:
            assert not self._engine.bulk([{"_index": "pages", "_id": _ID, **self._others}]).failures
        done = self._engine.bulk([one for one in due if one not in refused])
        failures = tuple(BulkFailure(one, *self._failure) for one in refused)
        return BulkResult(done.indexed, (*done.failures, *failures), done.written_over)


def test_concurrent_changes_are_fingerprinted_in_their_newest_version(engine, unsigned, pipeline):
    text = {"_source": {"body": "one two three four five six seven eight nine ten"}}
    summary = backfill(Refusing(engine, 409, others=text), unsigned, pipeline, _ALONE)
    counts = summary.counts
    assert (counts.updated, counts.conflicts, counts.changed, summary.remaining) == (250, 1, [_ID], 0)
    assert adds_up(counts)
    (outcome,) = pipeline.run_block([{"_id": _ID, **text["_source"]}])
    assert stored(engine, unsigned)[_ID]["_dedup"] == outcome.document["_dedup"]


class LateCopy(Refusing):
    """A real engine with a late copy: only searches with the parameters ``newest`` see what was written."""

    def __init__(self, engine, status, **options):
        super().__init__(engine, status, **options)
        self.can = replace(engine.can, newest={"preference": "_primary"})
        self._late = {"id": engine.open_pit("pages", "5m"), "keep_alive": "5m"}

    def search(self, index, body, parameters=None):
        if index is None or parameters == self.can.newest:
            return self._engine.search(index, body)
        return self._engine.search(None, {**body, "pit": self._late})

    def open_pit(self, index, keep_alive, parameters=None):
        return self._engine.open_pit(index, keep_alive)


def test_a_document_is_read_again_where_the_change_of_the_other_writer_is_seen(engine, unsigned, pipeline):
    text = {"_source": {"body": "one two three four five six seven eight nine ten"}}
    counts = backfill(LateCopy(engine, 409, others=text), unsigned, pipeline, _ALONE).counts
    assert (counts.updated, counts.conflicts, counts.changed) == (250, 1, [_ID])
    (outcome,) = pipeline.run_block([{"_id": _ID, **text["_source"]}])
    assert stored(engine, unsigned)[_ID]["_dedup"] == outcome.document["_dedup"]


@pytest.mark.parametrize("status", [409, 404])
def test_what_was_deleted_meanwhile_is_counted_as_gone(engine, unsigned, pipeline, status):
    refusing = Refusing(engine, status, others={"_op_type": "delete"})
    counts = backfill(refusing, unsigned, pipeline, _ALONE).counts
    assert (counts.read, counts.updated, counts.gone, counts.failed) == (250, 249, 1, 0)
    assert adds_up(counts)


@pytest.mark.parametrize(
    ("status", "told"), [(400, "400: no such field"), (409, "other writers change it faster")]
)
def test_what_is_never_updated_has_failed_and_is_named_with_the_reason(
    engine, unsigned, pipeline, status, told
):
    refusing = Refusing(engine, status, "no such field", times=99)
    summary = backfill(refusing, unsigned, pipeline, _ALONE)
    counts = summary.counts
    assert (counts.read, counts.updated, counts.failed, counts.failures) == (250, 249, 1, [_ID])
    assert adds_up(counts)
    (reason,) = counts.reasons
    assert reason.startswith(told)
    assert (summary.stopped, summary.remaining) == ("", 1)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (429, "too busy: its queue is full"),
        (504, "too busy: its queue is full"),
        (403, "accepts no updates (403): its queue"),
    ],
)
def test_an_engine_that_accepts_no_updates_stops_the_run_with_its_reason(
    engine, unsigned, pipeline, status, told
):
    summary = backfill(Refusing(engine, status, "its queue is full", times=99), unsigned, pipeline, _ALONE)
    assert told in summary.stopped
    assert summary.counts.updated == summary.counts.read == 0


def test_after_a_deletion_of_the_index_there_is_nothing_to_resume(engine, unsigned, pipeline, tmp_path):
    file = tmp_path / "checkpoint"
    gone = Refusing(engine, 404, "index_not_found_exception: no such index; create it first", times=99)
    options = BackfillOptions(workers=1, checkpoint=file)
    summary = backfill(gone, unsigned, pipeline, options)
    assert (summary.stopped, summary.anew) == ("the index 'pages' was deleted meanwhile", True)
    assert not file.exists()
    busy = backfill(Refusing(engine, 403, "no", times=99), unsigned, pipeline, options)
    assert (bool(busy.stopped), busy.anew) == (True, False)
    whole = backfill(engine, unsigned, pipeline, options)
    assert (whole.resumed, whole.stopped, whole.remaining) == (False, "", 0)


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


def test_a_restart_keeps_the_number_of_updated_documents():
    counts = counted(["updated", "updated", "failed", "gone"])
    counts.changed.append("7")
    counts.restart()
    assert counts == BackfillCounts(earlier=2, changed=["7"])


def test_lists_are_bounded_and_counts_are_not():
    counts = BackfillCounts()
    for number in range(3_000):
        one = BackfillCounts(read=1)
        one.fail(str(number), f"reason {number}")
        one.changed.append(str(number))
        counts.add(one)
    assert counts.failed == sum(counts.reasons.values()) == 3_000
    assert len(counts.failures) == len(counts.changed) == 1_000
    assert len(counts.reasons) <= 1_001
