"""Groups as they are lived with: aliases and rollovers, filters, dates in formats of their own."""

import time
from calendar import timegm
from dataclasses import replace

import pytest
from support.gate.crashes import make_pipeline
from support.hits import fingerprint_of
from support.numbered import USUAL, mappings, store, stored
from support.random_pages import SPECS

from shinglefold.grouping.numbering import Numbering
from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.grouping.report import ReportFields, make_report
from shinglefold.ingest import index_documents
from shinglefold.ingest.index_mapping import new_mappings
from shinglefold.maintenance import BackfillOptions, backfill
from shinglefold.model.recipe import Recipe

pytestmark = pytest.mark.newest

SETTINGS = {"number_of_shards": 3, "number_of_replicas": 0}
SAME = " ".join(f"w{number}" for number in range(80))


@pytest.fixture(scope="module")
def pipeline():
    return make_pipeline()


@pytest.fixture
def aliased(engine, server, new_index):
    """Makes an alias of indices, of which the last takes what is new, or whose filter hides documents."""
    made = []

    def alias(*indices: str, **options: object) -> str:
        name = f"{indices[0]}-alias"
        for index in indices:
            given = {"is_write_index": index == indices[-1], **options}
            server.ask("PUT", f"/{index}/_alias/{name}", given)
        made.append((indices, name))
        return name

    yield alias
    for indices, name in made:
        for index in indices:
            server.ask("DELETE", f"/{index}/_alias/{name}")


def numbering(engine, index, pipeline):
    recipe = Recipe.of(engine.mappings(index), index)
    return Numbering(engine, index, recipe)


def put(engine, index, pipeline, *documents):
    made = numbering(engine, index, pipeline)
    summary = index_documents(engine, index, documents, pipeline, workers=1, groups=made)
    assert summary.failed == 0
    made.marker.end()
    engine.refresh(index)


def told(engine, index):
    """Group and role by index and id."""
    engine.refresh(index)
    hits = engine.search(index, {"size": 100})["hits"]["hits"]
    return {(hit["_index"], hit["_id"]): hit["_source"]["_dedup"] for hit in hits}


@pytest.fixture
def rolled(engine, pipeline, new_index, aliased):
    """Two indices behind an alias, the second for new documents."""
    recipe = replace(pipeline.recipe(), groups=True)
    first, second = (new_index(new_mappings(recipe, {}), SETTINGS) for _ in range(2))
    return first, second, aliased(first, second)


def test_a_document_of_the_same_id_in_an_older_index_is_another(engine, pipeline, rolled):
    first, _second, alias = rolled
    put(engine, first, pipeline, {"id": "1", "body": SAME}, {"id": "2", "body": f"{SAME} x"})
    put(engine, alias, pipeline, {"id": "1", "body": SAME}, {"id": "2", "body": SAME})
    found = told(engine, alias)
    assert len(found) == 4
    assert len({one["group"] for one in found.values()}) == 1
    assert [name for name, one in found.items() if one["leader"]] == [(first, "1")]
    assert regroup(engine, alias).counts.planned == 0


def test_texts_without_words_are_alone_wherever_their_ids_are(engine, pipeline, rolled):
    first, _second, alias = rolled
    bare = {"id": "1", "body": ""}
    put(engine, first, pipeline, bare)
    put(engine, alias, pipeline, bare)
    found = told(engine, alias)
    assert len({one["group"] for one in found.values()}) == 2


def test_a_backfill_and_regrouping_tell_documents_of_one_id_apart(engine, pipeline, rolled):
    first, second, alias = rolled
    for index in (first, second):
        source = {"body": SAME}
        assert not engine.bulk([{"_index": index, "_id": "1", "_source": source}]).failures
        assert not engine.bulk([{"_index": index, "_id": "2", "_source": {"body": ""}}]).failures
    engine.refresh(alias)
    assert backfill(engine, alias, pipeline, BackfillOptions(workers=1)).counts.updated == 4
    regroup(engine, alias)
    found = told(engine, alias)
    assert found[first, "1"]["group"] == found[second, "1"]["group"]
    assert [found[index, "1"]["leader"] for index in (first, second)].count(True) == 1
    assert found[first, "2"]["group"] != found[second, "2"]["group"]
    assert regroup(engine, alias).counts.planned == 0


def test_what_a_filter_hides_is_left_as_it_is(engine, new_index, aliased):
    index = new_index(mappings(), SETTINGS)
    store(engine, index, USUAL)
    regroup(engine, index, RegroupOptions("connected"))
    before = stored(engine, index)
    alias = aliased(index, filter={"term": {"host": "a.org"}})
    summary = regroup(engine, alias, RegroupOptions("leader"))
    assert summary.settled
    after = stored(engine, index)
    hidden = [number for number in USUAL if SPECS[number].host != "a.org"]
    assert summary.counts.read == len(USUAL) - len(hidden)
    assert {number: after[number] for number in hidden} == {number: before[number] for number in hidden}


def test_a_field_of_dates_leads_by_its_dates_whatever_their_format(engine, new_index):
    made = mappings()
    made["properties"]["day"] = {"type": "date", "format": "dd.MM.yyyy"}
    made["properties"]["at"] = {"type": "date", "format": "epoch_second"}
    index = new_index(made, SETTINGS)
    stored_as = fingerprint_of(SPECS[USUAL[0]]).to_field()
    days = {"p1": "03.01.2026", "p2": "01.02.2026", "p3": "02.12.2025"}
    actions = []
    for id_, day in days.items():
        seconds = timegm(time.strptime(day, "%d.%m.%Y"))
        told_as = {"day": day, "at": seconds, "_dedup": stored_as}
        actions.append({"_index": index, "_id": id_, "_source": told_as})
    assert not engine.bulk(actions).failures
    for field, leads in (("day", 3), ("-day", 2), ("at", 3), ("-at", 2)):
        regroup(engine, index, RegroupOptions(order=field))
        assert [number for number, one in stored(engine, index).items() if one["leader"]] == [leads], field
    for field in ("day", "at"):
        told_by = make_report(engine, index, ReportFields(date=field))
        assert [(one.value, one.documents) for one in told_by.months] == [
            ("2025-12", 1),
            ("2026-01", 1),
            ("2026-02", 1),
        ], field
        assert told_by.newest[0].newest == "2026-02-01"


@pytest.mark.parametrize("form", ["names with dots", "list"])
def test_a_fingerprint_in_another_form_gets_one_number(engine, new_index, form):
    index = new_index(mappings(), SETTINGS)
    store(engine, index, USUAL[:20])
    regroup(engine, index)
    spec = SPECS[USUAL[0]]
    parts = {**fingerprint_of(spec).to_field(), "group": 7, "leader": True}
    there = {"_dedup": [parts]} if form == "list" else {f"_dedup.{name}": one for name, one in parts.items()}
    source = {**there, "host": spec.host}
    assert not engine.bulk([{"_index": index, "_id": "p9001", "_source": source}]).failures
    summary = regroup(engine, index)
    assert (summary.settled, summary.counts.conflicts, summary.counts.failed) == (True, 0, 0)
    found = stored(engine, index)
    assert found[9001]["group"] == found[USUAL[0]]["group"]
    assert found[9001]["digest"] == parts["digest"]
    body = {"docvalue_fields": ["_dedup.group"], "query": {"ids": {"values": ["p9001"]}}}
    (hit,) = engine.search(index, body)["hits"]["hits"]
    assert hit["fields"]["_dedup.group"] == [found[9001]["group"]]
    assert regroup(engine, index).counts.planned == 0
