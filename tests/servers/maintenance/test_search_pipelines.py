"""An index whose searches the server takes through a pipeline: what must meet all documents does."""

from collections.abc import Iterator
from dataclasses import replace
from urllib.error import HTTPError

import pytest
from support.gate.crashes import make_pipeline
from support.maintenance import put

from shinglefold.errors import ConfigError
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.intent_index import intents_name
from shinglefold.grouping.regroup import regroup
from shinglefold.grouping.report import make_report
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose
from shinglefold.rerank import FoldedSearch, FoldOptions

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
    put(engine, index, {f"d{at}": _document(at) for at in range(COUNT)})
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
    assert report.largest
    assert all(len(one.members) == one.documents == 2 for one in report.largest)


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
    cuts = total["value"] == COUNT
    assert len(answer["hits"]["hits"]) == (7 if cuts else 10)
    assert answer["dedup"].get("partial") == ({"cut_hits": 3} if cuts else None)
    assert answer["dedup"]["vanished"] == 0
    if cuts:
        assert answer["dedup"]["groups_total"]["relation"] != "eq"


OVERSAMPLE = {"oversample": {"sample_factor": 3}}
FILTER = {"filter_query": {"query": {"term": {"visible": True}}}}
SCRIPT = {"script": {"lang": "painless", "source": "ctx._source['size'] = 3"}}
#: Pipelines, as users have them for pages.
SHAPES = {
    "rename": {"response_processors": [{"rename_field": {"field": "body", "target_field": "text"}}]},
    "collapse": {"response_processors": [{"collapse": {"field": "host"}}]},
    "collapse what is missing": {"response_processors": [{"collapse": {"field": "nowhere"}}]},
    "oversample": {"request_processors": [OVERSAMPLE], "response_processors": [{"truncate_hits": {}}]},
    "filter, sort, cut": {
        "request_processors": [FILTER],
        "response_processors": [{"truncate_hits": {"target_size": 5}}, {"sort": {"field": "tags"}}],
    },
    "script": {"request_processors": [SCRIPT]},
}


@pytest.fixture(scope="module")
def plain_index(engine, server, gate_pipeline):
    """Thirty documents without copies, five of each host."""
    index = "shinglefold-shaped"
    made = recipe_mappings(gate_pipeline.recipe())
    made["properties"] |= {"visible": {"type": "boolean"}, "body": {"type": "text"}}
    made["properties"] |= {"host": {"type": "keyword"}, "number": {"type": "integer"}}
    engine.create_index(index, made, {"number_of_shards": 2, "number_of_replicas": 0})
    documents = [
        {**_document(4 * at), "visible": at % 2 == 0, "number": at, "host": f"h{at // 5}", "tags": ["b", "a"]}
        for at in range(30)
    ]
    signed = [one.document for one in gate_pipeline.run(documents)]
    put(engine, index, {str(one["number"]): one for one in signed})
    yield index
    engine.delete_index(index)


@pytest.mark.parametrize("how", ["of the index", "by name", "in the body", "as parameter"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_page_goes_through_the_pipeline_as_without_folding(
    engine, server, plain_index, gate_pipeline, shape, how
):
    name = "shinglefold-shape"
    try:
        server.ask("PUT", f"/_search/pipeline/{name}", SHAPES[shape])
    except HTTPError as error:
        pytest.skip(f"this server has no such search pipelines ({error.code})")
    body = {"query": {"match_all": {}}, "sort": [{"number": "desc"}], "size": 10}
    params = {"search_pipeline": name} if how == "as parameter" else None
    if how == "of the index":
        server.ask("PUT", f"/{plain_index}/_settings", {"search.default_pipeline": name})
    elif how != "as parameter":
        body["search_pipeline"] = name if how == "by name" else SHAPES[shape]
    folded = FoldedSearch(engine, gate_pipeline.scheme)
    try:
        native = engine.search(plain_index, body, params)
        pages = [folded.search(plain_index, body, params=params)]
        if params is None:
            pages += folded.msearch([(plain_index, body)])
        for page in pages:
            assert _shown(page) == _shown(native)
            assert (page["dedup"]["mode"] == "unfolded") == (shape == "script")
            assert page["dedup"]["vanished"] == 0
        if shape == "script":
            with pytest.raises(ConfigError, match="'script'"):
                folded.search(plain_index, body, FoldOptions(on_trouble="raise"), params=params)
        if shape in ("rename", "oversample"):
            walked = list(folded.pages(plain_index, body, params=params))
            assert sum(len(page["hits"]["hits"]) for page in walked) == 30
    finally:
        server.ask("PUT", f"/{plain_index}/_settings", {"search.default_pipeline": "_none"})
        server.ask("DELETE", f"/_search/pipeline/{name}")


def _shown(page):
    names = ("_id", "_score", "_source", "sort")
    return [{name: hit.get(name) for name in names} for hit in page["hits"]["hits"]]
