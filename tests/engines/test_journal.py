"""What a journal has is there whoever is killed, is applied once, and damage to it is told."""

import multiprocessing
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.decided import FIELDS, create, decided, drop, put, stored
from support.gate.windows import die_in

from shinglefold.engines.embedded import CommitLimits, EmbeddedEngine
from shinglefold.engines.embedded.store import index, writer
from shinglefold.engines.embedded.store import record_files as volumes
from shinglefold.engines.embedded.store import write_ahead_log as journals
from shinglefold.engines.embedded.store.document_encoder import StoredSource
from shinglefold.engines.embedded.store.write_ahead_log import (
    Change,
    JournalDamage,
    WriteAheadLog,
    journal_files,
    read_journal,
)
from shinglefold.errors import EngineUnavailable, IndexReadOnly


@pytest.fixture
def killed(engine: EmbeddedEngine, tmp_path: Path, late) -> Path:
    """The folder as a writer leaves it that is killed after five rounds, the first of which was committed."""
    create(engine)
    decided(engine, put(0), put(1))
    with engine.lease("pages"):
        decided(engine, put(2), put(3, unheard="of"))
        decided(engine, put(2, 1), put(4))
        decided(engine, drop(4), drop(0))
        decided(engine, {"_op_type": "update", "_index": "pages", "_id": "3", "doc": {"word": "w2"}})
        copy = tmp_path / "killed"
        # Threads of tantivy write their notes beside.
        shutil.copytree(tmp_path / "pages", copy / "pages", ignore=shutil.ignore_patterns(".tmp*"))
    return copy


_LEFT = {"1": "w0", "2": "w1", "3": "w2"}


def test_what_is_not_committed_is_made_again_by_whoever_opens_the_index_next(killed: Path, words):
    assert journal_files(killed / "pages")
    with EmbeddedEngine(killed, words) as engine:
        assert stored(engine) == _LEFT
        assert engine.mappings("pages")["properties"]["unheard"]
        found = engine.search("pages", {"query": {"match": {"unheard": "of"}}})["hits"]["hits"]
        assert [hit["_id"] for hit in found] == ["3"]
        engine.check("pages")
    assert not journal_files(killed / "pages")


def test_a_journal_that_was_committed_and_is_still_there_changes_nothing(killed: Path, words, tmp_path: Path):
    shutil.copytree(killed / "pages" / "journal", tmp_path / "kept")
    for _ in range(2):
        with EmbeddedEngine(killed, words) as engine:
            assert stored(engine) == _LEFT
        shutil.rmtree(killed / "pages" / "journal")
        shutil.copytree(tmp_path / "kept", killed / "pages" / "journal")
    with EmbeddedEngine(killed, words) as engine:
        assert stored(engine) == _LEFT


def test_an_end_that_is_cut_short_was_never_told_and_is_left_out(killed: Path, words, tmp_path: Path):
    (file,) = journal_files(killed / "pages")
    content = file.read_bytes()
    ends = _batch_ends(content)
    assert len(ends) == 4
    for length in range(len(content)):
        file.write_bytes(content[:length])
        whole = sum(end <= length for end in ends)
        assert len(read_journal(killed / "pages")) == [0, 2, 4, 6, 7][whole]
    # A machine that loses its power may have made the file longer and not filled it.
    for zeros in (1, 19, 20, 500):
        file.write_bytes(content[: ends[1]] + content[ends[1] : ends[1] + 10] + bytes(zeros))
        assert len(read_journal(killed / "pages")) == 4
    file.write_bytes(content[: ends[2] - 1])
    with EmbeddedEngine(killed, words) as engine:
        assert stored(engine) == {"0": "w0", "1": "w0", "2": "w1", "3": "w0", "4": "w0"}


def _batch_ends(content: bytes) -> list[int]:
    ends = [0]
    while ends[-1] < len(content):
        length = int.from_bytes(content[ends[-1] + 8 : ends[-1] + 12], "little")
        ends.append(ends[-1] + 12 + length)
    return ends[1:]


