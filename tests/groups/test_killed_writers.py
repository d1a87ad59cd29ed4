"""Writers of an embedded index are killed at random: one of each class is let in all the same."""

import pytest
from support.gate.crashes import Trial, make_pipeline, seeds

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.groups import Policy


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(2))
def test_one_of_each_class_is_let_in_whoever_is_killed(tmp_path, seed):
    pipeline = make_pipeline()

    def opened():
        return EmbeddedEngine(tmp_path, pipeline.tools.canonicalizer)

    found = Trial(opened, "texts", pipeline, Policy("refuse"), seed, classes=8, copies=5, writers=4).run()
    assert found == {str(number): 1 for number in range(8)}


@pytest.mark.slow
def test_exactly_so_many_of_each_class_are_let_in_as_there_are_places(tmp_path):
    pipeline = make_pipeline()

    def opened():
        return EmbeddedEngine(tmp_path, pipeline.tools.canonicalizer)

    policy = Policy("cap", most=2)
    found = Trial(opened, "texts", pipeline, policy, 0, classes=4, copies=4, writers=4, kills=3).run()
    assert found == {str(number): 2 for number in range(4)}
