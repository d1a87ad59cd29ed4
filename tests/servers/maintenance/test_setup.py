"""Mappings and templates on real servers: installed once, upgraded in place."""

import base64
import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from urllib.error import HTTPError

import pytest
from support.clients import a_client
from support.maintenance import FIELDS, mapped, pages, store
from support.servers.admin import ask
from support.taps import Changed

import shinglefold
from shinglefold import fold
from shinglefold.errors import ConfigError, UnsupportedQuery
from shinglefold.ingest import Pipeline, default_definition, index_documents, mappings
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.maintenance import BackfillOptions, backfill, diagnose
from shinglefold.maintenance.deletion import carry_out_removal, plan_removal
from shinglefold.maintenance.setup import Plan, SetupRequest, carry_out, component_body, make_plan
from shinglefold.model.scheme import Scheme
from shinglefold.rerank.index_fields import mapped_at


@pytest.fixture
def asked(server, scheme: Scheme) -> Iterator[SetupRequest]:
    name = f"shinglefold-test-{uuid.uuid4().hex[:8]}"
    made = SetupRequest(default_recipe(scheme), patterns=(f"{name}-*",), name=name)
    yield made
    for path in (f"/{name}-1", f"/_index_template/{name}", f"/_component_template/{name}*"):
        # A test makes some of them.
        with contextlib.suppress(HTTPError):
            ask(server.url, "DELETE", path)


def test_a_new_index_is_made_for_fingerprints_and_a_second_run_changes_nothing(engine, asked, pipeline):
    plan = make_plan(engine, asked)
    assert [(change.kind, change.new) for change in plan.changes] == [
        ("component template", True),
        ("index template", True),
    ]
    carry_out(engine, plan)
    assert make_plan(engine, asked) == Plan()
    index = f"{asked.name}-1"
    store(engine, index_made_by_template(engine, index), pages(3))
    made = engine.mappings(index)
    assert made["_meta"]["shinglefold"]["id"] == asked.recipe.scheme.id
    assert made["properties"]["_dedup"] == mappings(asked.recipe.scheme)["properties"]["_dedup"]
    again = make_plan(engine, asked)
    assert (again.changes, again.backfills) == ((), {})
    assert f"{index} exist already, and are not changed" in again.notes[0]
    assert make_plan(engine, replace(asked, indices=(index,), patterns=())).backfills == {index: 3}
    assert backfill(engine, index, pipeline, BackfillOptions(workers=1)).remaining == 0
    assert make_plan(engine, replace(asked, indices=(index,), patterns=())) == Plan()
    assert diagnose(engine, index, pipeline).mapping == ()


def index_made_by_template(engine, index):
    engine.create_index(index, {}, {"number_of_replicas": 0})
    return index


#: Definitions that a template of another version may have at a path.
EARLIER = {
    "a part as an object": ("_dedup.lang", {"type": "object", "enabled": False}),
    "a part with an index": ("_dedup.lang", {"type": "keyword"}),
    "a part of another type": ("_dedup.signature", {"type": "keyword", "ignore_above": 256}),
    "a part without doc values": ("_dedup.digest", {"type": "keyword", "doc_values": False}),
    "a part with norms": ("_dedup.scheme", {"type": "keyword", "norms": True, "ignore_above": 9}),
    "the field as a keyword": ("_dedup", {"type": "keyword"}),
    "the field not enabled": ("_dedup", {"type": "object", "enabled": False}),
    "the field as nested": ("_dedup", {"type": "nested", "properties": {"of": {"type": "text"}}}),
    "an object above as a keyword": ("meta", {"type": "keyword", "ignore_above": 9}),
    "an object above not enabled": ("meta", {"type": "object", "enabled": False}),
    "an object above of others": ("meta", {"dynamic": "true", "properties": {"at": {"type": "date"}}}),
}


