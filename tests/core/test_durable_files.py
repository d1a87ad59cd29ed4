"""Locks that tell who works on a file."""

import os
from pathlib import Path

import pytest

from shinglefold.runtime.durable_files import is_same_file, lock


@pytest.fixture
def opened():
    """Opens a file or a folder, each time anew, as another process would."""
    files: list[int] = []

    def make(path: Path) -> int:
        files.append(os.open(path, os.O_RDONLY))
        return files[-1]

    yield make
    for file in files:
        os.close(file)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_one_at_a_time_has_it_and_it_is_free_once_that_is_closed(tmp_path: Path, opened, kind):
    place = tmp_path / "place"
    place.mkdir() if kind == "folder" else place.touch()
    first = os.open(place, os.O_RDONLY)
    second = opened(place)
    assert (lock(first), lock(first), lock(second)) == (True, True, False)
    os.close(first)
    assert lock(second)


def test_a_child_that_was_forked_meanwhile_holds_it_too(tmp_path: Path, opened):
    place = tmp_path / "place"
    place.touch()
    held, (ends, end) = os.open(place, os.O_RDONLY), os.pipe()
    assert lock(held)
    child = os.fork()
    if not child:
        os.close(end)
        os.read(ends, 1)
        os._exit(0)
    os.close(held)
    assert lock(opened(place)) is False
    os.close(end)
    os.waitpid(child, 0)
    os.close(ends)
    assert lock(opened(place))


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="of Linux")
def test_what_can_not_be_locked_at_all_is_told_from_what_another_has(tmp_path: Path):
    # A path that is no open file is refused, as all files are by file systems without locks.
    path = os.open(tmp_path, os.O_PATH)
    assert lock(path) is None
    os.close(path)


def test_what_was_replaced_or_removed_stands_there_no_more(tmp_path: Path, opened):
    place, other = tmp_path / "place", tmp_path / "other"
    place.touch()
    other.touch()
    file = opened(place)
    assert is_same_file(file, place)
    other.replace(place)
    assert not is_same_file(file, place)
    place.unlink()
    assert not is_same_file(file, place)
