"""Writers that are killed, interrupted or run out of disk in any moment: what they told of is there."""

import multiprocessing
import os
import shutil
import signal
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.decided import create, decided, put, stored
from support.disks import fill_disk
from support.gate.windows import WINDOWS, die_in

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.engines.embedded.store import write_ahead_log as journals
from shinglefold.engines.embedded.store import writer
from shinglefold.engines.embedded.store.write_ahead_log import (
    Change,
    WriteAheadLog,
    journal_files,
    read_journal,
)
from shinglefold.errors import EngineUnavailable, IndexReadOnly


def _rounds(folder: Path, words: Any, window: str, passes: int, told: Any) -> None:
    """Let documents in, and tell of each round once it is let in, until the process is killed."""
    writer._AGE = 0.03
    engine = EmbeddedEngine(folder, words)
    die_in(window, passes)
    for number in range(10**6):
        with engine.lease("pages"):
            for version in range(4):
                decided(engine, put(number % 7, 4 * number + version), put(100 + 4 * number + version))
                told.value = 4 * number + version
                time.sleep(0.005)


@pytest.mark.long(every=12)
@pytest.mark.parametrize("passes", [1, pytest.param(2, marks=pytest.mark.long), 7])
@pytest.mark.parametrize("window", WINDOWS)
def test_a_writer_may_be_killed_in_any_window(tmp_path: Path, words, window: str, passes: int):
    with EmbeddedEngine(tmp_path, words) as engine:
        create(engine)
    context = multiprocessing.get_context("fork")
    # Without a lock, in which the writer could be killed.
    told = context.Value("i", -1, lock=False)
    process = context.Process(target=_rounds, args=(tmp_path, words, window, passes, told))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.check("pages")
        _check(stored(engine), told.value)
        decided(engine, put(3, 10**6))
        engine.refresh("pages")
        assert stored(engine)["3"] == "w1000000"
    assert not journal_files(tmp_path / "pages")