def test_every_changed_byte_is_told(tmp_path: Path):
    journal = WriteAheadLog(tmp_path)
    for number in range(3):
        journal.write(
            [Change(str(number), StoredSource(b'{"a":1}', b'["%d",{}]' % number)), Change("x", None)]
        )
    journal.close()
    (file,) = journal_files(tmp_path)
    content = file.read_bytes()
    assert len(read_journal(tmp_path)) == 6
    for place in range(len(content)):
        for bit in (0, 7):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            file.write_bytes(bytes(changed))
            with pytest.raises(JournalDamage, match=r"00000001.batches has changed"):
                read_journal(tmp_path)


def test_a_file_between_two_that_is_missing_is_told(tmp_path: Path):
    journal = WriteAheadLog(tmp_path)
    for number in range(3):
        journal.write([Change(str(number), None)])
        journal.rotate()
    first, second, third = journal_files(tmp_path)
    second.unlink()
    with pytest.raises(JournalDamage, match=r"that follows 00000001\.batches is missing"):
        read_journal(tmp_path)
    first.unlink()
    assert [change.id for change in read_journal(tmp_path)] == ["2"]
    third.unlink()
    assert read_journal(tmp_path) == []


def test_damage_is_told_by_all_who_open_the_index_with_the_command_that_gives_it_up(killed: Path, words):
    (file,) = journal_files(killed / "pages")
    content = bytearray(file.read_bytes())
    content[40] ^= 1
    file.write_bytes(bytes(content))
    with EmbeddedEngine(killed, words) as engine:
        with pytest.raises(EngineUnavailable, match="journal of the index") as caught:
            engine.search("pages", {})
        assert f"rm -r {killed / 'pages' / 'journal'}" in str(caught.value)
        with pytest.raises(EngineUnavailable, match="has changed"):
            decided(engine, put(9))
        shutil.rmtree(killed / "pages" / "journal")
        assert stored(engine) == {"0": "w0", "1": "w0"}


def test_a_check_finds_damage_that_comes_while_an_index_is_open(engine: EmbeddedEngine, tmp_path: Path, late):
    create(engine)
    with engine.lease("pages"):
        decided(engine, put(1))
        (file,) = journal_files(tmp_path / "pages")
        content = file.read_bytes()
        engine.check("pages")
        file.write_bytes(content[:-3] + b"xx\n")
        with pytest.raises(EngineUnavailable, match=r"journal/00000001.batches has changed"):
            engine.check("pages")


def test_what_is_noted_is_read_by_id_and_told_of_by_its_values_before_searches_see_it(engine, late):
    create(engine)
    with engine.lease("pages"):
        decided(engine, put(1, 1), put(2, 2))
        decided(engine, put(2, 3))
        assert stored(engine) == {}
        assert engine.get("pages", "2")["_source"]["word"] == "w3"
        assert [one and one["word"] for one in engine.get_all("pages", ["1", "9", "2"])] == ["w1", None, "w3"]
        told = engine.pending_by_value("pages", "word", ["w1", "w3", "w4"])
        assert told == {"w1": ["1"], "w3": ["2"]}
        assert engine.pending_by_value("pages", "number", [2]) == {2: ["2"]}
        engine.refresh("pages")
        assert stored(engine) == {"1": "w1", "2": "w3"}
        assert engine.pending_by_value("pages", "word", ["w1", "w3"]) == {}


@pytest.mark.parametrize(("limit", "least"), [("_DOCUMENTS", 5), ("_JOURNAL", 1_000)])
def test_many_or_long_documents_are_committed_before_their_time(engine, monkeypatch, late, limit, least):
    monkeypatch.setattr(writer, limit, least)
    create(engine)
    with engine.lease("pages"):
        for number in range(5):
            decided(engine, put(number, word="x" * 100))
        end = time.monotonic() + 10
        while not stored(engine):
            assert time.monotonic() < end
            time.sleep(0.01)
            decided(engine, put(9, word="x" * 100))


def test_what_was_written_before_somebody_asks_by_values_is_seen_by_searches(engine, late):
    create(engine)
    engine.bulk([put(1)])
    with engine.deciding("pages", FIELDS):
        assert stored(engine) == {"1": "w0"}


