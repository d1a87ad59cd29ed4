"""Documents with one id in several indices behind one alias: each is named by index and id."""

import json
import shlex
from dataclasses import replace
from itertools import islice

import pytest
from support.servers.server import add_alias

import shinglefold
from shinglefold.examples import articles
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.numbering import Numbering
from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.maintenance import BackfillOptions, backfill
from shinglefold.rerank.similar import SimilarSearch

pytestmark = pytest.mark.newest

SETTINGS = {"number_of_shards": 5, "number_of_replicas": 0}


@pytest.fixture
def alias(engine, new_index, server) -> tuple[str, list[str]]:
    """Three indices, in each two documents of one text, which is another in each."""
    pipeline = Pipeline.from_json(default_definition())
    names = [new_index(recipe_mappings(pipeline.recipe()), SETTINGS) for _ in range(3)]
    for name, article in zip(names, islice(articles(), 0, None, 40), strict=False):
        several = [{**article, "id": id_, "url": f"https://a.org/{id_}"} for id_ in ("page", "a/page")]
        assert index_documents(engine, name, several, pipeline, workers=1).indexed == 2
    alias = f"{names[0]}-all"
    add_alias(server, alias, *names)
    return alias, names


def test_one_of_several_documents_of_an_id_is_named_by_its_index(run, alias):
    name, indices = alias
    for index in indices:
        code, out, told = run("similar", f"{index}/page", "--index", name, "--json")
        assert (code, told) == (0, "")
        assert [(one["_index"], one["_id"]) for one in json.loads(out)["matches"]] == [(index, "a/page")]
        code, out, _ = run("similar", f"{index}/a/page", "--index", name)
        assert code == 0
        assert f"{index}/page" in out


@pytest.mark.parametrize("command", [["similar", "page"], ["compare", "page", "a/page"]])
def test_an_id_of_several_documents_is_refused_with_a_command_for_each(run, alias, command):
    name, indices = alias
    code, _, told = run(*command, "--index", name)
    assert code == 1
    offered = [one.strip() for one in told.split("by its index: ")[1].split(";")]
    assert [shlex.split(one)[2] for one in offered] == sorted(f"{index}/page" for index in indices)
    if command[0] == "similar":
        for one in offered:
            assert run(*shlex.split(one)[1:])[0] == 0


def test_a_document_that_a_filter_hides_can_not_be_named(run, engine, alias, server):
    _, indices = alias
    filtered = f"{indices[0]}-some"
    add_alias(server, filtered, indices[0], filter={"ids": {"values": ["a/page"]}})
    code, _, told = run("similar", f"{indices[0]}/page", "--index", filtered)
    assert code == 1
    assert "no document of this id" in told
    assert SimilarSearch(engine).find(filtered, "a/page").matches == ()


def test_a_document_of_one_of_many_indices_is_named_by_its_index(new_index, server):
    names = [
        new_index({"properties": {"body": {"type": "text"}}}, {"number_of_shards": 1}) for _ in range(12)
    ]
    for name in names:
        shinglefold.setup(server.url, name, text=["body"])
        with shinglefold.open(server.url, name) as index:
            index.index([{"id": id_, "body": "Мост через реку закрыли на ремонт."} for id_ in ("same", name)])
    with shinglefold.open(server.url, ",".join(names)) as index:
        for name in names:
            assert index.explain((name, "same"), name)["folds"]


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline.from_json(default_definition())


@pytest.fixture
def grouped(engine, new_index, pipeline) -> str:
    """An index in whose shards documents of one id under several routings stand."""
    return new_index(recipe_mappings(replace(pipeline.recipe(), groups=True)), SETTINGS)


def _store(engine, index, id_, *routings, body):
    made = [{"_index": index, "_id": id_, "_source": {"body": body}, "routing": one} for one in routings]
    assert not engine.bulk(made).failures
    engine.refresh(index)