@pytest.mark.newest
@pytest.mark.parametrize("name", EARLIER)
def test_a_template_of_another_version_gets_the_field_as_a_whole(engine, server, asked, name):
    path, earlier = EARLIER[name]
    field = "meta.copies" if path == "meta" else "_dedup"
    asked = replace(asked, recipe=default_recipe(asked.recipe.scheme, field))
    body = component_body(asked)
    properties = body["template"]["mappings"]["properties"]
    *above, last = path.split(".")
    for part in above:
        properties = properties[part]["properties"]
    properties[last] = earlier
    body["template"] |= {"settings": {"index": {"number_of_replicas": "0"}}}
    body["template"]["mappings"] |= {"dynamic": "strict"}
    body["template"]["mappings"]["properties"]["theirs"] = {"type": "date", "format": "yyyy"}
    server.ask("PUT", f"/_component_template/{asked.component}", body)

    carry_out(engine, make_plan(engine, asked))
    index = index_made_by_template(engine, f"{asked.name}-1")
    made, ours = engine.mappings(index), mappings(asked.recipe.scheme, field)
    assert mapped_at(made, field) == mapped_at(ours, field)
    assert made["dynamic"] == "strict"
    assert made["properties"]["theirs"] == {"type": "date", "format": "yyyy"}
    if name == "an object above of others":
        assert made["properties"]["meta"]["properties"]["at"] == {"type": "date"}
    assert make_plan(engine, asked).changes == ()


def test_a_dry_run_changes_nothing(engine, asked):
    make_plan(engine, asked)
    assert engine.component_template(asked.component) is None
    assert asked.name not in engine.index_templates()


def test_an_index_in_use_is_upgraded_in_place(engine, new_index, scheme):
    index = new_index({"_meta": {"owner": "us"}, "properties": FIELDS})
    store(engine, index, pages(5))
    plan = make_plan(engine, SetupRequest(default_recipe(scheme), indices=(index,)))
    carry_out(engine, plan)
    assert plan.backfills == {index: 5}
    assert engine.mappings(index)["_meta"]["owner"] == "us"
    newer = scheme.with_options(values=168)
    (change,) = make_plan(engine, SetupRequest(default_recipe(newer), indices=(index,))).changes
    assert change.lines[-1] == "~ _meta.shinglefold.sketch.values: 336 → 168"
    carry_out(engine, make_plan(engine, SetupRequest(default_recipe(newer), indices=(index,))))
    assert engine.mappings(index)["_meta"]["shinglefold"]["id"] == newer.id
    carry_out(engine, make_plan(engine, SetupRequest(default_recipe(scheme), indices=(index,))))


def test_what_can_not_be_changed_is_told_before_anything_is_tried(engine, new_index, scheme):
    index = new_index({"properties": {"_dedup": {"properties": {"signature": {"type": "binary"}}}}})
    plan = make_plan(engine, SetupRequest(default_recipe(scheme), indices=(index,)))
    (told,) = plan.problems[index]
    assert told.startswith("_dedup.signature is mapped without doc_values; this can't be changed in place")
    with pytest.raises(UnsupportedQuery):
        engine.put_mappings(index, mappings(scheme))


def test_an_alias_means_the_indices_behind_it(engine, server, new_index, scheme):
    index = new_index({})
    ask(server.url, "POST", f"/{index}/_alias/shinglefold-test-alias")
    plan = make_plan(engine, SetupRequest(default_recipe(scheme), indices=("shinglefold-test-alias",)))
    assert {change.name for change in plan.changes if change.kind == "mappings"} == {index}


def test_another_template_for_the_same_indices_is_told(engine, asked):
    carry_out(engine, make_plan(engine, asked))
    rival = replace(asked, name=f"{asked.name}-rival", priority=200)
    (told,) = make_plan(engine, rival).problems.items()
    assert told[0] == f"index template {asked.name}"
    assert "composed_of" in told[1][0]


@pytest.fixture
def legacy(server, asked):
    """A template of the older kind, whose indices are ours to come."""
    body = {
        "index_patterns": [f"{asked.name}-*"],
        "settings": {"number_of_shards": 3},
        "aliases": {f"{asked.name}alias": {}},
        "mappings": {"properties": {"theirs": {"type": "keyword"}}},
    }
    server.ask("PUT", f"/_template/{asked.name}", body)
    yield asked.name
    server.ask("DELETE", f"/_template/{asked.name}")


