import gzip
import json
import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from support.maintenance import FIELDS, pages, stored, wrongly_signed

from shinglefold.errors import ConfigError, EngineUnavailable, InputError
from shinglefold.ingest import index_documents
from shinglefold.ingest.readers.record import Record
from shinglefold.ingest.writing.dead_letters import DeadLetters
from shinglefold.maintenance.retry import lock_letters, retry
from shinglefold.runtime.backoff import Backoff


@pytest.fixture
def failed(engine, pipeline, tmp_path: Path) -> Path:
    """A dead-letter file of an index run in which 5 of 50 documents failed."""
    documents = [{**page, "body": 5} if n % 10 == 0 else page for n, page in enumerate(pages(50))]
    path = tmp_path / "failed.jsonl"
    summary = index_documents(
        engine, "pages", documents, pipeline, workers=1, properties=FIELDS, dead_letters=path
    )
    assert (summary.indexed, summary.failed) == (45, 5)
    return path


def mend(path: Path, ids: set[str]) -> None:
    letters = [json.loads(line) for line in path.read_text().splitlines()]
    for letter in letters:
        if letter["document"]["_id"] in ids:
            letter["document"]["body"] = pages(1, seed=5)[0]["body"]
    path.write_text("".join(json.dumps(letter) + "\n" for letter in letters))


def letters_in(path: Path) -> list[str]:
    return [json.loads(line)["document"]["_id"] for line in path.read_text().splitlines()]


def test_corrected_letters_are_indexed_and_the_rest_stays(engine, failed, pipeline):
    mend(failed, {"page-0", "page-20"})
    summary = retry(engine, "pages", failed, pipeline, workers=1)
    assert (summary.read, summary.indexed, summary.failed) == (5, 2, 3)
    assert letters_in(failed) == ["page-10", "page-30", "page-40"]
    assert not list(wrongly_signed(stored(engine, "pages"), pipeline.tools.fingerprinter))
    assert sorted(failed.parent.glob("failed*")) == [failed]


def test_the_file_is_gone_when_nothing_fails_again(engine, failed, pipeline):
    mend(failed, {f"page-{n}" for n in range(50)})
    summary = retry(engine, "pages", failed, pipeline, workers=1)
    assert (summary.failed, summary.dead_letters) == (0, "")
    assert not list(failed.parent.glob("failed*"))
    with pytest.raises(InputError, match="check the path"):
        retry(engine, "pages", failed, pipeline)


def test_letters_of_a_killed_run_are_tried_first(engine, failed, pipeline):
    mend(failed, {"page-0", "page-10", "page-20"})
    lines = failed.read_text().splitlines(keepends=True)
    aside = failed.with_name("failed.jsonl.retrying")
    aside.write_text("".join(lines[:2]))
    failed.write_text("".join(lines[2:]))
    summary = retry(engine, "pages", failed, pipeline, workers=1)
    assert (summary.read, summary.indexed) == (5, 3)
    assert letters_in(failed) == ["page-30", "page-40"]
    assert not aside.exists()


def test_an_engine_that_is_gone_loses_no_letter(engine, failed, pipeline, monkeypatch):
    before = letters_in(failed)

    def gone(_):
        raise EngineUnavailable("gone; start it")

    mend(failed, set(before))
    with monkeypatch.context() as patch:
        patch.setattr(engine, "bulk", gone)
        summary = retry(engine, "pages", failed, pipeline, workers=1, backoff=Backoff(0))
    assert summary.stopped == "gone; start it"
    assert summary.read == summary.failed == 5
    assert letters_in(failed) == before
    assert retry(engine, "pages", failed, pipeline, workers=1).indexed == 5


def test_a_run_stopped_before_its_first_letter_leaves_them_all(engine, failed, pipeline, monkeypatch):
    before = failed.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("shinglefold.ingest.writing.indexer._IndexRun.all_blocks", _interrupted)
        summary = retry(engine, "pages", failed, pipeline, workers=1)
    assert (summary.stopped, summary.read) == ("interrupted", 0)
    assert failed.read_bytes() == before
    assert retry(engine, "pages", failed, pipeline, workers=1).read == 5


def _interrupted(*_):
    raise KeyboardInterrupt


def test_the_file_stays_until_the_last_letter_is_settled(engine, failed, pipeline):
    before = failed.read_bytes()
    seen = []
    retry(engine, "pages", failed, pipeline, workers=1, progress=lambda _: seen.append(failed.read_bytes()))
    assert set(seen) == {before}
    assert letters_in(failed) == [f"page-{n}" for n in (0, 10, 20, 30, 40)]


