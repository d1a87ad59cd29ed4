"""Writers of an embedded index are killed at random: one document of each class is accepted."""

import pytest
from support.gate.crashes import Trial, make_pipeline, seeds
from support.gate.whole import run_whole, texts
from support.gate.windows import WINDOWS

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.grouping import Policy


@pytest.fixture(scope="module")
def pipeline():
    return make_pipeline()


@pytest.fixture
def opened(tmp_path, pipeline):
    return lambda: EmbeddedEngine(tmp_path, pipeline.tools.canonicalizer)


@pytest.mark.long(every=3)
@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(3, in_ci=4))
def test_one_of_each_class_is_accepted_despite_killed_writers(opened, pipeline, seed):
    kills = {"kills": 4, "windows": WINDOWS}
    trial = Trial(opened, "texts", pipeline, Policy("refuse"), seed, classes=12, copies=8, **kills)
    assert trial.run() == {str(number): 1 for number in range(trial.classes)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, in_ci=2))
def test_each_class_fills_its_places_exactly(opened, pipeline, seed):
    kills = {"kills": 4, "windows": WINDOWS}
    trial = Trial(opened, "texts", pipeline, Policy("cap", most=2), seed, classes=12, copies=8, **kills)
    assert trial.run() == {str(number): 2 for number in range(trial.classes)}


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.skipif(not texts(), reason="make gate-run does it")
def test_the_whole_run(opened, pipeline):
    run_whole("embedded", opened, pipeline, str, None)