def test_a_legacy_template_is_not_shadowed_unless_it_is_told_to(engine, asked, legacy):
    plan = make_plan(engine, asked)
    (told,) = plan.problems[f"legacy template {legacy}"]
    assert "number_of_shards: 3" in told
    assert "theirs" in told
    assert f"{legacy}alias" in told
    assert [change.kind for change in plan.changes] == ["component template"]
    carry_out(engine, plan)
    engine.create_index(f"{legacy}-1", {}, {})
    assert "theirs" in engine.mappings(f"{legacy}-1")["properties"]
    engine.delete_index(f"{legacy}-1")

    shadowing = make_plan(engine, replace(asked, shadow=True))
    assert not shadowing.problems
    (change,) = shadowing.changes
    assert any(line.startswith(f"! legacy template {legacy}") for line in change.lines)
    carry_out(engine, shadowing)
    engine.create_index(f"{legacy}-1", {}, {})
    assert "_dedup" in engine.mappings(f"{legacy}-1")["properties"]


def test_templates_of_our_names_that_somebody_else_made_stay(engine, server, asked):
    theirs = {"template": {"settings": {"number_of_shards": 2}}}
    server.ask("PUT", f"/_component_template/{asked.component}", theirs)
    plan = make_plan(engine, asked)
    assert "--name NAME" in plan.problems[f"component template {asked.component}"][0]
    assert not [change for change in plan.changes if change.kind == "component template"]


def test_what_others_added_to_our_templates_stays(engine, server, asked):
    carry_out(engine, make_plan(engine, asked))
    body = engine.index_templates()[asked.name]
    engine.put_index_template(
        asked.name, {**body, "template": {"settings": {"index": {"number_of_shards": "4"}}}}
    )
    component = engine.component_template(asked.component)
    component["template"]["settings"] = {"index": {"refresh_interval": "7s"}}
    engine.put_component_template(asked.component, component)
    both = (f"{asked.name}-*", f"{asked.name}more-*")
    newer = asked.recipe.scheme.with_options(values=168)
    more = replace(asked, patterns=both, recipe=replace(asked.recipe, scheme=newer))
    carry_out(engine, make_plan(engine, more))
    made = engine.index_templates()[asked.name]
    assert made["index_patterns"] == [f"{asked.name}-*", f"{asked.name}more-*"]
    assert made["template"]["settings"]["index"]["number_of_shards"] == "4"
    there = engine.component_template(asked.component)["template"]
    assert there["settings"]["index"]["refresh_interval"] == "7s"
    assert there["mappings"]["_meta"]["shinglefold"]["id"] == newer.id


def test_a_recipe_that_indices_to_come_are_given_is_not_replaced_by_that_of_others(engine, asked, new_index):
    carry_out(engine, make_plan(engine, asked))
    other = replace(asked.recipe, scheme=asked.recipe.scheme.with_options(values=168))
    before = engine.component_template(asked.component)
    index = new_index({"properties": FIELDS})
    carry_out(engine, make_plan(engine, replace(asked, recipe=other, indices=(index,), patterns=())))
    assert engine.mappings(index)["_meta"]["shinglefold"]["id"] == other.scheme.id
    assert engine.component_template(asked.component) == before
    plan = make_plan(engine, replace(asked, recipe=other, patterns=(f"{asked.name}x-*",)))
    assert plan.changes == ()
    ((reason,),) = plan.problems.values()
    assert "--name NAME" in reason
    (change, *_) = make_plan(engine, replace(asked, recipe=other)).changes
    assert change.kind == "component template"


def test_templates_stay_where_every_index_named_is_refused(engine, asked, new_index):
    index = new_index({"properties": {"_dedup": {"type": "keyword"}}})
    plan = make_plan(engine, replace(asked, indices=(index,), patterns=()))
    assert list(plan.problems) == [index]
    assert plan.changes == ()