def test_letters_written_meanwhile_stay(engine, failed, pipeline):
    mend(failed, {"page-0"})
    late = failed.read_text().splitlines()[1].replace("page-10", "late")
    seen = []

    def append(_) -> None:
        if not seen:
            failed.write_text(failed.read_text() + late + "\n")
        seen.append(1)

    retry(engine, "pages", failed, pipeline, workers=1, progress=append)
    assert letters_in(failed) == ["page-10", "page-20", "page-30", "page-40", "late"]


def test_letters_of_a_killed_run_are_tried_once_and_later_corrections_win(engine, failed, pipeline):
    aside = failed.with_name("failed.jsonl.retrying")
    letters = [json.loads(line) for line in failed.read_text().splitlines()]
    again = [{**letter, "reason": "failed again"} for letter in letters[:3]]
    aside.write_text("".join(json.dumps(letter) + "\n" for letter in again))
    mend(failed, {"page-0"})
    summary = retry(engine, "pages", failed, pipeline, workers=1)
    assert (summary.read, summary.indexed) == (6, 1)
    assert "page-0" in stored(engine, "pages")
    assert sorted(failed.parent.glob("failed*")) == [failed]


def test_a_run_that_can_not_begin_leaves_nothing_behind(engine, failed, pipeline):
    before = failed.read_bytes()
    engine.create_index("bare", {"properties": FIELDS}, {})
    with pytest.raises(ConfigError):
        retry(engine, "bare", failed, pipeline, workers=1)
    assert failed.read_bytes() == before
    assert sorted(failed.parent.glob("failed*")) == [failed]


def test_empty_lines_and_half_a_letter_are_no_harm(engine, failed, pipeline):
    half = failed.read_text().splitlines()[0][:60]
    mend(failed, {f"page-{n}" for n in range(50)})
    failed.write_text(f"\n{failed.read_text()}\n{half}\n")
    summary = retry(engine, "pages", failed, pipeline, workers=1)
    assert (summary.read, summary.indexed, summary.failed) == (6, 5, 1)
    (left,) = failed.read_text().splitlines()
    assert json.loads(left)["raw"] == half


def test_two_runs_do_not_share_a_file(engine, failed, pipeline):
    told = []

    def other(_) -> None:
        with pytest.raises(InputError, match="another run"), lock_letters(failed):
            pass
        told.append(1)

    retry(engine, "pages", failed, pipeline, workers=1, progress=other)
    assert told


def test_a_refused_run_leaves_the_letters_of_another_run(engine, failed, pipeline):
    before, told = letters_in(failed), []

    def other(_) -> None:
        with pytest.raises(InputError, match="another run"):
            retry(engine, "pages", failed, pipeline, workers=1)
        told.append(1)

    retry(engine, "pages", failed, pipeline, workers=1, progress=other)
    assert told
    assert letters_in(failed) == before


@pytest.mark.parametrize("mended", [{"page-0"}, {f"page-{n}" for n in range(50)}], ids=["one", "all"])
def test_letters_of_a_concurrent_run_go_into_the_new_file(engine, failed, pipeline, mended):
    mend(failed, mended)
    left = [one for one in letters_in(failed) if one not in mended]
    with closing(DeadLetters(failed)) as others:

        def fail(id_: str) -> None:
            others.write("index", "400: no text", Record({"_id": id_, "body": 5}, "s", 1))

        retry(engine, "pages", failed, pipeline, workers=1, progress=lambda _: fail("meanwhile"))
        fail("later")
    assert letters_in(failed) == [*left, "meanwhile", "later"]


def test_letters_that_come_in_the_moment_of_the_replacement_stay(engine, failed, pipeline, monkeypatch):
    mend(failed, {"page-0"})
    late = failed.read_text().splitlines()[1].replace("page-10", "late")
    copymode = shutil.copymode
    with failed.open("a") as file:

        def append(path: Path, part: Path) -> None:
            copymode(path, part)
            file.write(late + "\n")
            file.flush()

        monkeypatch.setattr("shutil.copymode", append)
        retry(engine, "pages", failed, pipeline, workers=1)
    assert letters_in(failed) == ["page-10", "page-20", "page-30", "page-40", "late"]