def _check(stored: dict[str, str], told: int) -> None:
    """Hold what is stored against the rounds that were told of; the one after them may be there, too."""
    rounds = sorted(int(id_) - 100 for id_ in stored if int(id_) >= 100)
    assert rounds in (list(range(told + 1)), list(range(told + 2)))
    newest: dict[str, str] = {}
    for number in rounds:
        newest[str(number // 4 % 7)] = f"w{number}"
    changed = {id_: word for id_, word in stored.items() if int(id_) < 100}
    assert changed == newest


@pytest.mark.parametrize("left", [0, 20_000, 60_000])
def test_a_disk_that_is_really_full_loses_nothing_that_was_told(
    small_disk: Path, words, monkeypatch, left: int
):
    monkeypatch.setattr(writer, "_AGE", 0.05)
    told: list[str] = []

    def decide_on(engine: EmbeddedEngine) -> None:
        for number in range(1, 500):
            decided(engine, put(number, more=f"{number} " * 500))
            told.append(str(number))

    with EmbeddedEngine(small_disk / "data", words) as engine:
        create(engine)
        with suppress(IndexReadOnly), engine.lease("pages"):
            decided(engine, put(0))
            filling = fill_disk(small_disk, left)
            with pytest.raises(IndexReadOnly, match=r"the disk is full .*what a gate accepted stays"):
                decide_on(engine)
        filling.unlink()
        decided(engine, put(1000))
        assert {"0", "1000", *told} <= stored(engine).keys()
    with EmbeddedEngine(small_disk / "data", words) as engine:
        engine.check("pages")
        assert {"0", "1000", *told} <= stored(engine).keys()


@pytest.mark.parametrize("where", ["half", "synchronizing"])
def test_an_interrupt_while_a_round_is_noted_leaves_the_journal_whole(
    engine: EmbeddedEngine, tmp_path: Path, words, late, monkeypatch, where: str
):
    create(engine)
    with engine.lease("pages"):
        decided(engine, put(1))
        with monkeypatch.context() as patched:

            def interrupted(descriptor: int) -> None:
                if where == "half":
                    os.ftruncate(descriptor, os.fstat(descriptor).st_size - 5)
                raise KeyboardInterrupt

            patched.setattr(journals.os, "fsync", interrupted)
            with pytest.raises(KeyboardInterrupt):
                decided(engine, put(2))
        decided(engine, put(3))
        copy = tmp_path / "killed" / "pages"
        shutil.copytree(tmp_path / "pages", copy, ignore=shutil.ignore_patterns(".tmp*"))
    with EmbeddedEngine(copy.parent, words) as again:
        assert stored(again).keys() == {"1", "2", "3"}


@pytest.mark.parametrize("where", ["open", "sync_folder"])
def test_an_interrupt_while_a_file_is_begun_leaves_out_no_number(tmp_path: Path, monkeypatch, where: str):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    journal = WriteAheadLog(tmp_path)
    journal.write([Change("1", None)])
    journal.rotate()
    with monkeypatch.context() as patched:
        patched.setattr(journals, where, interrupted, raising=False)
        with pytest.raises(KeyboardInterrupt):
            journal.write([Change("2", None)])
    journal.write([Change("3", None)])
    journal.close()
    assert [change.id for change in read_journal(tmp_path)] == ["1", "3"]


def test_an_interrupt_before_a_commit_loses_nothing_that_was_taken(
    engine: EmbeddedEngine, tmp_path: Path, words, monkeypatch
):
    create(engine)
    engine.bulk([put(1, unheard="of")])
    with monkeypatch.context() as patched:

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        patched.setattr(writer.IndexWriter, "_commit_frozen", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.refresh("pages")
    engine.bulk([put(2)])
    assert engine.get("pages", "1")
    engine.close()
    with EmbeddedEngine(tmp_path, words) as again:
        assert stored(again).keys() == {"1", "2"}
        assert again.mappings("pages")["properties"]["unheard"]


def test_a_commit_that_was_made_and_told_as_failed_doubles_no_document(engine: EmbeddedEngine, monkeypatch):
    create(engine)
    engine.bulk([put(1), put(2)])
    with monkeypatch.context() as patched:

        def fails(_: writer.IndexWriter) -> None:
            raise OSError(5, "Input/output error")

        patched.setattr(writer.IndexWriter, "_forget_frozen", fails)
        with pytest.raises(EngineUnavailable, match="Input/output"):
            engine.refresh("pages")
    engine.bulk([put(1, 1)])
    engine.refresh("pages")
    assert stored(engine) == {"1": "w1", "2": "w0"}


class _Interrupted(deque):
    """What waits to be written, whose writer is interrupted once behind some of it."""

    left = 3

    def popleft(self) -> Any:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt
        return super().popleft()


@pytest.mark.parametrize("taken", ["before", "behind"])
def test_an_interrupt_while_documents_are_written_loses_none_and_doubles_none(
    engine: EmbeddedEngine, tmp_path: Path, words, monkeypatch, taken: str
):
    create(engine)
    engine.bulk([put(1), put(2)])
    engine.refresh("pages")
    engine.bulk([put(3), put(1, 1), put(4), {"_op_type": "delete", "_index": "pages", "_id": "2"}, put(5)])
    own = engine._index("pages")._writer
    with monkeypatch.context() as patched:
        if taken == "behind":
            own._queue = _Interrupted(own._queue)
        else:

            def interrupted(self: writer.IndexWriter, ready: object) -> None:
                patched.undo()
                raise KeyboardInterrupt

            patched.setattr(writer.IndexWriter, "_add_source", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.refresh("pages")
    engine.bulk([put(6)])
    engine.refresh("pages")
    assert stored(engine) == {"1": "w1", **dict.fromkeys("3456", "w0")}
    hits = engine.search("pages", {"query": {"match": {"body": "many"}}})["hits"]["hits"]
    # None has its words twice.
    assert len(hits) == 5
    assert len({hit["_score"] for hit in hits}) == 1
    engine.check("pages")
    engine.close()
    with EmbeddedEngine(tmp_path, words) as again:
        assert stored(again) == {"1": "w1", **dict.fromkeys("3456", "w0")}