def test_signatures_come_from_doc_values_without_the_source(engine, new_index, scheme, pipeline):
    index = new_index(mapped(scheme))
    index_documents(engine, index, pages(5), pipeline, workers=1)
    fields = [f"_dedup.{name}" for name in ("scheme", "shingles", "digest", "signature")]
    body = {"query": {"match_all": {}}, "_source": False, "docvalue_fields": fields}
    for hit in engine.search(index, body)["hits"]["hits"]:
        whole = engine.get(index, hit["_id"])["_source"]["_dedup"]
        assert "_source" not in hit
        (signature,) = hit["fields"]["_dedup.signature"]
        assert base64.b64decode(signature + "==") == base64.b64decode(whole["signature"])
        assert {name: hit["fields"][f"_dedup.{name}"] for name in ("shingles", "digest")} == {
            name: [whole[name]] for name in ("shingles", "digest")
        }
    # Keywords are found by, though they have no doc values.
    query = {"terms": {"_dedup.supershingles": whole["supershingles"][:1]}}
    assert engine.search(index, {"query": query})["hits"]["total"]["value"] == 1


@pytest.mark.parametrize("inside", [None, "strict", False, True])
@pytest.mark.parametrize("dynamic", ["strict", True, False])
def test_setup_announces_every_field_and_a_second_run_has_nothing_to_do(
    engine, server, new_index, scheme, dynamic, inside
):
    properties = {"title": {"type": "text"}, "body": {"type": "text"}, "id": {"type": "keyword"}}
    if inside is not None:
        properties["_dedup"] = {"type": "object", "dynamic": inside}
    index = new_index({"dynamic": dynamic, "properties": properties})
    first, steps = default_definition("_dedup"), default_definition("_dedup")
    first["processors"].append({"set": {"field": "lang", "copy_from": "_dedup.lang", "override": False}})
    steps["processors"].append({"set": {"field": "read_by", "value": "us"}})
    for definition in (first, steps):
        pipeline = Pipeline.from_json(definition, scheme)
        request = SetupRequest(pipeline.recipe("_dedup"), indices=(index,))
        plan = make_plan(engine, request)
        if dynamic == "strict" and definition is steps:
            assert f'PUT /{index}/_mapping {{"properties": {{"read_by"' in plan.problems[index][0]
            engine.put_mappings(index, {"properties": {"read_by": {"type": "keyword"}}})
            plan = make_plan(engine, request)
        assert ("+ lang: keyword" in plan.changes[0].lines) == (
            definition is not steps and dynamic is not False
        )
        carry_out(engine, plan)
        mapped = engine.mappings(index)["properties"]
        assert make_plan(engine, request) == Plan()
        documents = [{key: value for key, value in page.items() if key != "lang"} for page in pages(12)]
        summary = index_documents(engine, index, documents, pipeline, field="_dedup", workers=1)
        assert (summary.indexed, summary.failed) == (12, 0)
        if definition is not steps:
            assert engine.mappings(index)["properties"] == mapped
    assert [change.kind for change in plan.changes] == ["mappings"]


def test_a_setup_without_patterns_leaves_the_templates_of_others_and_says_so(engine, asked, new_index):
    carry_out(engine, make_plan(engine, asked))
    installed = engine.component_template(asked.component)
    engine.create_index(f"{asked.name}-1", {}, {})
    other = default_recipe(asked.recipe.scheme, fields=("headline",))
    request = replace(asked, recipe=other, indices=(f"{asked.name}-1",), patterns=())
    for _ in range(2):
        plan = make_plan(engine, request)
        assert f"still get the recipe of the component template {asked.component!r}" in plan.notes[0]
        carry_out(engine, plan)
        assert engine.component_template(asked.component) == installed
    assert plan.changes == ()


def test_an_alias_is_told_of_the_template_that_its_next_index_needs(engine, server, new_index, asked):
    index = f"{asked.name}-1"
    engine.create_index(index, {}, {})
    ask(server.url, "POST", f"/{index}/_alias/{asked.name}")
    request = replace(asked, indices=(asked.name,), patterns=())
    (note,) = make_plan(engine, request).notes
    assert f"`shinglefold setup --pattern '{asked.name}-*' --name {asked.name}`" in note
    carry_out(engine, make_plan(engine, asked))
    assert make_plan(engine, request).notes == ()


