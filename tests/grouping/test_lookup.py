"""Candidates are searched by one request a batch, or by several where that finds too many."""

import operator

import pytest
from support.maintenance import put

from shinglefold.grouping import candidate_search as lookups
from shinglefold.grouping.candidate_search import CandidateLookup
from shinglefold.grouping.field_values import Values
from shinglefold.grouping.rules import Rules
from shinglefold.grouping.similarity import similarity_model
from shinglefold.runtime.sans_io import run


@pytest.fixture
def likeness(engine, pipeline):
    values = Values.of_all(engine, "texts", ())
    return similarity_model(pipeline.recipe(), Rules(), None, values)


@pytest.fixture
def stored(engine, pipeline, text):
    """Store some copies of each text, and return another copy of each."""

    def store(*counts):
        given = [
            {"_id": f"{kind}-{at}", "body": text(kind)} for kind, n in enumerate(counts) for at in range(n)
        ]
        made = [dict(outcome.document) for outcome in pipeline.run_block(given)]
        put(engine, "texts", {one.pop("_id"): one for one in made})
        asked = [{"_id": f"{kind}", "body": text(kind) if n else ""} for kind, n in enumerate(counts)]
        return [outcome.document for outcome in pipeline.run_block(asked)]

    return store


def test_a_number_that_many_documents_have_hides_no_other(engine, likeness):
    groups = [5] * 150 + [7] + [11] * 150
    put(engine, "texts", {f"{at}": {"_dedup": {"group": group}} for at, group in enumerate(groups)})
    lookup = CandidateLookup(engine, "texts", likeness)
    assert lookup.find([], (), "_dedup.group", [5, 7, 9, 11]) == ([], {5, 7, 11})


@pytest.mark.parametrize("searches", [1, 2, 50])
def test_documents_with_more_copies_than_were_read_are_marked(
    engine, likeness, stored, monkeypatch, searches
):
    monkeypatch.setattr(lookups, "_SEARCHES", searches)
    monkeypatch.setattr(lookups, "_MANY", 2)
    # The second has no text, so that nothing is like it.
    asked = [likeness.query_document(document) for document in stored(3, 0, 1, 2, 1, 4)]
    found = run(CandidateLookup(engine, "texts", likeness).find_deep(asked), operator.call)
    assert found.truncated == {0, 3, 5}
    assert {(pair.one, found.hits[pair.other]["_id"].partition("-")[0]) for pair in found.pairs} == {
        (kind, f"{kind}") for kind in (0, 2, 3, 4, 5)
    }
    assert len(found.pairs) == 2 + 1 + 2 + 1 + 2


def test_candidates_beyond_the_batch_search_are_found_by_own_searches(engine, likeness, stored, monkeypatch):
    monkeypatch.setattr(lookups, "_EXTRA", 0)
    monkeypatch.setattr(lookups, "_FOR_EACH", 1)
    monkeypatch.setattr(lookups, "_FEW", 2)
    asked = [likeness.query_document(document) for document in stored(5, 1)]
    lookup = CandidateLookup(engine, "texts", likeness)
    hits, _ = lookup.find(asked, (), "_dedup.group", [])
    assert {hit["_id"] for hit in hits} == {*(f"0-{at}" for at in range(5)), "1-0"}
    near, _ = run(lookup.find_candidates(asked, "_dedup.group", ()), operator.call)
    assert (len(near.hits), near.truncated) == (3, {0})


@pytest.mark.parametrize("together", [1, 2, 100])
def test_texts_are_read_at_the_given_positions(engine, likeness, stored, monkeypatch, text, together):
    monkeypatch.setattr(lookups, "_TEXTS", together)
    asked = [likeness.query_document(document) for document in stored(5)]
    lookup = CandidateLookup(engine, "texts", likeness)
    hits, _ = lookup.find(asked, (), "_dedup.group", [])
    told = lookup.with_texts(hits, [0, 1, 2, 4])
    assert [hit["_source"].get("body") for hit in told if "_source" in hit] == [text(0)] * 4
    assert told[3] == hits[3]
