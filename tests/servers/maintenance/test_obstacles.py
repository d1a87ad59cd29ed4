"""Nothing is written into an index where an update would lose what is indexed."""

import json

import pytest
from support.maintenance import FIELDS, mapped, pages, store, stored
from support.servers.server import blocked
from support.topologies import laid_out

import shinglefold
from shinglefold.errors import ConfigError, UnsupportedQuery
from shinglefold.ingest import mappings
from shinglefold.ingest.index_mapping import default_recipe
from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose
from shinglefold.maintenance.deletion import carry_out_removal, plan_removal
from shinglefold.maintenance.setup import SetupRequest, carry_out, make_plan

pytestmark = pytest.mark.newest

ALONE = BackfillOptions(workers=1)
COUNT = 30


def found(engine, index) -> int:
    word = pages(1)[0]["body"].split()[0]
    return engine.search(index, {"query": {"match": {"body": word}}, "size": 0})["hits"]["total"]["value"]


@pytest.mark.parametrize(
    "source", [{"excludes": ["body"]}, {"includes": ["title", "_dedup.*"]}, {"excludes": ["_dedup"]}]
)
def test_what_the_source_leaves_out_is_not_lost(engine, new_index, scheme, pipeline, source):
    made = mappings(scheme)
    index = new_index({**made, "properties": {**made["properties"], **FIELDS}, "_source": source})
    store(engine, index, pages(COUNT))
    before = found(engine, index)
    assert before > 0
    with pytest.raises(ConfigError, match="omits fields"):
        backfill(engine, index, pipeline, ALONE)
    plan = make_plan(engine, SetupRequest(default_recipe(scheme.with_options(values=168)), indices=(index,)))
    assert "omits fields" in plan.problems[index][0]
    assert not [change for change in plan.changes if change.name == index]
    assert not plan.backfills
    told = diagnose(engine, index, pipeline, DoctorOptions(workers=1))
    assert not told.healthy
    assert "omits fields" in told.obstacles[0]
    assert found(engine, index) == before


def test_a_derived_source_is_refused(engine, new_index, scheme):
    try:
        index = new_index({"properties": {"body": {"type": "keyword"}}}, {"derived_source.enabled": True})
    except UnsupportedQuery as error:
        pytest.skip(f"this server can't: {error}")
    plan = make_plan(engine, SetupRequest(default_recipe(scheme), indices=(index,)))
    assert "rebuilt" in plan.problems[index][0]
    assert not [change for change in plan.changes if change.name == index]


def test_an_index_that_leaves_out_long_keywords_is_refused_with_a_remedy(
    engine, new_index, server, scheme, pipeline
):
    try:
        index = new_index(mapped(scheme), {"index.mapping.ignore_above": 20})
    except UnsupportedQuery as error:
        pytest.skip(f"this server can't: {error}")
    store(engine, index, pages(COUNT))
    with pytest.raises(ConfigError, match="no keyword of more than 20 characters") as refused:
        backfill(engine, index, pipeline, ALONE)
    plan = make_plan(engine, SetupRequest(default_recipe(scheme), indices=(index,)))
    assert "ignore_above" in plan.problems[index][0]
    assert "ignore_above" in diagnose(engine, index, pipeline, DoctorOptions(workers=1)).obstacles[0]
    path, body = str(refused.value).split("PUT ")[1].split(" ", 1)
    server.ask("PUT", path, json.loads(body))
    assert backfill(engine, index, pipeline, ALONE).remaining == 0


@pytest.mark.parametrize("text", ["head", "title.exact"])
def test_a_text_field_that_no_document_has_is_refused(engine, server, new_index, text):
    title = {"type": "text", "fields": {"exact": {"type": "keyword"}}}
    head = {"head": {"type": "alias", "path": "title"}} if text == "head" else {}
    try:
        index = new_index({"properties": {"title": title, **head}})
    except UnsupportedQuery as error:
        pytest.skip(f"this server has no field aliases: {error}")
    with pytest.raises(ConfigError, match=r"name \[title\] instead"):
        shinglefold.setup(server.url, index, text=[text])
    assert "_meta" not in engine.mappings(index)


def test_vectors_that_the_server_leaves_out_of_the_source_stay(engine, new_index, scheme, pipeline):
    vector = {"type": "dense_vector", "dims": 2}
    made = mapped(
        scheme,
        v=vector,
        part={"properties": {"v": vector}},
        many={"type": "nested", "properties": {"v": vector}},
    )
    try:
        index = new_index(made)
    except UnsupportedQuery as error:
        pytest.skip(f"this server can't: {error}")
    vectors = {"v": [1, 2], "part": {"v": [3, 4]}, "many": [{"v": [5.5, 6]}]}
    (outcome,) = pipeline.run_block([{**pages(1, seed=5)[0], "_id": "other"}])
    # No partial update removes a key with a dot, so such documents are written whole.
    forms = ({}, {f"_dedup.{part}": value for part, value in outcome.document["_dedup"].items()})
    store(engine, index, [{**page, **vectors, **forms[at % 2]} for at, page in enumerate(pages(COUNT))])
    assert backfill(engine, index, pipeline, ALONE).counts.updated == COUNT
    asked = {"_source": {"exclude_vectors": False}, "ext": {"dedup": {"verify": "text"}}}
    shown = shinglefold.open(engine, index).search(asked)["hits"]["hits"][0]["_source"]
    assert {name: shown.get(name) for name in vectors} == vectors
    assert carry_out_removal(engine, plan_removal(engine, index)).removed == COUNT
    hits = engine.search(index, {"size": COUNT, "_source": ["*"]})["hits"]["hits"]
    assert [{name: hit["_source"].get(name) for name in vectors} for hit in hits] == [vectors] * COUNT
    assert not any("_dedup" in hit["_source"] for hit in hits)


