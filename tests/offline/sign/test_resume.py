"""A run that was killed or met a full disk goes on where it was: nothing torn, nothing doubled."""

import errno
import json
import os
import random
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.power import losses

from shinglefold.errors import ConfigError, InputError
from shinglefold.offline.sign import part_writer as writing
from shinglefold.offline.sign import run_journal as journal
from shinglefold.offline.sign import tasks
from shinglefold.offline.sign.part_writer import FileSink
from shinglefold.offline.sign.run import sign
from shinglefold.offline.sign.run_journal import identity
from shinglefold.registry import make_scheme

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "d.jsonl"
    rows = [json.dumps({"id": n, "body": f"text number {n} of many " * (n % 9)}) for n in range(300)]
    rows[120] = "no JSON"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def whole(make_job, source, tmp_path) -> bytes:
    sign(make_job(source, tmp_path / "whole.jsonl"))
    return (tmp_path / "whole.jsonl").read_bytes()


def dies_after(job, parts: int) -> None:
    """Run the job in a child that is gone, without any tidying up, after so many parts."""
    child = os.fork()
    if not child:
        left = iter(range(parts))
        sign(job, lambda _: next(left, None) is None and os._exit(9))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (0, 9)


@pytest.mark.long(every=12)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_a_killed_run_goes_on_where_it_was(make_job, source, tmp_path, whole, workers, seed):
    chance = random.Random(seed)
    job = make_job(source, tmp_path / "out.jsonl", workers=workers)
    unfinished = tmp_path / "out.jsonl.unfinished"
    for _ in range(3):
        dies_after(job, chance.randrange(1, 8))
        assert not (tmp_path / "out.jsonl").exists()
        # A kill may leave half a note, and more output than was noted.
        with (unfinished / "journal").open("ab") as notes:
            notes.write(b'{"tasks": 99, "by')
        with (unfinished / "output").open("ab") as output:
            output.write(b'{"id": 5, "bo' * chance.randrange(5))
    seen = []
    made = sign(job, seen.append)
    assert (tmp_path / "out.jsonl").read_bytes() == whole
    assert (made.signed, made.failed) == (299, 1)
    assert made.resumed > 0
    assert list(made.reasons.values()) == [1]
    assert seen[-1].fraction == 1.0
    assert not unfinished.exists()


def test_a_machine_that_loses_its_power_goes_on_where_it_was(make_job, source, tmp_path, whole):
    with losses(tmp_path / "made", tmp_path / "copies") as copies:
        sign(make_job(source, tmp_path / "made" / "out.jsonl"))
    assert (copies[-1] / "out.jsonl").read_bytes() == whole
    resumed = []
    for copy in copies[:-1:5]:
        resumed.append(sign(make_job(source, copy / "out.jsonl")).resumed)
        assert (copy / "out.jsonl").read_bytes() == whole
    assert resumed == sorted(resumed)
    assert resumed[-1] > 200


def test_lines_are_named_by_their_numbers_in_the_file_after_going_on_too(make_job, source, tmp_path):
    job = make_job(source, tmp_path / "out.jsonl")
    dies_after(job, 2)
    made = sign(job)
    assert made.resumed > 0
    assert [(one.source, one.line) for one in made.failures] == [(str(source), 121)]


@pytest.mark.long(every=4)
@pytest.mark.parametrize("before", [None, b"of an earlier run"])
@pytest.mark.parametrize("lose", [os.remove, lambda output: output.write_bytes(b"")])
def test_what_was_noted_but_is_gone_is_told(make_job, source, tmp_path, before, lose):
    target = tmp_path / "out.jsonl"
    job = make_job(source, target)
    if before is not None:
        target.write_bytes(before)
    dies_after(job, 3)
    lose(tmp_path / "out.jsonl.unfinished" / "output")
    with pytest.raises(InputError, match="--restart"):
        sign(job)
    assert before is None or target.read_bytes() == before
    assert sign(replace(job, restart=True)).signed == 299


def test_a_file_of_an_earlier_run_is_not_taken_for_what_was_made(
    make_job, source, tmp_path, whole, monkeypatch
):
    target = tmp_path / "out.jsonl"
    target.write_bytes(whole)
    source.write_bytes(source.read_bytes().replace(b"many", b"more"))
    job = make_job(source, target)
    child = os.fork()
    if not child:
        monkeypatch.setattr(journal.RunJournal, "name", lambda *_: os._exit(9))
        sign(job)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert target.read_bytes() == whole
    sign(job)
    assert len(target.read_bytes()) == len(whole)
    assert b"more" in target.read_bytes()
    assert b"many" not in target.read_bytes()