def test_what_takes_the_place_of_the_letters_is_on_the_disk_before(engine, failed, pipeline, monkeypatch):
    before, synced, there = letters_in(failed), [], []
    fsync, copymode = os.fsync, shutil.copymode

    def sync(descriptor: int) -> None:
        fsync(descriptor)
        synced.append(os.fstat(descriptor).st_ino)

    def look(path: Path, part: Path) -> None:
        assert part.stat().st_ino in synced
        there.append(letters_in(part))
        copymode(path, part)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(shutil, "copymode", look)
    monkeypatch.setattr("shinglefold.ingest.writing.indexer._IndexRun.all_blocks", _interrupted)
    retry(engine, "pages", failed, pipeline, workers=1)
    assert there == [before]


def test_what_a_run_left_that_was_killed_while_it_put_letters_together_is_no_obstacle(
    engine, failed, pipeline
):
    lines = failed.read_text().splitlines(keepends=True)
    failed.with_name("failed.jsonl.retrying").write_text("".join(lines[:2]))
    foreign = failed.with_name("failed.jsonl.retrying.part")
    foreign.write_text("somebody else's")
    failed.write_text("".join(lines[2:]))
    assert retry(engine, "pages", failed, pipeline, workers=1).read == 5
    assert letters_in(failed) == [f"page-{n}" for n in (0, 10, 20, 30, 40)]
    assert sorted(failed.parent.glob("failed*")) == [failed, foreign]
    assert foreign.read_text() == "somebody else's"


def _png() -> bytes:
    return b"\x89PNG\r\n\x1a\n" + bytes(range(256))


FOREIGN = {
    "pages.jsonl": b'{"id": "1", "body": "text"}\n{"id": "2", "body": "text"}\n',
    "log.jsonl": b'{"reason": "x", "stage": "y"}\n',
    "rows.csv": b"id,body\n1,text\n",
    "pages.jsonl.gz": gzip.compress(b'{"id": "1", "body": "text"}\n'),
    "image.png": _png(),
    "page.html": b"<p>text</p>\n",
    "empty.jsonl": b"",
    "blank.txt": b"\n\n",
    "pretty.json": b'{\n  "reason": "x",\n  "stage": "y"\n}\n',
    "utf16.jsonl": '{"reason": "x", "stage": "y", "line": 1, "source": "s", "raw": ""}\n'.encode("utf-16"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_without_dead_letters_are_not_changed(engine, pipeline, tmp_path: Path, name):
    folder = tmp_path / "given"
    folder.mkdir()
    path = folder / name
    path.write_bytes(FOREIGN[name])
    before = path.stat()
    with pytest.raises(InputError, match="save it as" if "utf16" in name else "was not changed"):
        retry(engine, "pages", path, pipeline, workers=1)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (FOREIGN[name], before.st_mtime_ns)
    assert list(folder.iterdir()) == [path]
    assert not engine.index_exists("pages")


def test_a_file_with_one_letter_among_other_lines_is_refused(engine, failed, pipeline):
    failed.write_text(failed.read_text() + '{"id": "a page"}\n')
    before = failed.read_bytes()
    with pytest.raises(InputError, match="line 6 is not a dead letter"):
        retry(engine, "pages", failed, pipeline, workers=1)
    assert failed.read_bytes() == before


def test_a_folder_a_link_and_a_pipe_are_refused(engine, failed, pipeline, tmp_path: Path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(InputError, match="is a folder"):
        retry(engine, "pages", folder, pipeline, workers=1)
    assert folder.is_dir()
    link = tmp_path / "link.jsonl"
    link.symlink_to(failed)
    with pytest.raises(InputError, match=f"give the file itself: {failed}"):
        retry(engine, "pages", link, pipeline, workers=1)
    assert link.is_symlink()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="not a regular file"):
        retry(engine, "pages", pipe, pipeline, workers=1)
    assert len(letters_in(failed)) == 5


def test_a_write_protected_file_is_refused_before_anything_is_indexed(engine, failed, pipeline):
    mend(failed, {"page-0"})
    failed.chmod(0o444)
    with pytest.raises(InputError, match=r"chmod u\+w"):
        retry(engine, "pages", failed, pipeline, workers=1)
    assert "page-0" not in stored(engine, "pages")


def test_other_content_of_the_temporary_file_is_not_touched(engine, failed, pipeline):
    aside = failed.with_name("failed.jsonl.retrying")
    aside.write_text("my notes\n")
    before = failed.read_bytes()
    with pytest.raises(InputError, match="retrying was not changed"):
        retry(engine, "pages", failed, pipeline, workers=1)
    assert (aside.read_text(), failed.read_bytes()) == ("my notes\n", before)


def test_who_may_read_the_file_stays_the_same(engine, failed, pipeline):
    failed.chmod(0o600)
    retry(engine, "pages", failed, pipeline, workers=1)
    assert failed.stat().st_mode & 0o777 == 0o600
