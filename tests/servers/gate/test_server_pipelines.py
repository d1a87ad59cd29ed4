"""Gates before indices whose own pipelines drop documents or send them elsewhere: a verdict, nothing left."""

import asyncio
import json
import threading
import uuid
from contextlib import closing

import pytest
from support.servers.admin import ask
from support.servers.faulty import FINE, relay

from shinglefold.cli.main import main
from shinglefold.engines import Connection, open_async_engine, open_engine
from shinglefold.grouping import AsyncGate, Gate, Policy
from shinglefold.grouping.gate.bulk_run import BulkRun
from shinglefold.ingest.readers.record import Record

pytestmark = pytest.mark.newest

BODY = " ".join(f"word{number}" for number in range(80))
#: Seconds within which there is a verdict, on the slowest machine.
_PATIENCE = 120.0


@pytest.mark.parametrize(
    ("processor", "reason"),
    [
        ({"drop": {}}, "dropped it"),
        ({"set": {"field": "_index", "value": "elsewhere"}}, "sends it to the index 'elsewhere'"),
        ({"set": {"field": "_id", "value": "another"}}, "gives it the id 'another'"),
        # A routing of another shard than that of the id.
        ({"set": {"field": "_routing", "value": "a"}}, "gives it another routing"),
    ],
    ids=["dropped", "another index", "another id", "another routing"],
)
def test_what_the_pipeline_does_not_leave_where_it_was_sent_fails_with_the_reason(
    engine, new_index, pipeline, gated, ingest_pipeline, processor, reason
):
    if "set" in processor and processor["set"]["field"] == "_index":
        elsewhere = new_index()
        processor = {"set": {"field": "_index", "value": elsewhere}}
        reason = reason.replace("elsewhere", elsewhere)
    told = []
    with gated({}, default_pipeline=ingest_pipeline(processor)) as index:

        def add():
            with Gate(engine, index, Policy("tag"), pipeline=pipeline) as gate:
                told.extend(gate.add_all([{"id": "one", "body": BODY}]))

        # A daemon, so that one which never ends does not keep the run.
        adding = threading.Thread(target=add, daemon=True)
        adding.start()
        adding.join(_PATIENCE)
        engine.refresh(index)
        left = engine.search(index, {"size": 10})["hits"]["hits"]
    assert [(one.status, reason in one.reason) for one in told] == [("failed", True)]
    assert left == []


#: Processors that change what was signed, and what is counted of two documents.
CHANGES = {
    "harmless": ({"set": {"field": "seen", "value": "yes"}}, {}),
    "removed": ({"remove": {"field": "_dedup"}}, {"fingerprints_lost": 2, "texts_changed": 0}),
    "a part": ({"remove": {"field": "_dedup.digest"}}, {"fingerprints_lost": 2, "texts_changed": 0}),
    "another text": (
        {"set": {"field": "body", "value": "{{{body}}} again"}},
        {"fingerprints_lost": 0, "texts_changed": 2},
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_documents_that_are_not_stored_as_they_were_signed_are_told(
    engine, server, pipeline, gated, ingest_pipeline, caplog, capsys, tmp_path, name
):
    processor, counts = CHANGES[name]
    texts = [" ".join(f"{kind}{number}" for number in range(80)) for kind in "abcd"]
    with gated({}, default_pipeline=ingest_pipeline(processor)) as index:
        run = BulkRun()
        with Gate(engine, index, Policy("tag"), pipeline=pipeline) as gate:
            run.add_all(gate, (Record({"id": text[0], "body": text}, "texts", 1) for text in texts[:2]))
        told = {key: run.to_json()[key] for key in ("fingerprints_lost", "texts_changed") if counts}
        assert (run.count("accepted"), told) == (2, counts)
        assert ("backfill" in caplog.text) == bool(counts)
        place = tmp_path / "texts.jsonl"
        place.write_text("".join(json.dumps({"id": text[0], "body": text}) + "\n" for text in texts[2:]))
        code = main(["add", str(place), "--index", index, "--policy", "tag", "--engine", server.url])
        out = capsys.readouterr()
        assert code == (3 if counts else 0)
        assert (f"shinglefold backfill {index} --engine {server.url}" in out.out + out.err) == bool(counts)


@pytest.mark.parametrize("fault", [403, 503], ids=["for good", "for a moment"])
def test_documents_that_can_not_be_read_back_are_told_and_keep_their_verdict(
    server, pipeline, gated, ingest_pipeline, caplog, fault
):
    harmless = ingest_pipeline(CHANGES["harmless"][0])
    texts = {kind: " ".join(f"{kind}{number}" for number in range(80)) for kind in "abc"}
    records = [Record({"id": kind, "body": body}, "texts", 1) for kind, body in texts.items()]
    with (
        gated({}, default_pipeline=harmless) as index,
        relay(server.url, of="/_mget") as proxy,
        closing(open_engine(Connection((proxy.url,), retries=0))) as relayed,
        Gate(relayed, index, Policy("tag"), pipeline=pipeline) as gate,
    ):
        run = BulkRun()
        run.add_all(gate, iter(records[:1]))
        before = proxy.asked
        run.add_all(gate, iter(records[1:2]))
        # The document is read back by the last request.
        proxy.faults = [FINE] * (proxy.asked - before - 1) + [fault]
        run.add_all(gate, iter(records[2:]))
        assert proxy.faults == []
        told = run.to_json()
        assert (told["accepted"], told.get("not_read_back")) == (3, 1)
        assert "could not be read again" in caplog.text
        assert f"shinglefold backfill {index}" in run.read_back.notes()[0]


def test_a_pipeline_that_comes_while_gates_are_open_is_noticed(
    engine, server, pipeline, gated, ingest_pipeline
):
    bodies = {kind: " ".join(f"{kind}{number}" for number in range(80)) for kind in ("blocking", "awaited")}

    async def add(index):
        async with (
            open_async_engine(server.url) as awaited,
            await AsyncGate.open(awaited, index, pipeline=pipeline) as gate,
        ):
            await gate.add({"id": "before", "body": BODY})
            settings = {"index": {"final_pipeline": ingest_pipeline({"remove": {"field": "_dedup"}})}}
            ask(server.url, "PUT", f"/{index}/_settings", settings)
            await asyncio.sleep(1.1)
            await gate.add({"id": "awaited", "body": bodies["awaited"]})
            return gate.read_back

    with gated() as index, Gate(engine, index, pipeline=pipeline) as gate:
        beside = asyncio.run(add(index))
        gate.add({"id": "blocking", "body": bodies["blocking"]})
        assert [(one.lost, one.first) for one in (beside, gate.read_back)] == [
            (1, "awaited"),
            (1, "blocking"),
        ]


def test_a_pipeline_for_all_indices_does_not_touch_a_gates_notes(
    engine, server, pipeline, gated, ingest_pipeline
):
    name = f"shinglefold-test-{uuid.uuid4().hex[:8]}"
    settings = {"final_pipeline": ingest_pipeline({"drop": {}})}
    template = {"index_patterns": ["shinglefold-gate-*"], "priority": 7, "template": {"settings": settings}}
    ask(server.url, "PUT", f"/_index_template/{name}", template)
    try:
        with gated() as index, Gate(engine, index, Policy("tag"), pipeline=pipeline) as gate:
            told = [gate.add({"id": id_, "body": BODY}) for id_ in ("one", "two")]
    finally:
        ask(server.url, "DELETE", f"/_index_template/{name}")
    assert [(one.status, one.leads) for one in told] == [("accepted", True), ("accepted", False)]
