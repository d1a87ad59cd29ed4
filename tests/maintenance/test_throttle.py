import pytest

from shinglefold.errors import ConfigError
from shinglefold.maintenance.scan import Throttle


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_documents_take_the_time_they_are_given():
    clock = Clock()
    pace = Throttle(50, clock, clock.sleep)
    for _ in range(10):
        clock.now += 0.5
        pace.wait(100)
    assert clock.now == pytest.approx(100 + 10 * 100 / 50)


def test_work_slower_than_the_pace_is_not_slowed_further_nor_made_up_for():
    clock = Clock()
    pace = Throttle(100, clock, clock.sleep)
    clock.now += 60
    pace.wait(100)
    assert clock.now == 160
    pace.wait(100)
    assert clock.now == pytest.approx(161)


def test_no_rate_means_no_waiting():
    Throttle(0, sleep=lambda _: pytest.fail("waited")).wait(10**9)


def test_a_negative_rate_is_refused():
    with pytest.raises(ConfigError, match="0 for no limit"):
        Throttle(-1)
