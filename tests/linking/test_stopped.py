"""A run that is stopped at any moment goes on where it was, and a stage that was done is not repeated."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest
from support.made_up import SKETCH, made_up, random_block
from support.power import losses

from shinglefold.errors import ConfigError
from shinglefold.ingest.linking import stages
from shinglefold.ingest.linking.column import Column
from shinglefold.ingest.linking.linking import Linking
from shinglefold.ingest.linking.prints import Prints
from shinglefold.ingest.linking.shelf import Shelf
from shinglefold.ingest.linking.stages import Options, Watch
from shinglefold.scheme import Decision, Scheme

_SCHEME = Scheme(sketch=SKETCH, decision=Decision(verify="signature", min_resemblance=0.5))
_OPTIONS = Options(memory=2_000, most_shared=20)


class Stopped(Exception):
    pass


@contextmanager
def kept(folder: Path) -> Iterator[Prints]:
    """The columns of documents in a folder, filled the first time."""
    with closing(Shelf(folder)) as shelf:
        prints = Prints(shelf, _SCHEME, whole=True)
        state = shelf.noted("made", {})
        prints.resume(state)
        if state is None:
            prints.add(random_block(8, 200, _SCHEME, whole=True, crowd=60))
            shelf.note("made", {}, prints.state(), *prints.files)
        yield prints


def stops_after(steps: int) -> Watch:
    left = count(1)

    def check() -> None:
        if next(left) > steps:
            raise Stopped

    return Watch(check)


def answers(linking: Linking) -> tuple[object, ...]:
    return (
        [row for some in linking.pairs() for row in map(repr, some.tolist())],
        linking.skipped.to_json(),
        linking.labels("connected").tolist(),
        linking.skipped.to_json(),
        linking.labels("leader").tolist(),
    )


@pytest.fixture
def expected() -> tuple[object, ...]:
    with made_up(8, 200, _SCHEME, whole=True, crowd=60) as prints:
        return answers(Linking(prints, _OPTIONS))


@pytest.fixture(autouse=True)
def _always_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_PAUSE", 0.0)


@pytest.mark.parametrize("steps", [0, 1, 5, 11])
def test_a_run_stopped_again_and_again_ends_with_the_same_answer(tmp_path, expected, steps):
    for turn in range(200):
        with kept(tmp_path) as prints:
            try:
                found = answers(Linking(prints, _OPTIONS, stops_after(steps + turn)))
            except Stopped:
                continue
            break
    assert found == expected
    assert turn > 2


@pytest.mark.parametrize("steps", [3, 17])
def test_a_killed_run_goes_on(tmp_path, expected, steps):
    child = os.fork()
    if not child:
        with kept(tmp_path) as prints:
            left = iter(range(steps))
            answers(Linking(prints, _OPTIONS, Watch(lambda: next(left, None) is None and os._exit(9))))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    with kept(tmp_path) as prints:
        # Half a block that no note tells of.
        for name in ("pairs", "crowds", "crowds.sizes"):
            file = prints.shelf.file(name)
            file.seek(0, os.SEEK_END)
            file.write(b"half a block")
        assert answers(Linking(prints, _OPTIONS)) == expected


@pytest.mark.parametrize("notes", range(1, 5))
def test_a_run_killed_while_it_writes_what_it_is_to_note_goes_on(tmp_path, expected, monkeypatch, notes):
    child = os.fork()
    if not child:
        left, append = iter(range(notes)), Column.append

        def dies(column, rows):
            if column.name.startswith("groups.") and next(left, None) is None:
                column.mapped()
                os._exit(9)
            append(column, rows)

        monkeypatch.setattr(Column, "append", dies)
        with kept(tmp_path) as prints:
            answers(Linking(prints, _OPTIONS))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    with kept(tmp_path) as prints:
        assert answers(Linking(prints, _OPTIONS)) == expected


def slots_done_again(folder: Path) -> int:
    seen: list[tuple[object, ...]] = []
    with kept(folder) as prints:
        linking = Linking(prints, _OPTIONS, Watch(report=lambda *told: seen.append(told)))
        linking.labels("connected")
        list(linking.pairs())
    return len(seen)


def test_what_is_done_is_not_done_again(tmp_path, expected):
    for _ in range(2):
        with kept(tmp_path) as prints:
            assert answers(Linking(prints, _OPTIONS)) == expected
    assert slots_done_again(tmp_path) == 0


def test_a_machine_that_loses_its_power_goes_on_where_it_was(tmp_path, expected):
    made = tmp_path / "made"
    with losses(made, tmp_path / "copies") as copies, kept(made) as prints:
        assert answers(Linking(prints, _OPTIONS)) == expected
    for copy in copies[::7]:
        with kept(copy) as prints:
            assert answers(Linking(prints, _OPTIONS)) == expected
    assert slots_done_again(copies[-1]) == 0


def test_another_decision_is_another_answer(tmp_path):
    with kept(tmp_path) as prints:
        first = Linking(prints, _OPTIONS).labels("connected").tolist()
        strict = Scheme(sketch=SKETCH, decision=Decision(verify="signature", min_resemblance=0.95))
        prints.scheme = strict
        assert Linking(prints, _OPTIONS).labels("connected").tolist() != first


def test_two_runs_in_one_folder_and_folders_of_something_else_are_refused(tmp_path):
    with kept(tmp_path), pytest.raises(ConfigError, match="another run works"):
        Shelf(tmp_path)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "letter.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds other files"):
        Shelf(foreign)
    assert [path.name for path in foreign.iterdir()] == ["letter.txt"]


def test_a_full_disk_leaves_no_file_open_and_the_folder_to_others(tmp_path):
    shelf = Shelf(tmp_path / "work")
    for name in ("one", "other"):
        (tmp_path / "work" / name).symlink_to("/dev/full")
    files = [shelf.file(name) for name in ("one", "other")]
    for file in files:
        file.write(b"what does not fit")
    shelf.close()
    assert all(file.closed for file in files)
    Shelf(tmp_path / "work").close()
