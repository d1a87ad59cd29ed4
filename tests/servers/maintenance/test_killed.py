"""kill -9, of the server and of us: no document is lost, and none has half a fingerprint."""

import multiprocessing
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path

import pytest
from support.gateway import running_gateway
from support.maintenance import FIELDS, adds_up, pages, store, stored, wrongly_signed
from support.rest.raw import Request, ask
from support.servers.choose import excused, wanted
from support.servers.kinds import kind
from support.servers.local import LocalServer, free_port, minimal

from shinglefold.contracts.engine import Engine
from shinglefold.engines import open_engine
from shinglefold.ingest import Pipeline, index_documents
from shinglefold.ingest.index_mapping import default_recipe, ensure_index
from shinglefold.maintenance import BackfillOptions, backfill
from shinglefold.runtime.backoff import Backoff

COUNT = 3_000
_MORTAL = "opensearch-3"
#: A server is back when it is back; asking often costs the test the least time.
_OFTEN = Backoff(retries=200, first=0.3, most=0.3)
SHARDS = {"number_of_shards": 2, "number_of_replicas": 0}


@pytest.fixture(scope="module")
def mortal() -> Iterator[LocalServer]:
    """A server of our own: it must be a process that can be killed."""
    if _MORTAL not in wanted():
        pytest.skip(f"{_MORTAL} is not among the servers asked for")
    with excused():
        server = LocalServer(minimal(kind(_MORTAL)))
    yield server
    server.stop()


@pytest.fixture
def engine(mortal: LocalServer) -> Iterator[Engine]:
    with closing(open_engine(mortal.url)) as opened:
        yield opened


@pytest.fixture
def index(engine: Engine, scheme) -> Iterator[str]:
    ensure_index(engine, "pages", default_recipe(scheme), properties=FIELDS, settings=SHARDS)
    yield "pages"
    engine.delete_index("pages")


def killing(server: LocalServer) -> Callable[[object], None]:
    """Kill the server in the middle of the next request, and start it again."""
    threads: list[threading.Thread] = []

    def work() -> None:
        time.sleep(0.03)
        server.kill()
        server.start()

    def report(_: object) -> None:
        if not threads:
            threads.append(threading.Thread(target=work))
            threads[0].start()

    return report


