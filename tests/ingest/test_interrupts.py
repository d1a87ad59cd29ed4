"""Ctrl-C and SIGTERM at any time: the run ends soon, and its counts are exact."""

import _thread
import itertools
import os
import select
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from shinglefold.contracts.engine import BulkFailure, BulkResult, Capabilities, Engine
from shinglefold.ingest import Pipeline, index_documents
from shinglefold.ingest.writing.accounting import Summary
from shinglefold.ingest.writing.dead_letters import replay
from shinglefold.runtime import signals as interrupts
from shinglefold.runtime.backoff import Backoff
from shinglefold.runtime.signals import Interrupts

Make = Callable[..., Pipeline]
#: Documents in a block, however short they are.
BLOCK = 1_000
PATIENT = Backoff(retries=3, first=600.0, most=600.0)
#: Seconds a run may take to end; a machine may be busy.
SOON = 60.0


class Tapped:
    """A real engine that tells of each bulk request before it is run, and may have an answer of its own."""

    def __init__(
        self, engine: Engine, tap: Callable[[int, list[Any]], BulkResult | None], at_once: int
    ) -> None:
        self._engine = engine
        self._tap = tap
        self._lock = threading.Lock()
        self._requests = itertools.count(1)
        self.can = Capabilities(bulks_at_once=at_once)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def bulk(self, actions: Iterable[Mapping[str, Any]]) -> BulkResult:
        given = list(actions)
        answer = self._tap(next(self._requests), given)
        with self._lock:
            return self._engine.bulk(given) if answer is None else answer


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """Shells start background jobs with Ctrl-C ignored."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def plain(make_pipeline: Make) -> Pipeline:
    return make_pipeline({"fail": {"if": "ctx.bad == true", "message": "bad"}})


def ask(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def ask_in_del(number: int) -> None:
    class Dying:
        def __del__(self) -> None:
            ask(number)

    Dying()


def ask_in_weak_reference(number: int) -> None:
    class Dying:
        pass

    dying = Dying()
    alive = weakref.ref(dying, lambda _: ask(number))
    del dying
    assert alive() is None


def endless() -> Iterator[dict[str, Any]]:
    for n in itertools.count():
        yield {"_id": str(n), "n": n, "bad": n % 400 == 7}


def untouched(_: int, __: list[Any]) -> None:
    pass


def busy(given: list[Any]) -> BulkResult:
    return BulkResult(0, tuple(BulkFailure(one, 429, "busy") for one in given))


def assert_exact(summary: Summary, engine: Engine, dead: Path) -> None:
    assert summary.read == summary.indexed + summary.dropped + summary.failed
    made = engine.index_exists("i")
    # Without a document that goes in there is no index.
    assert made == summary.made
    body = {"size": 0, "track_total_hits": True}
    found = engine.search("i", body)["hits"]["total"]["value"] if made else 0
    assert found == summary.indexed
    letters = [record.document["n"] for record in replay(dead)] if dead.exists() else []
    assert len(letters) == summary.failed
    there = {n for n in range(summary.read) if made and engine.get("i", str(n))}
    assert there.isdisjoint(letters)
    assert there | set(letters) == set(range(summary.read))


@pytest.mark.long(every=16)
@pytest.mark.parametrize(
    ("number", "workers", "at_once"),
    [
        (signal.SIGINT, 2, 2),
        (signal.SIGTERM, 1, 2),
        pytest.param(signal.SIGTERM, 2, 1, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize(
    "way",
    [
        ask,
        pytest.param(ask_in_del, marks=pytest.mark.long),
        pytest.param(ask_in_weak_reference, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("moment", ["record", "first record", "bulk", "progress"])
def test_at_any_moment_it_ends_the_run_with_books_that_are_exact(
    engine, plain, tmp_path: Path, moment: str, number: int, way, workers: int, at_once: int
):
    def documents() -> Iterator[dict[str, Any]]:
        for document in endless():
            if document["n"] == {"record": 4_321, "first record": 0}.get(moment):
                way(number)
            yield document

    def tap(request: int, _: list[Any]) -> None:
        if moment == "bulk" and request == 3:
            way(number)

    def progress(told: Any) -> None:
        if moment == "progress" and told.read >= 2 * BLOCK:
            way(number)

    dead = tmp_path / "dead.jsonl"
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    tapped = Tapped(engine, tap, at_once)
    summary = index_documents(
        tapped, "i", documents(), plain, workers=workers, dead_letters=dead, progress=progress
    )
    assert summary.stopped == ("interrupted" if number == signal.SIGINT else "terminated")
    assert_exact(summary, engine, dead)
    assert (summary.indexed > 0) == (moment != "first record")
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.parametrize("workers", [1, 2])
def test_input_that_does_not_come_is_not_waited_for(engine, plain, tmp_path: Path, workers: int):
    silent, _writer = os.pipe()

    def documents() -> Iterator[dict[str, Any]]:
        yield from itertools.islice(endless(), 2 * BLOCK)
        threading.Timer(0.1, ask).start()
        select.select([silent], [], [], SOON)

    dead = tmp_path / "dead.jsonl"
    start = time.monotonic()
    tapped = Tapped(engine, untouched, 2)
    summary = index_documents(tapped, "i", documents(), plain, workers=workers, dead_letters=dead)
    assert time.monotonic() - start < SOON
    assert summary.stopped == "interrupted"
    assert_exact(summary, engine, dead)


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_busy_engine_is_not_waited_for(engine, plain, tmp_path: Path, at_once: int):
    def tap(request: int, given: list[Any]) -> BulkResult:
        if request == at_once:
            ask()
        return busy(given)

    dead = tmp_path / "dead.jsonl"
    start = time.monotonic()
    summary = index_documents(
        Tapped(engine, tap, at_once), "i", endless(), plain, workers=1, backoff=PATIENT, dead_letters=dead
    )
    assert time.monotonic() - start < SOON
    assert summary.stopped == "interrupted"
    assert_exact(summary, engine, dead)


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_second_one_waits_for_no_answer(engine, plain, tmp_path: Path, at_once: int):
    silence, _writer = os.pipe()

    def twice() -> None:
        ask()
        run = signal.getsignal(signal.SIGINT).__self__
        while not run.signal:
            time.sleep(0.05)
        # One that follows at once counts as the same.
        time.sleep(0.5)
        ask()

    def tap(request: int, _: list[Any]) -> None:
        if request == 1:
            threading.Thread(target=twice).start()
        select.select([silence], [], [], SOON)

    dead = tmp_path / "dead.jsonl"
    start = time.monotonic()
    summary = index_documents(
        Tapped(engine, tap, at_once), "i", endless(), plain, workers=1, dead_letters=dead
    )
    assert time.monotonic() - start < SOON
    assert summary.stopped == "interrupted"
    assert any("interrupted again before the engine answered" in reason for reason in summary.reasons)
    assert_exact(summary, engine, dead)


def test_a_second_one_that_falls_together_with_a_reminder_is_not_taken_for_it():
    with Interrupts() as run:
        # Both wait, as on a busy machine, until the process gets round to them: then they are one.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.getsignal(signal.SIGINT)(signal.SIGINT, None)
        time.sleep(0.8)
        ask()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        time.sleep(0.1)
    assert run.insistent


def test_reminders_alone_are_no_second_one():
    with Interrupts() as run:
        ask()
        time.sleep(1.2)
    assert not run.insistent


def test_nothing_is_left_that_wakes_while_the_interpreter_ends(monkeypatch):
    monkeypatch.setattr(interrupts, "_PATIENCE", 600.0)
    before, end = _thread._count(), time.monotonic() + SOON
    for _ in range(20):
        with Interrupts():
            ask()
            while _thread._count() == before and time.monotonic() < end:
                time.sleep(0.001)
    while (left := _thread._count() - before) and time.monotonic() < end:
        time.sleep(0.001)
    assert not left


def test_a_signal_at_the_end_of_the_block_starts_nothing():
    run = Interrupts()
    with run:
        handler = signal.getsignal(signal.SIGINT)
    before = _thread._count()
    with run._reminding:
        handler(signal.SIGINT, None)
        assert (run.signal, _thread._count()) == (signal.SIGINT, before)


def test_where_no_thread_is_to_be_had_the_note_is_taken(monkeypatch):
    def none_left(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", none_left)
    with Interrupts() as run:
        ask()
    assert run.pending


def test_a_signal_that_everybody_ignores_breaks_nothing_off():
    with Interrupts() as run, run.breakable():
        ask(signal.SIGURG)
        time.sleep(0.1)
    assert not run.pending
    assert signal.getsignal(signal.SIGURG) == signal.SIG_DFL


def test_what_one_request_wrote_is_counted_while_another_ends_the_run(engine, plain, tmp_path: Path):
    go_on = threading.Event()

    def tap(request: int, _: list[Any]) -> None:
        if request == 1:
            ask()
            go_on.wait(SOON)
        else:
            go_on.set()

    dead = tmp_path / "dead.jsonl"
    threading.Timer(1.0, go_on.set).start()
    summary = index_documents(Tapped(engine, tap, 2), "i", endless(), plain, workers=1, dead_letters=dead)
    assert summary.stopped == "interrupted"
    assert summary.indexed > 0
    assert_exact(summary, engine, dead)


def test_an_interrupt_at_the_end_of_the_run_is_reported(engine, plain, tmp_path: Path):
    class Asking(Tapped):
        def refresh(self, index: str) -> None:
            self._engine.refresh(index)
            ask(signal.SIGTERM)

    summary = index_documents(Asking(engine, untouched, 1), "i", [{"_id": "0", "n": 0}], plain, workers=1)
    assert (summary.indexed, summary.stopped) == (1, "terminated")


def test_existing_signal_handlers_are_kept(engine, plain):
    seen: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))

    def documents() -> Iterator[dict[str, Any]]:
        ask(signal.SIGTERM)
        yield {"_id": "0", "n": 0}

    summary = index_documents(engine, "i", documents(), plain, workers=1)
    assert (summary.stopped, seen) == ("", [signal.SIGTERM])


def test_in_another_thread_a_run_heeds_no_signal_and_breaks_none(engine, plain):
    ended: list[Summary] = []
    before = signal.getsignal(signal.SIGINT)
    run = threading.Thread(
        target=lambda: ended.append(index_documents(engine, "i", [{"_id": "0", "n": 0}], plain, workers=2))
    )
    run.start()
    run.join()
    assert ended[0].indexed == 1
    assert signal.getsignal(signal.SIGINT) is before


def test_dead_letters_that_cannot_be_kept_any_more_end_the_run_at_once(engine, plain, tmp_path: Path):
    dead = tmp_path / "dead.jsonl"

    def documents() -> Iterator[dict[str, Any]]:
        # The lack of space shows during the run only.
        dead.symlink_to("/dev/full")
        yield from endless()

    start = time.monotonic()
    summary = index_documents(engine, "i", documents(), plain, workers=1, dead_letters=dead)
    assert time.monotonic() - start < SOON
    assert "the disk is full; make room" in summary.stopped
    assert summary.counts["not_kept"] == summary.failed == 3
    assert summary.read == summary.indexed + summary.failed == BLOCK
    found = engine.search("i", {"size": 0, "track_total_hits": True})["hits"]["total"]["value"]
    assert found == summary.indexed