def _filled(engine, index, pipeline):
    """Number documents that have no number, as a run that indexes them does."""
    query = {"bool": {"must_not": [{"exists": {"field": "_dedup.group"}}]}}
    hits = engine.search(index, {"query": query, "size": 100})["hits"]["hits"]
    actions = [
        {"_index": index, "_id": hit["_id"], "routing": hit["_routing"], "_source": outcome.document}
        for hit, outcome in zip(hits, pipeline.run(hit["_source"] for hit in hits), strict=True)
    ]
    assert not engine.bulk(Numbering(engine, index, pipeline.recipe()).number(actions)).failures
    return _numbers(engine, index)


def _numbers(engine, index):
    engine.refresh(index)
    hits = engine.search(index, {"size": 100})["hits"]["hits"]
    parts = {(hit["_id"], hit.get("_routing")): hit["_source"]["_dedup"] for hit in hits}
    return {name: (one["group"], one["leader"]) for name, one in parts.items()}


#: Routings of different shards, of five.
_APART = ("a", "b", "c")


def test_a_copy_under_another_routing_joins_the_document_of_its_id(engine, grouped, pipeline):
    text = next(articles())["body"]
    for routing, body in (("a", text), ("b", f"{text} Ещё слово."), ("c", text)):
        _store(engine, grouped, "page", routing, body=body)
        found = _filled(engine, grouped, pipeline)
    assert len(found) == 3
    assert {group for group, _ in found.values()} == {found["page", "a"][0]}
    assert [found["page", routing][1] for routing in _APART] == [True, False, False]


def test_passages_are_those_of_the_document_of_an_id_that_is_meant(engine, grouped, pipeline):
    texts = [article["body"] for article in islice(articles(), 0, 80, 40)]
    with Gate(engine, grouped, Policy("refuse"), pipeline=pipeline) as gate:
        gate.add_all(
            [{"id": "page", "_routing": one, "body": text} for one, text in zip("ab", texts, strict=True)]
        )
        for text in texts:
            copy = {"id": "copy", "body": f"{text} Ещё слово."}
            (verdict,) = gate.add_all([copy])
            assert verdict.like.id == "page"
            shown = [one["shown"]["text"] for one in gate.passages(copy, "page")]
            assert shown
            assert all(one in text for one in shown)


@pytest.mark.parametrize("way", ["insert", "gate", "regroup"])
def test_textless_documents_of_one_id_have_a_number_each(engine, grouped, pipeline, way):
    if way == "gate":
        with Gate(engine, grouped, Policy("tag"), pipeline=pipeline) as gate:
            gate.add_all([{"_id": "page", "_routing": one, "body": ""} for one in _APART])
        found = _numbers(engine, grouped)
    else:
        _store(engine, grouped, "page", *_APART, body="")
        if way == "regroup":
            backfill(engine, grouped, pipeline, BackfillOptions(workers=1))
            regroup(engine, grouped, RegroupOptions())
            found = _numbers(engine, grouped)
        else:
            found = _filled(engine, grouped, pipeline)
    assert len(found) == len({group for group, _ in found.values()}) == 3
    assert all(leads for _, leads in found.values())


def test_right_after_a_rollover_a_document_of_the_old_index_is_no_earlier_version(
    engine, new_index, server, pipeline
):
    old, new = (new_index(recipe_mappings(replace(pipeline.recipe(), groups=True)), {}) for _ in range(2))
    alias, text = f"{old}-all", next(articles())["body"]
    _point(server, alias, {old: True})
    numbering = Numbering(engine, alias, pipeline.recipe())
    told = []
    for body in (text, f"{text} Ещё слово."):
        (outcome,) = pipeline.run_block([{"_id": "page", "body": body}])
        source = {name: value for name, value in outcome.document.items() if name != "_id"}
        numbered = numbering.number([{"_index": alias, "_id": "page", "_source": source}])
        assert not engine.bulk(numbered).failures
        told += [one["_source"]["_dedup"] for one in numbered]
        engine.refresh(alias)
        _point(server, alias, {old: False, new: True})
    assert [one["leader"] for one in told] == [True, False]
    assert told[0]["group"] == told[1]["group"]


def _point(server, alias, writes):
    add = [{"add": {"index": name, "alias": alias, "is_write_index": one}} for name, one in writes.items()]
    server.ask("POST", "/_aliases", {"actions": add})
