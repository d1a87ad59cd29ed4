import json
from pathlib import Path

import pytest

from shinglefold.errors import ConfigError, InputError
from shinglefold.maintenance.checkpoint import Checkpoint

JOB = {"index": "pages", "scheme": "sf1-a", "only_missing": False}
STATE = {"place": 5, "counts": {"read": 5}}


def checkpoint(path: Path | None, **job: object) -> Checkpoint:
    return Checkpoint(path, "backfill", JOB | job)


def test_what_was_saved_is_loaded(tmp_path: Path):
    file = checkpoint(tmp_path / "folder" / "checkpoint.json")
    file.save(STATE)
    assert file.load(dict) == STATE
    file.remove()
    assert file.load(dict) is None
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_crash_while_saving_leaves_the_one_before(tmp_path: Path):
    file = checkpoint(tmp_path / "checkpoint.json")
    file.save(STATE)
    # What a process killed in the middle of writing leaves behind.
    (tmp_path / "checkpoint.json.part").write_text('{"format": 3, "jo')
    assert file.load(dict) == STATE
    file.save(STATE | {"place": 7})
    assert file.load(dict) == STATE | {"place": 7}


def test_saving_touches_no_other_file(tmp_path: Path):
    beside = tmp_path / "checkpoint.json.part"
    beside.write_text("mine")
    file = checkpoint(tmp_path / "checkpoint.json")
    file.save(STATE)
    file.save(STATE | {"place": 7})
    assert beside.read_text() == "mine"
    assert {one.name for one in tmp_path.iterdir()} == {"checkpoint.json", "checkpoint.json.part"}


def test_a_failed_write_of_a_checkpoint_leaves_no_other_file(tmp_path: Path):
    (tmp_path / "checkpoint.json").mkdir()
    with pytest.raises(InputError, match="give another path"):
        checkpoint(tmp_path / "checkpoint.json").save(STATE)
    assert [one.name for one in tmp_path.iterdir()] == ["checkpoint.json"]


@pytest.mark.parametrize(("name", "value"), [("index", "news"), ("scheme", "sf1-b"), ("only_missing", True)])
def test_a_checkpoint_of_another_job_is_refused_and_says_what_differs(tmp_path: Path, name, value):
    checkpoint(tmp_path / "checkpoint.json").save(STATE)
    with pytest.raises(ConfigError, match=f"of another backfill .{name} .*delete the file"):
        checkpoint(tmp_path / "checkpoint.json", **{name: value}).load(dict)


def _missing(_: object) -> None:
    raise FileNotFoundError("beside")


@pytest.mark.parametrize(
    "text",
    [
        *("", "5", "[]", "{}", '{"format": 2}', '{"format": 3, "job": 5}', '{"format": 3, "job": []}', "{x"),
        json.dumps({"format": 3, "job": JOB}),
    ],
)
def test_a_damaged_file_says_to_delete_it(tmp_path: Path, text):
    (tmp_path / "checkpoint.json").write_text(text)
    with pytest.raises(InputError, match="name another file, or delete it to start from the beginning"):
        checkpoint(tmp_path / "checkpoint.json").load(dict)


@pytest.mark.parametrize("parse", [int, _missing])
def test_a_state_that_can_not_be_parsed_is_damage_too(tmp_path: Path, parse):
    checkpoint(tmp_path / "checkpoint.json").save(STATE)
    with pytest.raises(InputError, match="name another file, or delete it to start from the beginning"):
        checkpoint(tmp_path / "checkpoint.json").load(parse)


def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="give another path"):
        checkpoint(tmp_path / "file" / "checkpoint.json").save(STATE)


def test_without_a_path_nothing_is_kept():
    checkpoint(None).save(STATE)
    assert checkpoint(None).load(dict) is None