def test_a_commit_goes_on_beside_and_loses_nothing_of_what_comes_meanwhile(engine, monkeypatch, tmp_path):
    monkeypatch.setattr(writer, "_AGE", 0.0)
    create(engine)
    with engine.lease("pages"):
        for number in range(60):
            decided(engine, put(number % 40, number))
            assert engine.get("pages", str(number % 40))["_source"]["word"] == f"w{number}"
            told = engine.pending_by_value("pages", "word", [f"w{number}"])
            assert told or stored(engine)[str(number % 40)] == f"w{number}"
        engine.refresh("pages")
        expected = {str(n): f"w{n + 40 if n < 20 else n}" for n in range(40)}
        assert stored(engine) == expected
        assert len(journal_files(tmp_path / "pages")) == 0


@contextmanager
def _commit_that_waits(monkeypatch) -> Iterator[threading.Event]:
    """Have what is decided meanwhile begin a commit beside, which goes on when the event is set."""
    store, on = writer.IndexWriter._commit_frozen, threading.Event()

    def slowly(*given: Any) -> None:
        assert on.wait(20)
        store(*given)

    with monkeypatch.context() as patched:
        patched.setattr(writer.IndexWriter, "_commit_frozen", slowly)
        patched.setattr(writer, "_AGE", 0.0)
        yield on


def test_fields_that_come_while_a_commit_goes_on_are_known_ever_after(
    engine, tmp_path: Path, words, monkeypatch, late
):
    create(engine)
    with engine.lease("pages"):
        with _commit_that_waits(monkeypatch) as on:
            decided(engine, put(1, first="one"))
        decided(engine, put(2, unheard="of"))
        on.set()
    with EmbeddedEngine(tmp_path, words) as again:
        for query, id_ in (({"first": "one"}, "1"), ({"unheard": "of"}, "2")):
            hits = again.search("pages", {"query": {"match": query}})["hits"]["hits"]
            assert [hit["_id"] for hit in hits] == [id_]


def test_others_see_what_is_let_in_once_it_is_committed(engine, tmp_path: Path, words, monkeypatch):
    monkeypatch.setattr(writer, "_AGE", 0.05)
    create(engine)
    with EmbeddedEngine(tmp_path, words) as reader, engine.lease("pages"):
        end = time.monotonic() + 60
        number = 0
        while not stored(reader):
            assert time.monotonic() < end
            decided(engine, put(number % 5))
            number += 1
            time.sleep(0.01)
    with EmbeddedEngine(tmp_path, words) as reader:
        assert len(stored(reader)) == min(number, 5)


def test_who_had_an_index_open_sees_what_a_killed_writer_left(killed: Path, words, monkeypatch, tmp_path):
    monkeypatch.setattr(index, "_CHECK_EVERY", 0.0)
    shutil.copytree(killed / "pages" / "journal", tmp_path / "kept")
    shutil.rmtree(killed / "pages" / "journal")
    with EmbeddedEngine(killed, words) as engine:
        assert stored(engine) == {"0": "w0", "1": "w0"}
        shutil.copytree(tmp_path / "kept", killed / "pages" / "journal")
        time.sleep(0.01)
        assert stored(engine) == _LEFT


