"""Statistics of indices, and reasons for missing ones."""

from dataclasses import replace

import pytest
from support.maintenance import FIELDS, pages

from shinglefold.errors import EngineError, IndexReadOnly
from shinglefold.ingest import index_documents
from shinglefold.ingest.index_mapping import ensure_index
from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose
from shinglefold.maintenance.setup import SetupRequest, make_plan
from shinglefold.maintenance.statistics import statistics


class Refusing:
    """A real engine that refuses the n-th search of a request, or an index's mappings."""

    def __init__(self, engine, search=None, mappings=False):
        self.engine, self.refused, self.closed = engine, search, mappings

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def mappings(self, index):
        if self.closed:
            raise EngineError(f"index {index} is closed")
        return self.engine.mappings(index)

    def msearch(self, searches):
        answers = self.engine.msearch(searches)
        return [IndexReadOnly("blocked") if n == self.refused else one for n, one in enumerate(answers)]


@pytest.fixture
def signed(engine, pipeline) -> str:
    index_documents(engine, "pages", pages(30), pipeline, workers=1, properties=FIELDS)
    return "pages"


def test_documents_are_counted_of_which_short_ones_have_no_signature(engine, signed, scheme):
    (one,) = statistics(engine, signed)
    assert (one.documents, one.fingerprints, one.signed, one.signed_share) == (30, 30, 27, 0.9)
    assert sum(one.languages.values()) == 30
    assert (one.scheme, one.problem) == (scheme.id, "")


@pytest.mark.parametrize("search", [0, 1])
def test_an_index_that_cannot_be_counted_is_reported_with_the_reason(engine, signed, search):
    (one,) = statistics(Refusing(engine, search), signed)
    assert (one.documents, one.signed, one.problem) == (one.info.documents, 0, "blocked")
    assert one.signed_share is None
    assert one.to_json()["problem"] == "blocked"


def test_an_index_that_does_not_tell_its_mappings_is_listed(engine, signed):
    (one,) = statistics(Refusing(engine, mappings=True), signed)
    assert (one.documents, one.recipe, one.problem) == (30, None, "index pages is closed")
    assert one.signed_share is None


def test_the_first_problem_is_reported(engine, signed):
    (one,) = statistics(Refusing(engine, 0, mappings=True), signed)
    assert one.problem == "index pages is closed"


def test_documents_without_a_group_number_and_placeholders_are_counted(engine, pipeline):
    recipe = replace(pipeline.recipe("_dedup"), groups=True)
    ensure_index(engine, "pages", recipe, properties=FIELDS)
    index_documents(engine, "pages", pages(30), pipeline, workers=1)
    numbered = [
        {"_op_type": "update", "_index": "pages", "_id": f"page-{n}", "doc": {"_dedup": {"group": n}}}
        for n in range(10)
    ]
    kept = [
        {"_op_type": "index", "_index": "pages", "_id": f"to-come-{n}", "_source": {"_dedup": {"pending": 1}}}
        for n in range(2)
    ]
    assert not engine.bulk([*numbered, *kept]).failures
    engine.refresh("pages")
    (one,) = statistics(engine, "pages")
    assert (one.documents, one.placeholders, one.without_fingerprint, one.grouped, one.ungrouped) == (
        32,
        2,
        0,
        10,
        20,
    )
    told = one.to_json()
    assert (told["placeholders"], told["grouped"], told["ungrouped"]) == (2, 10, 20)
    found = diagnose(engine, "pages", pipeline, DoctorOptions(workers=1))
    assert found.findings == {"sound": 30, "placeholder": 2}
    assert found.ungrouped == 20
    request = SetupRequest(replace(recipe, groups=True), ("pages",))
    assert make_plan(engine, request).backfills == {}
    counts = backfill(engine, "pages", pipeline, BackfillOptions(workers=1)).counts
    assert (counts.read, counts.unchanged, counts.failed) == (32, 32, 0)


def test_an_index_without_groups_tells_of_none(engine, signed):
    (one,) = statistics(engine, signed)
    assert (one.grouped, one.ungrouped, one.placeholders) == (None, None, 0)
    assert "grouped" not in one.to_json()
