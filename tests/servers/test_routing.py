"""Documents with a routing: indexed, added, numbered, backfilled, searched and deleted under it."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.clients import a_client
from support.maintenance import mapped, pages, store
from support.servers.server import add_alias

import shinglefold
from shinglefold.errors import ConfigError, UnsupportedQuery
from shinglefold.model.stored_fingerprint import without_fingerprint

pytestmark = pytest.mark.newest

SETTINGS = {"number_of_shards": 3, "number_of_replicas": 0}


@pytest.fixture
def made(scheme) -> dict[str, Any]:
    return mapped(scheme, site={"type": "keyword"}) | {"_routing": {"required": True}}


def documents() -> list[dict[str, Any]]:
    """Pages of several sites, whose names are texts or numbers."""
    return [{**page, "site": f"site {at % 5}" if at % 4 else at} for at, page in enumerate(pages(24))]


def routed(engine, index) -> dict[tuple[str, str], dict[str, Any]]:
    engine.refresh(index)
    hits = engine.search(index, {"size": 1000})["hits"]["hits"]
    return {(hit["_id"], hit["_routing"]): hit["_source"] for hit in hits}


def test_what_requires_a_routing_is_indexed_backfilled_and_deleted(server, engine, new_index, made):
    index = new_index(made, SETTINGS)
    given = documents()
    with shinglefold.open(server.url, index) as site:
        without = site.index(given[:2])
        assert (without.indexed, without.failed) == (0, 2)
        assert "routing is required" in next(iter(without.reasons))
        summary = site.index(given, routing_field="site")
        assert (summary.indexed, summary.failed, summary.counts.get("equal_ids", 0)) == (24, 0, 0)
        stored = routed(engine, index)
        assert stored.keys() == {(one["id"], str(one["site"])) for one in given}
        assert all(source["_dedup"] and "_routing" not in source for source in stored.values())
        assert site.doctor().healthy
        bare = {"doc": {"_dedup": None}, "_op_type": "update", "_index": index}
        assert not engine.bulk({**bare, "_id": id_, "routing": where} for id_, where in stored).failures
        assert site.backfill().counts.updated == 24
        assert routed(engine, index) == stored
        assert site.delete(["page-1", "page-2"]) == 2
        assert len(routed(engine, index)) == 22
        assert site.index([{**given[0], "_routing": "by hand"}]).indexed == 1
        assert ("page-0", "by hand") in routed(engine, index)
        added = site.add({**pages(1, seed=9)[0], "id": "added", "_routing": "elsewhere"})
        assert added.status == "accepted"
        assert ("added", "elsewhere") in routed(engine, index)


def test_children_go_to_the_shard_of_their_parent(server, engine, new_index, scheme):
    join = {"type": "join", "relations": {"story": "version"}}
    made = mapped(scheme, story={"type": "keyword"}, kind=join)
    try:
        index = new_index(made, SETTINGS)
    except UnsupportedQuery as error:
        pytest.skip(f"this server was built without join fields: {error}")
    parents = [{**page, "kind": "story"} for page in pages(6)]
    children = [
        {
            **page,
            "id": f"child-{page['id']}",
            "story": page["id"],
            "kind": {"name": "version", "parent": page["id"]},
        }
        for page in pages(6, seed=2)
    ]
    with shinglefold.open(server.url, index) as site:
        assert site.index([*parents, *children], routing_field="story").indexed == 12
        query = {"has_parent": {"parent_type": "story", "query": {"ids": {"values": ["page-3"]}}}}
        (hit,) = site.search({"query": query})["hits"]["hits"]
        assert hit["_id"] == "child-page-3"
        store(engine, index, [])
        assert site.doctor().healthy


@pytest.mark.parametrize("groups", [False, True])
def test_the_commands_take_a_routing_field(run, engine, new_index, made, tmp_path: Path, groups):
    index = new_index(made, SETTINGS)
    if groups:
        assert run("setup", index, "--groups")[0] == 0
    place = tmp_path / "pages.jsonl"
    lines = [*documents(), {**pages(1)[0], "id": "odd", "site": ["a", "b"]}]
    place.write_text("".join(json.dumps(one) + "\n" for one in lines))
    letters = tmp_path / "failed.jsonl"
    more = ("--routing-field", "site", "--workers", "2", "--dead-letters", str(letters))
    code, out, err = run("index", str(place), "--index", index, *more)
    assert code == 3, err
    assert "the routing in [site] must be text or a whole number" in out
    assert len(routed(engine, index)) == 24
    letter = json.loads(letters.read_text())
    letter["document"] |= {"site": "a", "_routing": "a"}
    letters.write_text(json.dumps(letter) + "\n")
    assert run("index", "--replay", str(letters), "--index", index)[0] == 0
    assert ("odd", "a") in routed(engine, index)
    place.write_text(json.dumps({**pages(1, seed=5)[0], "id": "new", "site": "b"}) + "\n")
    assert run("add", str(place), "--index", index, "--routing-field", "site")[0] == 0
    assert ("new", "b") in routed(engine, index)


def test_documents_added_through_an_alias_have_its_routing(server, engine, new_index, scheme):
    index = new_index(mapped(scheme), SETTINGS)
    shinglefold.setup(server.url, index, text=["title", "body"], groups=True)
    alias, (first, *others) = f"{index}-alias", pages(8)
    add_alias(server, alias, index, routing="here")
    with shinglefold.open(server.url, alias, policy="tag") as site:
        assert site.add(first).leads
        assert {one.status for one in site.add_all(others[:4])} == {"accepted"}
        assert site.index([first, *others]).indexed == 8
        stored = routed(engine, index)
        assert {routing for _, routing in stored} == {"here"}
        assert len(stored) == len(routed(engine, alias)) == 8
        # Indexed again, it is the earlier version of itself.
        assert stored["page-0", "here"]["_dedup"]["leader"]
        (verdict,) = site.add_all([{**first, "id": "other", "_routing": "elsewhere"}])
        assert (verdict.status, "index routing 'here'" in verdict.reason) == ("failed", True)
    add_alias(server, alias, index, is_write_index=False)
    with (
        shinglefold.open(server.url, alias) as site,
        pytest.raises(ConfigError, match="without a write index"),
    ):
        site.add({**first, "id": "other"})


def test_the_gate_of_a_folded_client_writes_with_the_routing_of_an_alias(server, engine, new_index, scheme):
    index = new_index(mapped(scheme), SETTINGS)
    shinglefold.setup(server.url, index, text=["title", "body"], gate="refuse")
    alias, (first, second, *_) = f"{index}-alias", pages(2)
    add_alias(server, alias, index, routing="here")
    with closing(a_client(engine.info()["distribution"], server.url, awaited=False)) as plain:
        client = shinglefold.fold(plain)
        for one in (first, second):
            assert client.index(index=alias, id=one["id"], body=one)["result"] == "created"
    assert routed(engine, index).keys() == {("page-0", "here"), ("page-1", "here")}


@pytest.mark.parametrize("gate", ["none", "refuse"])
def test_a_folded_client_keeps_the_routing_of_an_alias_of_several_indices(
    server, engine, new_index, scheme, gate
):
    """Documents are read and written by the name of the write index, which has no routing of its own."""
    index, other = (new_index(mapped(scheme), SETTINGS) for _ in range(2))
    for name in (index, other):
        shinglefold.setup(server.url, name, text=["title", "body"], gate=gate)
    alias, (first, second, third, fourth, *_) = f"{index}-alias", pages(4)
    add_alias(server, alias, other, is_write_index=False)
    add_alias(server, alias, index, routing="here", is_write_index=True)
    with closing(a_client(engine.info()["distribution"], server.url, awaited=False)) as plain:
        client = shinglefold.fold(plain)
        told = [client.index(index=alias, id=one["id"], body=one) for one in (first, second)]
        # A gate writes a placeholder first.
        version = 2 if gate == "refuse" else 1
        assert {(one["result"], one["_index"], one["_version"]) for one in told} == {
            ("created", index, version)
        }
        client.update(index=alias, id="page-0", body={"doc": {"body": third["body"]}})
        script = {"source": "ctx._source.title = params.title", "params": {"title": third["title"]}}
        try:
            client.update(index=alias, id="page-1", body={"script": script})
        except Exception as error:
            # The Elasticsearch of these tests has no scripts.
            if "script" not in str(error):
                raise
        bulk = [{"update": {"_id": "page-1"}}, {"doc": {"body": third["body"] + "!"}}]
        client.bulk(index=alias, body=bulk, refresh=True)
        with pytest.raises(Exception, match="index routing"):
            client.index(index=alias, id="page-2", routing="elsewhere", body=third)
        action = {"index": {"_id": "page-2", "routing": "elsewhere"}}
        assert "index routing" in str(client.bulk(index=alias, body=[action, third])["items"])
        like = {"title": first["title"], "body": third["body"]}
        (item,) = client.bulk(index=alias, body=[{"create": {"_id": "page-2"}}, like])["items"]
        assert item["create"]["status"] == (409 if gate == "refuse" else 201)
        if gate == "refuse":
            client.bulk(index=alias, body=[{"index": {"_id": "page-2", "routing": None}}, fourth])
    engine.refresh(index)
    stored = routed(engine, index)
    assert stored.keys() == {(f"page-{at}", "here") for at in range(3)}
    with shinglefold.open(server.url, index) as site:
        for source in stored.values():
            (expected,) = site.sign([without_fingerprint(source, "_dedup")])
            assert source["_dedup"] == expected["_dedup"]
