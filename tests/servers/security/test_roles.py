"""The roles that docs/security.md names suffice for what it says."""

import pytest
from support.maintenance import pages, store, stored, wrongly_signed

from shinglefold.ingest import Fingerprinter, Pipeline, default_definition, index_documents
from shinglefold.maintenance import BackfillOptions, backfill, diagnose

INDEX = "public-pages"


@pytest.fixture
def pipeline(scheme, canonicalizer) -> Pipeline:
    return Pipeline.from_json(default_definition(), scheme, canonicalizer)


@pytest.fixture
def empty(site) -> str:
    """Another index that is set up for fingerprints, without documents."""
    name = "public-kept"
    if site.engine.index_exists(name):
        site.engine.delete_index(name)
    site.engine.create_index(name, site.engine.mappings(INDEX), {})
    return name


def test_who_reads_documents_and_mappings_examines(engine_of, users, site, pipeline):
    found = diagnose(engine_of(users["examiner"]), INDEX, pipeline)
    assert (found.healthy, found.documents) == (True, 60)
    assert any("may not read templates" in remark for remark in found.remarks)


def test_a_keeper_indexes_and_backfills(engine_of, users, site, pipeline, empty, scheme, canonicalizer):
    keeper, documents = engine_of(users["keeper"]), pages(40)
    summary = index_documents(keeper, empty, documents[:20], pipeline, workers=1)
    assert (summary.indexed, summary.failed, summary.stopped) == (20, 0, "")
    store(keeper, empty, documents[20:])
    done = backfill(keeper, empty, pipeline, BackfillOptions(workers=1))
    assert (done.stopped, done.remaining, done.counts.updated, done.counts.unchanged) == ("", 0, 20, 20)
    assert not list(wrongly_signed(stored(site.engine, empty), Fingerprinter(scheme, canonicalizer)))