def test_what_was_set_up_is_removed_while_others_write_and_what_stays_is_named(
    engine, server, asked, pipeline, scheme
):
    index = f"{asked.name}-1"
    recipe = replace(default_recipe(scheme), groups=True)
    carry_out(engine, make_plan(engine, replace(asked, recipe=recipe)))
    theirs = {"_meta": {"owner": "us"}, "properties": {**FIELDS, "rank": {"type": "long"}}}
    engine.create_index(index, theirs, {"number_of_shards": 2})
    carry_out(engine, make_plan(engine, SetupRequest(recipe, indices=(index,))))
    store(engine, index, pages(230))
    backfill(engine, index, pipeline, BackfillOptions(workers=1))
    before = {hit["_id"]: hit["_source"] for hit in everything(engine, index)}
    helper = f"shinglefold-gate-{index}"
    engine.create_index(helper, {"dynamic": False}, {})
    foreign = {"_op_type": "update", "_index": index, "_id": "page-3", "doc": {"_dedup": {"of": "theirs"}}}
    assert not engine.bulk([foreign]).failures

    plan = plan_removal(engine, index, [helper, "shinglefold-gate-none"])
    assert (plan.documents, plan.helpers, plan.mapped) == ({index: 230}, (helper,), {index: "_dedup"})
    assert (plan.index_templates, plan.component_templates) == ((asked.name,), (asked.component,))
    assert everything(engine, index)[0]["_source"].get("_dedup")
    # A template may name an index to come, and stays if it serves another one.
    template = engine.index_templates()[asked.name]
    to_come = [*template["index_patterns"], f"{asked.name}-to-come"]
    engine.put_index_template(asked.name, {**template, "index_patterns": to_come})
    assert plan_removal(engine, index).index_templates == (asked.name,)
    engine.create_index(f"{asked.name}-2", recipe_mappings(recipe), {"number_of_shards": 1})
    shared = plan_removal(engine, index)
    assert (shared.index_templates, shared.component_templates) == ((), ())
    assert shared.shared_templates == {asked.name: f"{asked.name}-2"}
    engine.delete_index(f"{asked.name}-2")
    racing = Racing(engine, index)
    counts = carry_out_removal(racing, plan)
    assert (counts.read, counts.removed, counts.left, list(counts.reasons)) == (230, 229, 1, ["page-3"])
    assert "shinglefold" in engine.mappings(index)["_meta"]
    assert not engine.bulk([{**foreign, "doc": {"_dedup": None}}]).failures
    assert carry_out_removal(engine, plan_removal(engine, index)).left == 0
    after = {hit["_id"]: hit["_source"] for hit in everything(engine, index)}
    del before["page-3"], after["page-3"]
    bare = {id_: {**source, **({"rank": 7} if id_ in racing.raced else {})} for id_, source in before.items()}
    for source in bare.values():
        del source["_dedup"]
    assert after == bare
    assert racing.raced
    assert engine.mappings(index)["_meta"] == {"owner": "us"}
    assert not engine.index_exists(helper)
    assert asked.name not in engine.index_templates()
    assert engine.component_template(asked.component) is None
    with pytest.raises(ConfigError, match="nothing to remove"):
        plan_removal(engine, index)


def everything(engine, index):
    engine.refresh(index)
    return engine.search(index, {"query": {"match_all": {}}, "size": 1000})["hits"]["hits"]


class Racing(Changed):
    """An engine beside which another writer changes five documents of each bulk request just before it."""

    def __init__(self, engine, index):
        super().__init__(engine)
        self.index, self.raced = index, set()

    def bulk(self, actions):
        actions = list(actions)
        first = [one["_id"] for one in actions[:5] if one["_id"] not in self.raced]
        update = {"_op_type": "update", "_index": self.index, "doc": {"rank": 7}}
        assert not self.engine.bulk([{**update, "_id": one} for one in first]).failures
        self.raced |= set(first)
        return self.engine.bulk(actions)


def test_a_setup_and_a_removal_hold_at_once_for_a_folded_client(server, engine, new_index):
    name, signed_at = new_index({}), []
    client = fold(a_client(engine.info()["distribution"], server.url, awaited=False))
    for change in (lambda *_: None, partial(shinglefold.setup, text=["title"]), shinglefold.remove):
        change(server.url, name)
        client.index(index=name, id="a", body={"title": "The bridge is closed on Monday for repairs."})
        signed_at.append("_dedup" in engine.get(name, "a")["_source"])
    client.close()
    assert signed_at == [False, True, False]
