"""The server's own ingest pipeline beside ours: ours first, in this process, then the server's."""

import pytest
from support.maintenance import mapped, pages, store, stored
from support.servers.admin import ask
from support.servers.server import add_alias

from shinglefold.ingest import index_documents
from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose

ALONE = DoctorOptions(workers=1)
#: The page that the server drops.
DROPPED = "page-7"


@pytest.fixture
def piped(server, new_index, scheme, ingest_pipeline) -> str:
    """An index whose documents the server takes through a pipeline of its own."""
    made = mapped(scheme, seen={"type": "keyword"}, print={"type": "keyword"})
    processors = [
        # Ours has run: the server sees its fingerprint.
        {"copy": {"source_field": "_dedup.digest", "target_field": "print", "ignore_missing": True}},
        {"copy": {"source_field": "title", "target_field": "seen"}},
        {"drop": {"if": "ctx.title == 'Страница 7'"}},
        {
            "gsub": {
                "field": "body",
                "pattern": "замок[а-я]*",
                "replacement": "крепость",
                "ignore_missing": True,
            }
        },
    ]
    return new_index(made, {"default_pipeline": ingest_pipeline(*processors), "number_of_replicas": 0})


def test_the_servers_pipeline_runs_after_ours(engine, piped, pipeline):
    given = [page for page in pages(21) if page["id"] != DROPPED]
    summary = index_documents(engine, piped, given, pipeline, workers=1)
    assert summary.indexed == 20
    for source in stored(engine, piped).values():
        assert source["seen"] == source["title"]
        assert source["print"] == source["_dedup"]["digest"]
    assert diagnose(engine, piped, pipeline, ALONE).healthy


def test_what_the_server_drops_is_not_counted_as_indexed(engine, piped, pipeline, tmp_path):
    letters = tmp_path / "failed.jsonl"
    summary = index_documents(engine, piped, pages(20), pipeline, workers=1, dead_letters=letters)
    assert (summary.read, summary.indexed, summary.dropped, summary.failed) == (20, 19, 1, 0)
    assert summary.counts["dropped_by_server"] == 1
    assert any("dropped by an ingest pipeline of the server" in note for note in summary.notes)
    assert DROPPED not in stored(engine, piped)
    # It was dropped on purpose: no letter asks to try it again.
    assert not letters.exists()


def test_a_text_the_server_changes_after_us_is_told_as_stale(engine, piped, pipeline):
    given = pages(3)
    given[1]["body"] += " старый замок над рекой"
    index_documents(engine, piped, given, pipeline, workers=1)
    assert stored(engine, piped)["page-1"]["body"].endswith("крепость над рекой")
    assert diagnose(engine, piped, pipeline, ALONE).listed == {"stale": ["page-1"]}


def test_a_backfill_does_not_send_documents_through_the_servers_pipeline_again(engine, piped, pipeline):
    given = pages(5)
    # Flat names that no update takes away: this one is written anew as a whole.
    given[2] |= {"_dedup.scheme": "sf1-earlier", "_dedup.digest": "0123456789abcdef"}
    store(engine, piped, given)
    by_hand = {"_op_type": "update", "_index": piped, "_id": "page-2", "doc": {"seen": "by hand"}}
    assert not engine.bulk([by_hand]).failures
    assert backfill(engine, piped, pipeline, BackfillOptions(workers=1)).counts.updated == 5
    after = stored(engine, piped)["page-2"]
    assert (after["seen"], "_dedup.digest" in after) == ("by hand", False)
    assert diagnose(engine, piped, pipeline, ALONE).healthy


def test_documents_that_the_server_sends_to_another_index_are_told_with_its_name(
    engine, server, piped, pipeline, new_index, scheme, ingest_pipeline
):
    other = new_index(mapped(scheme))
    move = {"set": {"field": "_index", "value": other, "if": "ctx.title == 'Страница 3'"}}
    ask(server.url, "PUT", f"/{piped}/_settings", {"index.default_pipeline": ingest_pipeline(move)})
    add_alias(server, f"{piped}-alias", piped)
    for name in (piped, f"{piped}-alias"):
        summary = index_documents(engine, name, pages(5), pipeline, workers=1)
        assert (summary.indexed, summary.counts["sent_elsewhere"]) == (5, 1)
        assert f"sent 1 document to the index {other!r}: see" in summary.notes[0]
    assert set(stored(engine, other)) == {"page-3"}
    assert len(stored(engine, piped)) == 4