def test_foreign_objects_stay(engine, new_index, scheme, pipeline):
    index = new_index({"properties": {**FIELDS, "_dedup": {"properties": {"of": {"type": "keyword"}}}}})
    store(engine, index, [{**page, "_dedup": {"of": "x"}} for page in pages(COUNT)])
    plan = make_plan(engine, SetupRequest(default_recipe(scheme), indices=(index,)))
    assert f"shinglefold setup {index} --dedup-field" in plan.problems[index][0]
    assert not [change for change in plan.changes if change.name == index]
    with pytest.raises(ConfigError):
        backfill(engine, index, pipeline, ALONE)
    assert all(source["_dedup"] == {"of": "x"} for source in stored(engine, index).values())


@pytest.mark.parametrize("block", ["write", "read_only"])
def test_an_index_that_takes_no_writes_is_told_before_the_first(engine, server, unsigned, pipeline, block):
    index = unsigned(COUNT)
    with blocked(server, index, block):
        with pytest.raises(ConfigError, match=rf"PUT /{index}/_settings"):
            backfill(engine, index, pipeline, ALONE)
        told = diagnose(engine, index, pipeline, DoctorOptions(workers=1))
        assert not told.obstacles
        assert any("takes no writes" in remark for remark in told.remarks)
    assert backfill(engine, index, pipeline, ALONE).counts.updated == COUNT


def test_a_closed_index_behind_a_name_is_told(engine, server, unsigned, pipeline):
    index = unsigned(COUNT)
    server.ask("POST", f"/{index}/_close")
    with pytest.raises(ConfigError, match=f"POST /{index}/_open"):
        backfill(engine, index, pipeline, ALONE)
    assert f"POST /{index}/_open" in str(plan_removal(engine, index).problems[index])


@pytest.mark.parametrize("mapped", [True, False, "strict", "runtime"])
def test_whatever_happens_to_new_fields_fingerprints_have_theirs(engine, new_index, scheme, pipeline, mapped):
    try:
        index = new_index(
            {
                "dynamic": mapped,
                "properties": {
                    **FIELDS,
                    "id": {"type": "keyword", "copy_to": "all"},
                    "all": {"type": "text"},
                    "seen": {"type": "date", "ignore_malformed": True},
                },
            }
        )
    except UnsupportedQuery as error:
        pytest.skip(f"this server can't: {error}")
    store(engine, index, [{**page, "seen": "yesterday"} for page in pages(COUNT)])
    carry_out(engine, make_plan(engine, SetupRequest(default_recipe(scheme), indices=(index,))))
    assert backfill(engine, index, pipeline, ALONE).remaining == 0
    # What the server made of a document is made again: copies, and what was left out as malformed.
    by_copy = {"query": {"match_phrase": {"all": "page-3"}}, "size": 0}
    assert engine.search(index, by_copy)["hits"]["total"]["value"] == 1
    ignored = {"query": {"term": {"_ignored": "seen"}}, "size": 0}
    assert engine.search(index, ignored)["hits"]["total"]["value"] == COUNT
    assert diagnose(engine, index, pipeline, DoctorOptions(workers=1)).healthy


def test_another_clusters_index_is_refused_in_words(engine, scheme, pipeline):
    with pytest.raises(UnsupportedQuery, match="address of 'remote' itself, and the name 'pages'"):
        backfill(engine, "remote:pages", pipeline, ALONE)
    with pytest.raises(UnsupportedQuery, match="'remote'"):
        make_plan(engine, SetupRequest(default_recipe(scheme), indices=("remote:pages",)))
    with pytest.raises(UnsupportedQuery, match="'remote'"):
        diagnose(engine, "remote:*", pipeline)


def test_a_data_stream_is_set_up_and_what_a_rollover_would_lack_is_told(engine, server, scheme, pipeline):
    with laid_out("data_stream", engine, server, pages(COUNT), {"properties": FIELDS}) as place:
        plan = make_plan(engine, SetupRequest(default_recipe(scheme), indices=(place.target,)))
        assert {change.name for change in plan.changes if change.kind == "mappings"} == set(place.indices)
        assert plan.backfills.keys() == set(place.indices)
        (told,) = plan.problems[f"data stream {place.target}"]
        assert f"PUT /_index_template/{place.target}" in told
        assert '"composed_of": ["shinglefold-_dedup"]' in told
        carry_out(engine, plan)
        assert backfill(engine, place.target, pipeline, ALONE).counts.updated == COUNT
        body = engine.index_templates()[place.target] | {"composed_of": ["shinglefold-_dedup"]}
        engine.put_index_template(place.target, body)
        server.ask("POST", f"/{place.target}/_rollover")
        plan = make_plan(engine, SetupRequest(default_recipe(scheme), indices=(place.target,)))
        assert (plan.changes, plan.problems) == ((), {})
        new = {"_op_type": "create", "_index": place.target, "_id": "new", "_source": place.documents[0]}
        assert not engine.bulk([new]).failures
        assert backfill(engine, place.target, pipeline, ALONE).counts.updated == 1
        assert diagnose(engine, place.target, pipeline, DoctorOptions(workers=1)).healthy
