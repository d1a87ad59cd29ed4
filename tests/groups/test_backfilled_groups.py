"""Numbers of groups for documents that are stored already, while they get their fingerprints."""

from dataclasses import replace

import pytest

from shinglefold.groups.insert import Numbering
from shinglefold.ingest import ensure_index, index_documents
from shinglefold.ingest.maintenance import BackfillOptions, backfill


def _backfill(engine, pipeline, **options):
    numbering = Numbering(engine, "texts", pipeline.recipe())
    return backfill(engine, "texts", pipeline, BackfillOptions(workers=1, groups=numbering, **options))


def _stored(engine):
    engine.refresh("texts")
    hits = engine.search("texts", {"size": 100})["hits"]["hits"]
    return {hit["_id"]: hit["_source"]["dedup"] for hit in hits}


def _store(engine, documents):
    actions = [{"_index": "texts", "_id": one["id"], "_source": one} for one in documents]
    assert not engine.bulk(actions).failures
    engine.refresh("texts")


@pytest.fixture
def documents(text):
    return [{"id": f"{n}", "body": text(kind, n % 3)} for n, kind in enumerate("abacab")]


def test_documents_without_fingerprints_get_them_and_the_numbers_that_indexing_gives(
    engine, pipeline, documents
):
    _store(engine, documents)
    summary = _backfill(engine, pipeline)
    assert (summary.counts.updated, summary.counts.failed, summary.remaining) == (6, 0, 0)
    found = _stored(engine)
    engine.delete_index("texts")
    ensure_index(engine, "texts", replace(pipeline.recipe(), groups=True))
    numbering = Numbering(engine, "texts", pipeline.recipe())
    index_documents(engine, "texts", documents, pipeline, workers=1, groups=numbering)
    assert found == _stored(engine)
    assert len({one["group"] for one in found.values()}) == 3


@pytest.mark.parametrize("only_missing", [False, True])
def test_documents_that_lack_only_the_number_get_one_and_the_others_stay(
    engine, pipeline, documents, only_missing
):
    index_documents(engine, "texts", documents[:4], pipeline, workers=1)
    numbering = Numbering(engine, "texts", pipeline.recipe())
    index_documents(engine, "texts", documents[4:], pipeline, workers=1, groups=numbering)
    before = _stored(engine)
    summary = _backfill(engine, pipeline, only_missing=only_missing)
    assert summary.counts.updated == 4
    after = _stored(engine)
    assert {id_: after[id_] for id_ in "45"} == {id_: before[id_] for id_ in "45"}
    # The first copies that had a number lead on.
    assert {after[id_]["group"] for id_ in "024"} == {before["4"]["group"]}
    assert {after[id_]["group"] for id_ in "15"} == {before["5"]["group"]}
    assert _backfill(engine, pipeline).counts.updated == 0
