"""Indices that are blocked or tightly bounded: what can't be done is said at once, all else is done."""

import time

import pytest
from support.maintenance import adds_up, mapped, pages, store, stored, wrongly_signed
from support.servers.server import blocked

from shinglefold.errors import EngineError, IndexReadOnly
from shinglefold.ingest import Fingerprinter, index_documents
from shinglefold.ingest.index_mapping import default_recipe
from shinglefold.maintenance import BackfillOptions, backfill, diagnose
from shinglefold.maintenance.deletion import delete, plan_deletion
from shinglefold.maintenance.retry import retry
from shinglefold.maintenance.setup import SetupRequest, make_plan
from shinglefold.rerank import FoldedSearch, FoldOptions

pytestmark = pytest.mark.newest

#: Seconds on the slowest machine; a run that tried again and again would take 46 s on any.
AT_ONCE = 30


@pytest.fixture
def made(new_index, scheme):
    def make(**settings):
        return new_index(mapped(scheme), {"number_of_shards": 2, "number_of_replicas": 0, **settings})

    return make


def test_a_full_disk_is_said_at_once_and_what_was_not_indexed_is_kept(
    engine, server, made, pipeline, scheme, canonicalizer, tmp_path
):
    index, path = made(), tmp_path / "failed.jsonl"
    begin = time.monotonic()
    with blocked(server, index, "read_only_allow_delete"):
        summary = index_documents(engine, index, pages(50), pipeline, workers=1, dead_letters=path)
        again = retry(engine, index, path, pipeline, workers=1)
    assert time.monotonic() - begin < AT_ONCE
    for one in (summary, again):
        assert "flood-stage" in one.stopped
        assert "Free disk space" in one.stopped
        assert (one.read, one.indexed, one.failed) == (50, 0, 50)
    assert retry(engine, index, path, pipeline, workers=1).indexed == 50
    sources = stored(engine, index)
    assert len(sources) == 50
    assert not list(wrongly_signed(sources, Fingerprinter(scheme, canonicalizer)))


def test_a_backfill_of_a_full_disk_stops_at_once_and_goes_on_later(engine, server, made, pipeline, tmp_path):
    index = made()
    store(engine, index, pages(50))
    options = BackfillOptions(workers=1, checkpoint=tmp_path / "checkpoint")
    begin = time.monotonic()
    with blocked(server, index, "read_only_allow_delete"):
        summary = backfill(engine, index, pipeline, options)
    assert time.monotonic() - begin < AT_ONCE
    assert "flood-stage" in summary.stopped
    assert "Free disk space" in summary.stopped
    assert (adds_up(summary.counts), summary.remaining) == (True, 50)
    summary = backfill(engine, index, pipeline, options)
    assert (summary.stopped, summary.remaining) == ("", 0)


def test_a_cluster_that_takes_no_new_indices_says_so(engine, server, new_index):
    if engine.info()["distribution"] != "opensearch":
        pytest.skip("only OpenSearch blocks new indices, where its disks are full")
    blocked = {"cluster.blocks.create_index": True}
    server.ask("PUT", "/_cluster/settings", {"transient": blocked})
    try:
        with pytest.raises(IndexReadOnly, match="disk space"):
            new_index()
    finally:
        server.ask("PUT", "/_cluster/settings", {"transient": dict.fromkeys(blocked)})


def test_an_index_blocked_for_reading_is_an_error_with_its_remedy(engine, server, made, pipeline, scheme):
    index = made()
    store(engine, index, pages(50))
    folded = FoldedSearch(engine, scheme, tiebreaker="id")
    for work in (
        lambda: folded.search(index, {}),
        lambda: diagnose(engine, index, pipeline),
        lambda: make_plan(engine, SetupRequest(default_recipe(scheme), indices=(index,))),
        lambda: _finished(backfill(engine, index, pipeline, BackfillOptions(workers=1))),
    ):
        begin = time.monotonic()
        with blocked(server, index, "read"), pytest.raises(EngineError, match=r"index\.blocks\.read to null"):
            work()
        assert time.monotonic() - begin < AT_ONCE


def _finished(summary):
    if summary.stopped:
        raise EngineError(summary.stopped)


def test_an_index_with_small_windows_is_read_in_steps(engine, made, pipeline, scheme):
    index = made(max_result_window=500)
    documents = pages(700)
    store(engine, index, documents)
    summary = backfill(engine, index, pipeline, BackfillOptions(workers=1))
    assert (summary.stopped, summary.remaining, summary.counts.updated) == ("", 0, 700)
    found = diagnose(engine, index, pipeline)
    assert (found.healthy, found.documents) == (True, 700)
    folded = FoldedSearch(engine, scheme, tiebreaker="id")
    body = {"query": {"match_all": {}}, "sort": [{"id": "asc"}], "_source": False}
    expected = sorted(one["id"] for one in documents)
    shown = []
    for start in range(0, 700, 100):
        answer = folded.search(index, {**body, "from": start, "size": 100})
        shown += [hit["_id"] for hit in answer["hits"]["hits"]]
    assert shown == expected
    for options in (FoldOptions(window=1000, max_window=1000), FoldOptions(linkage="connected")):
        answer = folded.search(index, {**body, "size": 450}, options)
        assert [hit["_id"] for hit in answer["hits"]["hits"]] == expected[:450]
    walked = [
        hit["_id"] for page in folded.pages(index, {**body, "size": 90}) for hit in page["hits"]["hits"]
    ]
    assert walked == expected
    plan = plan_deletion(engine, index, ids=[*expected[:600], "none"])
    assert (plan.documents, plan.missing) == (600, ("none",))
    assert delete(engine, plan).indexed == 600
    left = engine.search(index, {"size": 500, "_source": False})["hits"]["hits"]
    assert sorted(hit["_id"] for hit in left) == expected[600:]
