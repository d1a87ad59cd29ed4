"""A loss of a quarter is told, noise is not, and what is on record is what is watched."""

import json
import time

import numpy as np
import pytest

from bench.clock import processor_time
from bench.speed.regression import RECORD, losses, measured, processor, reference, report_losses

WORD = np.random.default_rng(1).integers(0, 2**64, 1 << 16, np.uint64)


def work():
    return np.sort(WORD)


def longer():
    start = time.process_time()
    work()
    end = time.process_time() + (time.process_time() - start) / 2
    while time.process_time() < end:
        pass


def test_work_that_takes_half_as_long_again_is_told_as_lost(capsys):
    ways = {"sorting": work}
    record = measured(ways, work, {}, rounds=40)
    slow = measured({"sorting": longer}, work, record, rounds=40, seconds=0.0)
    assert losses(slow, record) == ["sorting"]
    assert report_losses(slow, record) == 1
    assert "sorting takes" in capsys.readouterr().err


def test_work_that_takes_as_long_as_ever_is_not():
    record = {"sorting": 1.0}
    same = measured({"sorting": work}, work, record, rounds=40, seconds=20.0)
    assert losses(same, record) == []
    assert report_losses(same, record) == 0


def test_what_is_on_no_record_is_lost_and_no_record_at_all_loses_nothing():
    assert losses({"new": 1.0}, {"old": 1.0}) == ["new"]
    assert losses({"new": 1.0}, {}) == []


@pytest.mark.parametrize("rounds", [1, 3])
def test_nothing_lost_needs_no_more_rounds_than_asked(rounds):
    made = []
    measured({"counted": lambda: made.append(work())}, work, {"counted": 1e9}, rounds=rounds)
    assert len(made) == rounds


def test_what_is_on_record_was_measured():
    for ratios in json.loads(RECORD.read_text("utf-8")).values():
        assert all(0 < ratio < 1_000 for ratio in ratios.values())
        assert len(ratios) >= 5
    assert 0.001 < min(processor_time(reference()) for _ in range(3)) < 1


def test_a_processor_is_told_by_its_name_family_and_model(tmp_path):
    facts = tmp_path / "cpuinfo"
    core = ["cpu family\t: 6", "model\t\t: 167", "model name\t: Quick", "flags\t\t: a b", ""]
    facts.write_text("\n".join(core * 2), "utf-8")
    assert processor(facts) == "Quick, cpu family 6, model 167"
    assert processor(tmp_path / "none")
