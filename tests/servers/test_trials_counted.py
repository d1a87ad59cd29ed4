"""CI fails where fewer random trials were made than are promised."""

import pytest
from support.servers.lines import LEAST, counted, lacking_trials, line


def test_trials_are_counted_from_the_lines_that_tell_of_them():
    told = [line(45, "five_shards of 3.8.0", 7), "opensearch-3: opensearch 3.8.0", line(60, "replicas", 1)]
    assert told[0] == "trials: 45 on five_shards of 3.8.0, seeds 7 to 51"
    assert counted(told) == 105


@pytest.mark.parametrize(
    ("count", "whole", "fails"), [(LEAST, True, False), (LEAST - 1, True, True), (1, False, False)]
)
def test_a_whole_run_fails_with_fewer_trials_than_promised(count, whole, fails):
    assert bool(lacking_trials([line(count, "one_shard", 1)], whole=whole)) == fails