def test_another_source_or_scheme_does_not_go_on(make_job, source, tmp_path, whole):
    job = make_job(source, tmp_path / "out.jsonl")
    dies_after(job, 3)
    with pytest.raises(ConfigError, match=r"with other texts.*--restart"):
        sign(make_job(source, tmp_path / "out.jsonl", fields=("body", "title")))
    source.write_bytes(source.read_bytes() + b'{"id": "new"}\n')
    changed = make_job(source, tmp_path / "out.jsonl")
    with pytest.raises(ConfigError, match=r"as it was before it changed.*--restart"):
        sign(changed)
    dies_after(replace(changed, restart=True), 3)
    made = sign(changed)
    assert (made.signed, made.resumed > 0) == (300, True)
    assert (tmp_path / "out.jsonl").read_bytes().startswith(whole)


def test_half_a_note_costs_none_that_follows(tmp_path):
    for number in range(1, 4):
        with closing(journal.RunJournal(tmp_path / "out", {"layout": []})) as kept:
            assert kept.open() == ({"tasks": number - 1} if number > 1 else None)
            kept.note({"tasks": number})
        with (kept.folder / "journal").open("ab") as notes:
            notes.write(b'{"tasks": 99, "by')


def test_a_run_begun_anew_that_dies_before_its_first_note_begins_anew(make_job, source, tmp_path, whole):
    job = make_job(source, tmp_path / "out.jsonl")
    dies_after(job, 3)
    with closing(journal.RunJournal(job.target, job.identity)) as kept:
        assert kept.open(restart=True) is None
        assert os.listdir(kept.folder) == ["journal"]
    made = sign(job)
    assert (made.signed, made.resumed) == (299, 0)
    assert (tmp_path / "out.jsonl").read_bytes() == whole


def test_nothing_that_decides_the_output_may_change_before_a_run_goes_on(make_job, source, tmp_path, whole):
    target, scheme = tmp_path / "out.jsonl", make_job(source, "-").signer.tools.scheme
    dies_after(make_job(source, target), 3)
    changes = {
        "fields": ("body",),
        "language_field": "language",
        "html": True,
        "only_ids": True,
        "target": "made",
        "id_field": "id",
        "max_bytes": 70,
    }
    for name, value in changes.items():
        with pytest.raises(ConfigError, match=r"is left of a run with .*--restart"):
            sign(make_job(source, target, **{name: value}))
    job = make_job(source, target)
    options = job.signer.options
    for other, seal in ((make_scheme("once"), ""), (scheme, "another key")):
        made = identity([str(source)], options, other, seal)
        with pytest.raises(ConfigError, match=r"another (scheme|seal) .*--restart"):
            sign(replace(job, identity=made))
    sign(job)
    assert target.read_bytes() == whole


def test_what_came_through_a_pipe_is_no_other_pipes_to_go_on_with(make_job, tmp_path):
    first, second = (make_job("-", tmp_path / "out.jsonl") for _ in range(2))
    with closing(journal.RunJournal(first.target, first.identity)) as kept:
        kept.open()
    with (
        closing(journal.RunJournal(second.target, second.identity)) as kept,
        pytest.raises(ConfigError, match="through another pipe"),
    ):
        kept.open()


def test_what_is_made_among_its_sources_goes_on_too(make_job, tmp_path):
    for number in range(40):
        (tmp_path / f"{number:02}.txt").write_text(f"text number {number} of many " * 20)
    dies_after(make_job(tmp_path, tmp_path / "out.jsonl", fields=("body",)), 3)
    made = sign(make_job(tmp_path, tmp_path / "out.jsonl", fields=("body",)))
    assert (made.signed, made.resumed > 0) == (40, True)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 40


def test_two_runs_into_one_file_do_not_mix(make_job, source, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "_PATIENCE", 0.0)
    job = make_job(source, tmp_path / "out.jsonl")
    refused = []

    def another(_):
        if not refused:
            with pytest.raises(ConfigError, match="another run") as told:
                sign(job)
            refused.append(told)

    assert sign(job, another).signed == 299
    assert refused


