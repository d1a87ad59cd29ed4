import json
from dataclasses import replace
from pathlib import Path

import pytest

from shinglefold.errors import ConfigError, InputError
from shinglefold.ingest.maintenance.checkpoint import Checkpoint, CheckpointFile, Job
from shinglefold.ingest.maintenance.counts import BackfillCounts
from shinglefold.ingest.maintenance.scan import Place

JOB = Job("pages", "sf1-a", "dedup", "1/1", False)


def checkpoint() -> Checkpoint:
    counts = BackfillCounts(read=5, updated=3, failed=2)
    counts.change("a")
    return Checkpoint(JOB, Place("pit", 2, (7, "x")), counts)


def test_what_was_saved_is_loaded(tmp_path: Path):
    file = CheckpointFile(tmp_path / "folder" / "checkpoint.json")
    file.save(checkpoint())
    assert file.load(JOB) == checkpoint()
    file.remove()
    assert file.load(JOB) is None
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_crash_while_saving_leaves_the_one_before(tmp_path: Path):
    file = CheckpointFile(tmp_path / "checkpoint.json")
    file.save(checkpoint())
    # What a process killed in the middle of writing leaves behind.
    (tmp_path / "checkpoint.json.part").write_text('{"format": 2, "jo')
    assert file.load(JOB) == checkpoint()
    file.save(replace(checkpoint(), place=Place("later")))
    assert file.load(JOB).place == Place("later")


def test_nobody_elses_file_is_touched_while_saving(tmp_path: Path):
    beside = tmp_path / "checkpoint.json.part"
    beside.write_text("mine")
    file = CheckpointFile(tmp_path / "checkpoint.json")
    file.save(checkpoint())
    file.save(replace(checkpoint(), place=Place("later")))
    assert beside.read_text() == "mine"
    assert {one.name for one in tmp_path.iterdir()} == {"checkpoint.json", "checkpoint.json.part"}


def test_a_checkpoint_that_cant_be_written_leaves_nothing_beside_it(tmp_path: Path):
    (tmp_path / "checkpoint.json").mkdir()
    with pytest.raises(InputError, match="give another path"):
        CheckpointFile(tmp_path / "checkpoint.json").save(checkpoint())
    assert [one.name for one in tmp_path.iterdir()] == ["checkpoint.json"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("index", "news"), ("scheme", "sf1-b"), ("field", "d"), ("part", "1/2"), ("only_missing", True)],
)
def test_a_checkpoint_of_another_job_is_refused_and_says_what_differs(tmp_path: Path, name, value):
    file = CheckpointFile(tmp_path / "checkpoint.json")
    file.save(checkpoint())
    with pytest.raises(ConfigError, match=f"{name} .*delete the file"):
        file.load(replace(JOB, **{name: value}))


@pytest.mark.parametrize("text", ["", "5", "[]", "{}", '{"format": 1}', '{"format": 2, "place": 5}', "{x"])
def test_a_damaged_file_says_to_delete_it(tmp_path: Path, text):
    (tmp_path / "checkpoint.json").write_text(text)
    with pytest.raises(InputError, match="name another file, or delete it to begin anew"):
        CheckpointFile(tmp_path / "checkpoint.json").load(JOB)


def test_unknown_counts_are_damage_too(tmp_path: Path):
    file = CheckpointFile(tmp_path / "checkpoint.json")
    file.save(checkpoint())
    data = json.loads(file.path.read_text())
    data["counts"]["surprise"] = 1
    file.path.write_text(json.dumps(data))
    with pytest.raises(InputError, match="surprise"):
        file.load(JOB)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="give another path"):
        CheckpointFile(tmp_path / "file" / "checkpoint.json").save(checkpoint())


def test_without_a_path_nothing_is_kept():
    CheckpointFile(None).save(checkpoint())
    assert CheckpointFile(None).load(JOB) is None
