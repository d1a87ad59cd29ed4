"""Points in time end when they were to, and live on where somebody asks for them."""

import pytest

from shinglefold.engines.embedded.store.snapshots import Pits
from shinglefold.errors import PitExpired


@pytest.mark.parametrize(
    ("told", "seconds"), [("500ms", 0.5), ("30s", 30), ("5m", 300), ("2h", 7200), ("1d", 86_400)]
)
def test_a_point_in_time_is_kept_for_as_long_as_was_said(told, seconds):
    now = [1000.0]
    pits = Pits(lambda: now[0])
    pit = pits.open("a snapshot", told)
    now[0] += 0.9 * seconds
    assert pits.snapshot(pit, told) == "a snapshot"
    now[0] += 0.9999 * seconds
    assert pits.snapshot(pit, None) == "a snapshot"
    now[0] += 0.0002 * seconds
    with pytest.raises(PitExpired):
        pits.snapshot(pit, None)
