"""Concurrent bulk requests: no document is lost, counted twice or overtaken."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from shinglefold.contracts.engine import BulkFailure, BulkResult, Capabilities, Engine
from shinglefold.errors import EngineUnavailable, IndexReadOnly
from shinglefold.ingest import Pipeline, index_documents
from shinglefold.ingest.writing.accounting import Summary
from shinglefold.ingest.writing.dead_letters import replay
from shinglefold.runtime.backoff import Backoff

Make = Callable[..., Pipeline]
Mood = Callable[[list[Any]], BulkResult | None]
#: Documents in a block, however short they are.
BLOCK = 1_000


class Busy:
    """A real engine that takes two requests at a time, as servers do, and keeps the books on that.

    Before each request goes one of the moods, in the order in which the requests come in.
    """

    can = Capabilities(bulks_at_once=2, takes_json=True)

    def __init__(self, engine: Engine, *moods: Mood) -> None:
        self._engine = engine
        self._moods = list(moods)
        self._lock = threading.Lock()
        self._inside = 0
        self.most = 0
        self.kinds: set[type] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def bulk(self, actions: Iterable[Mapping[str, Any]]) -> BulkResult:
        given = list(actions)
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
            mood = self._moods.pop(0) if self._moods else None
        try:
            answer = mood(given) if mood else None
            return self._written(given) if answer is None else answer
        finally:
            with self._lock:
                self._inside -= 1

    def _written(self, given: list[Any]) -> BulkResult:
        with self._lock:
            self.kinds |= {type(action["_source"]) for action in given}
            return self._engine.bulk({**action, "_source": parsed(action["_source"])} for action in given)


def parsed(source: Any) -> Any:
    return json.loads(source) if isinstance(source, bytes) else source


@pytest.fixture
def plain(make_pipeline: Make) -> Pipeline:
    """A pipeline that fails what says so."""
    return make_pipeline({"fail": {"if": "ctx.bad == true", "message": "bad"}})


def numbered(blocks: int, **more: Any) -> list[dict[str, Any]]:
    return [{"_id": str(n), "n": n, **more} for n in range(blocks * BLOCK)]


def slowly(_: list[Any]) -> None:
    time.sleep(0.1)


def away(_: list[Any]) -> BulkResult:
    raise EngineUnavailable("no answer; is it running?")


def meeting(both: threading.Barrier, then: Mood = slowly) -> Mood:
    """Wait until two requests are there."""

    def mood(given: list[Any]) -> BulkResult | None:
        both.wait()
        return then(given)

    return mood


def refusing(given: list[Any]) -> BulkResult:
    return BulkResult(0, tuple(BulkFailure(dict(one), 400, "no") for one in given))


def adds_up(summary: Summary) -> bool:
    return summary.read == summary.indexed + summary.dropped + summary.failed


def stored(engine: Engine) -> int:
    body = {"size": 0, "track_total_hits": True}
    total: int = engine.search("i", body)["hits"]["total"]["value"]
    return total


@pytest.mark.long(every=2)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_request_is_on_its_way_while_another_is_and_never_a_third(engine, plain, workers: int):
    both = threading.Barrier(2, timeout=20)
    busy = Busy(engine, meeting(both), meeting(both), slowly, slowly, slowly)
    summary = index_documents(busy, "i", numbered(6), plain, workers=workers)
    assert (summary.indexed, busy.most) == (6 * BLOCK, 2)
    assert stored(engine) == 6 * BLOCK


def test_an_engine_that_does_not_say_so_gets_one_request_at_a_time(engine, plain):
    busy = Busy(engine, slowly, slowly)
    busy.can = replace(Busy.can, bulks_at_once=1)
    assert index_documents(busy, "i", numbered(4), plain, workers=2).indexed == 4 * BLOCK
    assert busy.most == 1


def test_of_two_versions_of_a_document_the_later_one_wins(engine, plain):
    busy = Busy(engine, slowly)
    versions = [*numbered(1, version=1), *numbered(1, version=2), *numbered(1, version=3)]
    assert index_documents(busy, "i", versions, plain, workers=2).indexed == 3 * BLOCK
    assert busy.most == 1
    assert {engine.get("i", str(n))["_source"]["version"] for n in range(0, BLOCK, 50)} == {3}


def test_sources_are_json_where_the_engine_takes_that_and_objects_where_json_has_no_word_for_them(
    engine, plain
):
    taken = Busy(engine)
    index_documents(taken, "i", numbered(1), plain, workers=2)
    assert (taken.kinds, engine.get("i", "7")["_source"]) == ({bytes}, {"n": 7})
    dated = Busy(engine)
    index_documents(dated, "i", [{"_id": "d", "day": date(2020, 1, 2)}], plain, workers=2)
    assert dated.kinds == {dict}
    asking = Busy(engine)
    asking.can = replace(Busy.can, takes_json=False)
    index_documents(asking, "i", numbered(1), plain, workers=1)
    assert asking.kinds == {dict}


def test_dead_letters_keep_the_order_of_the_documents(engine, plain, tmp_path: Path):
    def slow_refusal(given: list[Any]) -> BulkResult:
        time.sleep(0.2)
        return refusing(given)

    dead = tmp_path / "dead.jsonl"
    documents = numbered(3)
    for place in (BLOCK, BLOCK + 1, 2 * BLOCK):
        documents[place]["bad"] = True
    busy = Busy(engine, slow_refusal)
    summary = index_documents(busy, "i", documents, plain, workers=2, dead_letters=dead)
    assert (summary.indexed, summary.failed) == (2 * BLOCK - 3, BLOCK + 3)
    kept = [record.document["n"] for record in replay(dead)]
    assert kept == [*range(BLOCK), BLOCK, BLOCK + 1, 2 * BLOCK]


def test_an_engine_that_goes_with_two_requests_on_their_way_ends_the_run_with_numbers_that_add_up(
    engine, plain, tmp_path: Path
):
    dead = tmp_path / "dead.jsonl"
    both = threading.Barrier(2, timeout=20)
    busy = Busy(engine, lambda _: None, meeting(both, away), meeting(both, away), *[away] * 50)
    backoff = Backoff(retries=0)
    documents = numbered(8)
    summary = index_documents(busy, "i", documents, plain, workers=2, backoff=backoff, dead_letters=dead)
    assert "is it running" in summary.stopped
    assert adds_up(summary)
    assert summary.indexed == stored(engine) == BLOCK
    # What was read is the beginning, and all of it that is not stored is kept.
    assert [record.document["n"] for record in replay(dead)] == list(range(BLOCK, summary.read))
    assert summary.failed >= 2 * BLOCK


def test_what_another_request_wrote_is_counted_when_one_ends_the_run(engine, plain):
    both = threading.Barrier(2, timeout=20)
    busy = Busy(engine, meeting(both, away), meeting(both))
    summary = index_documents(busy, "i", numbered(2), plain, workers=2, backoff=Backoff(retries=0))
    assert "is it running" in summary.stopped
    assert (summary.indexed, summary.failed) == (BLOCK, BLOCK)
    assert stored(engine) == BLOCK


def test_an_error_in_the_input_waits_for_what_is_on_its_way(engine, plain):
    def breaking() -> Iterator[dict[str, Any]]:
        yield from numbered(3)
        raise ValueError("from outside")

    with pytest.raises(ValueError, match="from outside"):
        index_documents(Busy(engine, slowly, slowly), "i", breaking(), plain, workers=1)
    assert stored(engine) == 2 * BLOCK


def test_an_error_that_is_not_of_the_engine_is_raised(engine, plain):
    with pytest.raises(ZeroDivisionError):
        index_documents(Busy(engine, lambda given: 1 // 0), "i", numbered(1), plain, workers=1)


@pytest.mark.long
def test_no_thread_is_left_behind(engine, plain):
    before = threading.active_count()
    index_documents(Busy(engine), "i", numbered(2), plain, workers=2)
    index_documents(Busy(engine, away), "i", numbered(4), plain, workers=2, backoff=Backoff(retries=0))
    assert threading.active_count() == before


@pytest.mark.parametrize(("lost", "left"), [(400, BLOCK - 400), (5 * BLOCK, 0)])
def test_what_the_engine_says_it_lost_counts_as_failed(engine, plain, lost: int, left: int):
    def losing(_: list[Any]) -> BulkResult:
        error = EngineUnavailable("the disk is full")
        error.lost = lost
        raise error

    busy = Busy(engine, lambda _: None, losing)
    summary = index_documents(busy, "i", numbered(2), plain, workers=1, backoff=Backoff(0))
    assert (summary.indexed, summary.failed, summary.read) == (left, 2 * BLOCK - left, 2 * BLOCK)
    assert adds_up(summary)


def test_what_is_still_on_its_way_at_an_early_end_is_not_tried_again(engine, plain):
    both, tries = threading.Barrier(2, timeout=20), []

    def mood(given: list[Any]) -> BulkResult:
        if given[0]["_id"] == "0":
            both.wait()
            raise IndexReadOnly("blocked")
        tries.append(1)
        if len(tries) == 1:
            both.wait()
        return BulkResult(0, tuple(BulkFailure(one, 429, "busy") for one in given))

    busy = Busy(engine, *[mood] * 100)
    summary = index_documents(busy, "i", numbered(2), plain, workers=1, backoff=Backoff(60, 0.1, 0.1))
    assert (summary.stopped, summary.failed) == ("blocked", 2 * BLOCK)
    assert len(tries) < 30


def test_what_was_written_is_found_though_failed_documents_can_not_be_kept(engine, plain, tmp_path: Path):
    both = threading.Barrier(2, timeout=20, action=(folder := tmp_path / "letters").rmdir)
    folder.mkdir()
    documents = numbered(2)
    documents[0]["bad"] = documents[BLOCK]["bad"] = True
    busy, file = Busy(engine, meeting(both), meeting(both)), folder / "failed.jsonl"
    summary = index_documents(busy, "i", documents, plain, workers=1, dead_letters=file)
    assert "failed documents not kept" in summary.stopped
    assert stored(engine) == summary.indexed == 2 * BLOCK - 2


def test_any_number_of_retries_has_delays():
    backoff = Backoff(2_000, first=0.5, most=30.0)
    assert (backoff.delay(0), backoff.delay(1_999)) == (0.5, 30.0)
