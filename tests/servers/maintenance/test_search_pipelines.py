"""An index whose searches the server takes through a pipeline: what must meet all documents does."""

from collections.abc import Iterator
from dataclasses import replace
from urllib.error import HTTPError

import pytest
from support.gate.crashes import make_pipeline

from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.intent_index import intents_name
from shinglefold.grouping.regroup import regroup
from shinglefold.grouping.report import make_report
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose
from shinglefold.rerank import FoldedSearch

COUNT = 120
#: As users have them for their pages: what a visitor may see, and no more hits than a page has.
PIPELINES = {
    "filters": {"request_processors": [{"filter_query": {"query": {"term": {"visible": True}}}}]},
    "cuts": {"response_processors": [{"truncate_hits": {"target_size": 7}}]},
}


@pytest.fixture(scope="module")
def gate_pipeline():
    return make_pipeline()


@pytest.fixture(params=PIPELINES)
def piped(request, engine, server, new_index, gate_pipeline) -> Iterator[str]:
    """Documents without fingerprints, each fourth a copy of the one before, behind a pipeline."""
    name = f"shinglefold-{request.param}"
    try:
        server.ask("PUT", f"/_search/pipeline/{name}", PIPELINES[request.param])
    except HTTPError as error:
        pytest.skip(f"this server has no such search pipelines ({error.code})")
    made = recipe_mappings(replace(gate_pipeline.recipe(), groups=True))
    made["properties"] |= {"visible": {"type": "boolean"}, "body": {"type": "text"}}
    index = new_index(made, {"number_of_shards": 2, "search.default_pipeline": name})
    engine.bulk({"_index": index, "_id": f"d{at}", "_source": _document(at)} for at in range(COUNT))
    engine.refresh(index)
    yield index
    if engine.index_exists(intents_name(index)):
        engine.delete_index(intents_name(index))
    server.ask("PUT", f"/{index}/_settings", {"search.default_pipeline": "_none"})
    server.ask("DELETE", f"/_search/pipeline/{name}")


def _document(at):
    text = at - 1 if at % 4 == 3 else at
    return {"body": " ".join(f"word{text}of{place}" for place in range(40)), "visible": at % 2 == 0}


def test_every_document_is_signed_examined_grouped_and_counted(engine, piped, gate_pipeline):
    done = backfill(engine, piped, gate_pipeline, BackfillOptions(workers=1))
    assert (done.counts.read, done.counts.updated, done.remaining) == (COUNT, COUNT, 0)
    found = diagnose(engine, piped, gate_pipeline, DoctorOptions(workers=1))
    assert (found.documents, found.findings["sound"]) == (COUNT, COUNT)
    made = regroup(engine, piped)
    assert (made.counts.read, made.settled) == (COUNT, True)
    report = make_report(engine, piped)
    assert (report.documents, report.copies, report.without_group) == (COUNT, COUNT // 4, 0)


def test_a_gate_is_shown_what_no_page_shows(engine, piped, gate_pipeline):
    backfill(engine, piped, gate_pipeline, BackfillOptions(workers=1))
    with Gate(engine, piped, Policy("refuse"), pipeline=gate_pipeline) as gate:
        told = gate.add_all([{"_id": f"again{at}", "body": _document(at)["body"]} for at in range(COUNT)])
    assert {one.status for one in told} == {"refused"}


def test_a_page_that_is_cut_short_says_so(engine, piped, gate_pipeline):
    backfill(engine, piped, gate_pipeline, BackfillOptions(workers=1))
    body = {"query": {"match_all": {}}, "size": 10}
    total = engine.search(piped, body)["hits"]["total"]
    answer = FoldedSearch(engine, gate_pipeline.scheme).search(piped, body)
    # The pipeline of an index is that of its pages: what these may show is for whoever made it to say.
    assert answer["hits"]["total"] == total
    if piped_cuts := total["value"] == COUNT:
        assert answer["dedup"]["partial"] == {"cut_hits": COUNT - 7}
        assert answer["dedup"]["groups_total"]["relation"] != "eq"
    assert (answer["dedup"]["stopped_by"] == "partial_answer") == piped_cuts
    assert ("partial" in answer["dedup"]) == piped_cuts
