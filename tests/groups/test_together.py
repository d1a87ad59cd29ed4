"""Calls that are made at the same time: answers in order, and none goes on when one has failed."""

import asyncio
import threading
import time

import pytest

from shinglefold.groups.together import Together, awaited, called, halves


def test_calls_are_made_at_the_same_time_and_answered_in_order():
    meeting = threading.Barrier(2, timeout=10)

    def call(name):
        # Who were alone would wait for ever.
        meeting.wait()
        return name

    assert called(Together((lambda: call("one"), lambda: call("other")))) == ["one", "other"]
    assert called(lambda: "alone") == "alone"


@pytest.mark.parametrize("first", [True, False])
def test_all_have_ended_when_the_failure_of_one_is_told(first):
    ended = []

    def fail():
        raise ValueError("gone")

    def go_on():
        time.sleep(0.05)
        ended.append(True)

    async def fail_awaited():
        fail()

    async def go_on_awaited():
        await asyncio.sleep(0.05)
        ended.append(True)

    both, awaiting = (fail, go_on), (fail_awaited, go_on_awaited)
    with pytest.raises(ValueError, match="gone"):
        called(Together(both if first else both[::-1]))
    assert ended == [True]
    with pytest.raises(ValueError, match="gone"):
        asyncio.run(awaited(Together(awaiting if first else awaiting[::-1])))
    assert ended == [True, True]


@pytest.mark.parametrize("number", [0, 1, 99, 100, 101, 300])
def test_of_many_there_are_two_halves_in_order(number):
    parts = halves(list(range(number)))
    assert [one for part in parts for one in part] == list(range(number))
    assert len(parts) == (1 if number < 100 else 2)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