def test_a_run_killed_when_only_tidying_up_was_left_is_whole(make_job, source, tmp_path, whole, monkeypatch):
    job = make_job(source, tmp_path / "out.jsonl")
    child = os.fork()
    if not child:
        monkeypatch.setattr(journal.RunJournal, "remove", lambda _: os._exit(9))
        sign(job)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert (tmp_path / "out.jsonl").read_bytes() == whole
    made = sign(job)
    assert (made.signed, made.resumed) == (299, 300)
    assert (tmp_path / "out.jsonl").read_bytes() == whole
    assert sorted(os.listdir(tmp_path)) == ["d.jsonl", "out.jsonl", "whole.jsonl"]


def test_a_run_that_waited_for_another_to_end_begins_with_a_folder_of_its_own(tmp_path):
    first, second = (journal.RunJournal(tmp_path / "out", {}) for _ in range(2))
    assert first.open() is None
    first.note({"tasks": 3})
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(second.open)
        time.sleep(0.2)
        first.remove()
        first.close()
        assert waiting.result() is None
    second.note({"tasks": 1})
    assert (second.folder / "journal").read_text().count("\n") == 2
    second.remove()
    second.close()
    assert not os.listdir(tmp_path)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_part_that_cannot_be_written_ends_the_run_which_goes_on_later(
    make_job, source, tmp_path, whole, monkeypatch, workers
):
    job = make_job(source, tmp_path / "out.jsonl", workers=workers)
    write = writing.write

    def half_written(pieces, path, at=None):
        fails = at is not None and at > len(whole) // 2
        write(pieces[: len(pieces) // 2] if fails else pieces, path, at)
        if fails:
            raise OSError(errno.EIO, "Input/output error", path)

    with monkeypatch.context() as patch:
        patch.setattr(writing, "write", half_written)
        broken = sign(job)
    assert re.fullmatch(
        r"cannot write .*out\.jsonl: Input/output error; look after the disk.*", broken.stopped
    )
    made = sign(job)
    assert made.resumed == broken.read > 0
    assert (tmp_path / "out.jsonl").read_bytes() == whole


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_workers_that_die_when_they_have_written_leave_nothing_of_it(
    make_job, source, tmp_path, whole, monkeypatch, seed
):
    job = make_job(source, tmp_path / "out.jsonl", workers=2)
    write, chance = writing.write, random.Random(seed)
    deadly = {len(whole) * n // 9 for n in chance.sample(range(8), 3)} | {len(whole) - 1}

    def dies(pieces, path, at=None):
        end = (at or 0) + sum(map(len, pieces))
        dying = at is not None and any(at <= place < end for place in deadly)
        write([*pieces, b"more than that"] if dying else pieces, path, at)
        if dying:
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(writing, "write", dies)
    made = sign(job)
    assert (made.signed, made.counts.get("crashes", 0)) == (whole.count(b"\n"), 0)
    assert (tmp_path / "out.jsonl").read_bytes() == whole


def test_the_plan_of_a_file_is_the_same_each_time(make_job, source):
    reading = make_job(source, "-").signer.options.reading
    plans = [list(tasks.tasks([str(source)], reading, {})) for _ in range(2)]
    assert plans[0] == plans[1]
    assert len(plans[0]) > 10
    assert [task.begin for task in plans[0][1:]] == [task.end for task in plans[0][:-1]]


def test_what_stands_beyond_the_last_note_is_not_taken_for_made(tmp_path: Path):
    kept = journal.RunJournal(tmp_path / "signed.jsonl", {})
    kept.open()
    output = kept.folder / journal.OUTPUT
    output.write_bytes(b"noted, and not noted")
    sink = FileSink(kept)
    sink.resume({"bytes": 5})
    assert sink.sync() == 5
    assert output.read_bytes() == b"noted"
    kept.close()


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("journal", "notes of mine"),
        ("journal", "[1, 2]"),
        ("journal", '{"day": 1}\n'),
        ("notes.txt", "x"),
        ("part-time.docx", "x"),
    ],
)
def test_files_of_others_in_the_folder_stay(make_job, tmp_path, name, held, restart):
    source = tmp_path / "in.jsonl"
    source.write_text('{"id": "1", "body": "one two three"}\n')
    folder = tmp_path / "out.jsonl.unfinished"
    folder.mkdir()
    (folder / name).write_text(held)
    (folder / "output").write_text("mine, too")
    with pytest.raises(ConfigError, match=f"{name} is not a file of sign, .* move it away"):
        sign(make_job(source, tmp_path / "out.jsonl", restart=restart))
    assert {path.name: path.read_text() for path in folder.iterdir()} == {name: held, "output": "mine, too"}