def killed_after(seconds: float, work: Callable[[], object]) -> bool:
    """Run work in a process and kill it; tell whether it had not ended by then."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join(seconds)
    alive = process.is_alive()
    process.kill()
    process.join()
    return alive


def all_signed(engine: Engine, index: str, pipeline: Pipeline, count: int = COUNT) -> bool:
    found = stored(engine, index)
    return len(found) == count and not list(wrongly_signed(found, pipeline.tools.fingerprinter))


def test_a_server_killed_during_bulk_loses_nothing(mortal, engine, index, pipeline, tmp_path: Path):
    letters = tmp_path / "failed.jsonl"
    summary = index_documents(
        engine,
        index,
        pages(COUNT),
        pipeline,
        workers=1,
        dead_letters=letters,
        backoff=_OFTEN,
        progress=killing(mortal),
    )
    assert (summary.stopped, summary.failed, summary.indexed) == ("", 0, COUNT)
    assert summary.counts["sent_again"] > 0
    assert all_signed(engine, index, pipeline)


def test_a_server_killed_during_a_backfill_loses_nothing(mortal, engine, index, pipeline, tmp_path: Path):
    store(engine, index, pages(COUNT))
    options = BackfillOptions(workers=1, checkpoint=tmp_path / "checkpoint.json", backoff=_OFTEN)
    summary = backfill(engine, index, pipeline, options, killing(mortal))
    assert (summary.stopped, summary.remaining, summary.counts.failed) == ("", 0, 0)
    # The point in time went with the server, so the walk began anew and met what it had done.
    assert summary.counts.earlier > 0
    assert adds_up(summary.counts)
    assert summary.counts.changed == []
    assert all_signed(engine, index, pipeline)


def test_an_indexer_killed_at_ten_moments_leaves_nothing_half_done(mortal, engine, index, pipeline):
    documents = pages(COUNT)
    expected = {page["id"]: page["body"] for page in documents}

    def work() -> None:
        # A forked process needs an engine of its own.
        with closing(open_engine(mortal.url)) as own:
            index_documents(own, index, documents, pipeline, workers=2)

    chance = random.Random(9)
    cut_short = 0
    for _ in range(10):
        cut_short += killed_after(chance.uniform(0.05, 1.2), work)
        found = stored(engine, index)
        assert {id_: source["body"] for id_, source in found.items()}.items() <= expected.items()
        assert not list(wrongly_signed(found, pipeline.tools.fingerprinter))
    assert cut_short >= 5
    assert index_documents(engine, index, documents, pipeline, workers=2).indexed == COUNT
    assert all_signed(engine, index, pipeline)


def test_a_backfill_killed_at_ten_moments_goes_on_each_time(mortal, engine, index, pipeline, tmp_path: Path):
    store(engine, index, pages(COUNT))
    options = BackfillOptions(workers=1, checkpoint=tmp_path / "checkpoint.json", requests_per_second=1_500)

    def work() -> None:
        with closing(open_engine(mortal.url)) as own:
            backfill(own, index, pipeline, options)

    chance = random.Random(9)
    assert sum(killed_after(chance.uniform(0.05, 0.4), work) for _ in range(10)) >= 5
    summary = backfill(engine, index, pipeline, replace(options, requests_per_second=0))
    assert (summary.stopped, summary.remaining, summary.counts.read) == ("", 0, COUNT)
    assert adds_up(summary.counts)
    # Updates made before a kill and not yet noted are met again; nobody else has changed anything.
    assert summary.counts.changed == []
    assert all_signed(engine, index, pipeline)


def test_bulks_through_a_gateway_outlive_its_death_and_the_servers(
    mortal, engine, index, pipeline, tmp_path: Path
):
    url = f"http://127.0.0.1:{(port := free_port())}"
    options = ("--listen", f"127.0.0.1:{port}", "--workers", "1")
    documents = pages(900)
    answers: Counter[int] = Counter()

    def send(batch: list[dict]) -> None:
        """Send a batch until all of it is there, as loaders with ids of their own do."""
        lines = [line for one in batch for line in ({"create": {"_index": index, "_id": one["id"]}}, one)]
        while batch:
            try:
                answer = ask(url, Request("POST", "/_bulk", lines))
            except (OSError, HTTPException):
                answers[0] += 1
                time.sleep(0.05)
                continue
            items = answer.json["items"] if answer.status == 200 else []
            statuses = {item["create"]["status"] for item in items}
            answers.update(statuses or {answer.status})
            if statuses and statuses <= {201, 409}:
                return
            time.sleep(0.05)

    sender = threading.Thread(
        target=lambda: [send(documents[at : at + 15]) for at in range(0, len(documents), 15)]
    )
    sender.start()
    chance = random.Random(9)
    for number in range(4):
        # It is killed when the block ends.
        with running_gateway(tmp_path / f"log{number}", mortal.url, options=options):
            before = answers[201]
            while answers[201] < before + 3 and sender.is_alive():
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.05))
            if number == 2:
                mortal.kill()
                mortal.start()
            if number == 3:
                sender.join()
    # Some batches met their own documents, as the answer to those had died with the gateway.
    assert answers[0] > 0
    assert set(answers) <= {0, 201, 409, 502, 503, 504}, answers
    assert all_signed(engine, index, pipeline, len(documents))
    # No document was written a second time.
    versions = engine.search(index, {"query": {"match_all": {}}, "size": 10_000, "version": True})
    assert {hit["_version"] for hit in versions["hits"]["hits"]} == {1}