def test_searches_go_on_where_what_was_left_can_not_be_committed(killed: Path, words, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(writer.RecordAppender, "flush", full)
        with EmbeddedEngine(killed, words) as engine:
            assert stored(engine) == {"0": "w0", "1": "w0"}
            with pytest.raises(IndexReadOnly, match="the disk is full"):
                decided(engine, put(9))
    with EmbeddedEngine(killed, words) as engine:
        assert stored(engine) == _LEFT


def test_on_a_full_disk_nothing_is_told_as_done_and_nothing_that_was_is_lost(engine, monkeypatch, late):
    create(engine)
    with engine.lease("pages"):
        decided(engine, put(1))
        with monkeypatch.context() as patched:

            def full(_: int) -> None:
                raise OSError(28, "No space left on device")

            patched.setattr(journals.os, "fsync", full)
            with pytest.raises(IndexReadOnly, match=r"the disk is full .*what a gate accepted stays") as told:
                decided(engine, put(2))
        # The first one is in the journal.
        assert told.value.lost == 1
        decided(engine, put(3))
        assert engine.get("pages", "1")
        engine.refresh("pages")
        assert {"1", "3"} <= stored(engine).keys()


def _decided_for(engine, seconds):
    """Let a document in again and again: the commit beside takes its time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        decided(engine, put(2))
        time.sleep(0.01)


def test_a_commit_beside_that_fails_is_told_and_what_it_had_is_made_again(engine, monkeypatch, late):
    create(engine)
    with engine.lease("pages"):
        decided(engine, put(1))
        with monkeypatch.context() as patched:

            def fail(*_: object) -> None:
                raise OSError(5, "Input/output error")

            patched.setattr(writer.RecordAppender, "flush", fail)
            patched.setattr(writer, "_AGE", 0.0)
            with pytest.raises(EngineUnavailable, match="Input/output"):
                _decided_for(engine, 60.0)
        decided(engine, put(1000))
        engine.refresh("pages")
        assert {"1", "2", "1000"} <= stored(engine).keys()


def test_what_is_written_past_a_journal_is_not_undone_by_it(engine, tmp_path: Path, words, late, monkeypatch):
    create(engine)
    with engine.lease("pages"):
        decided(engine, put(1, 1))
        engine.bulk([put(1, 2), put(2, 2)])
        # Killed once it is committed, while the journal is still there.
        monkeypatch.setattr(WriteAheadLog, "truncate", lambda self: shutil.copytree(
            tmp_path / "pages", tmp_path / "copy" / "pages"
        ) and None)  # fmt: skip
        engine.refresh("pages")
        monkeypatch.undo()
        assert journal_files(tmp_path / "copy" / "pages")
    with EmbeddedEngine(tmp_path / "copy", words) as again:
        assert stored(again) == {"1": "w2", "2": "w2"}


def test_a_portion_that_is_full_is_committed_with_what_the_journal_has(tmp_path: Path, words, late):
    with EmbeddedEngine(tmp_path, words, CommitLimits(actions=10)) as engine:
        create(engine)
        with engine.lease("pages"):
            for begin in range(0, 45, 3):
                decided(engine, *(put(number) for number in range(begin, begin + 3)))
            assert 30 < len(stored(engine)) < 45
            assert engine.pending_by_value("pages", "number", [44]) == {44: ["44"]}
    with EmbeddedEngine(tmp_path, words) as engine:
        assert len(stored(engine)) == 45


def test_what_is_made_again_may_be_killed_itself(killed: Path, words):
    context = multiprocessing.get_context("fork")
    for window in ("committing", "heads stored", "committed", "removing", "removed"):
        process = context.Process(target=_reopened, args=(killed, words, window))
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
    with EmbeddedEngine(killed, words) as engine:
        assert stored(engine) == _LEFT


def _reopened(folder: Path, words: Any, window: str) -> None:
    die_in(window, 1)
    with EmbeddedEngine(folder, words) as engine:
        engine.search("pages", {})


def test_new_columns_come_while_others_decide(engine: EmbeddedEngine, late):
    create(engine)
    wide = {f"field{number}": f"text {number}" for number in range(80)}
    with engine.lease("pages"):
        decided(engine, put(1, 1))
        with engine.deciding("pages", FIELDS):
            engine.bulk([put(2, 2), put(3, 3, **wide), put(4, 4)])
            seen = stored(engine)
            told = engine.pending_by_value("pages", "word", ["w1", "w2", "w3", "w4"])
            assert {*seen, *(id_ for several in told.values() for id_ in several)} == {"1", "2", "3", "4"}
        assert engine.get("pages", "3")["_source"]["field79"] == "text 79"
    assert stored(engine).keys() == {"1", "2", "3", "4"}


def test_space_given_back_behind_a_commit_beside_leaves_what_came_meanwhile(engine, monkeypatch, late):
    monkeypatch.setattr(volumes, "VOLUME", 200)
    create(engine)
    with engine.lease("pages"):
        decided(engine, *(put(number, text=f"{number} " * 100) for number in range(20)))
        engine.refresh("pages")
        with _commit_that_waits(monkeypatch) as on:
            # Nothing but the first document is left where it stood.
            decided(engine, *(put(number, 100 + number, text=f"{number} " * 100) for number in range(1, 20)))
        decided(engine, put(0, 7))
        on.set()
        engine.refresh("pages")
        assert stored(engine) == {"0": "w7"} | {str(number): f"w{100 + number}" for number in range(1, 20)}
        assert engine.get("pages", "0")["_source"] == put(0, 7)["_source"]
