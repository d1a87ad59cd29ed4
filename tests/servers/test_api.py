"""The Python API on real servers, by an address and by the clients that a program has already."""

import asyncio
import time
from functools import partial

import pytest
from support.clients import a_client

import shinglefold
from shinglefold.errors import EngineError, Refused
from shinglefold.examples import articles

FRESH = {"id": "new", "title": "Ganz neu", "body": "So etwas stand hier noch nie zu lesen."}
#: An older generation is told from the newest by its client, which an address is opened by, too.
GIVEN = [pytest.param("address", marks=pytest.mark.newest), "client"]
BRIDGE = {"query": {"match": {"title": "мост"}}, "size": 3}


@pytest.fixture
def client(server, engine):
    return partial(a_client, engine.info()["distribution"], server.url)


@pytest.fixture
def name(new_index):
    """An index of the client's own, without fingerprints."""
    return new_index({"properties": {"title": {"type": "text"}, "body": {"type": "text"}}})


def check_everything(site):
    site.engine.refresh(site.name)
    page = site.search(BRIDGE)
    assert len(page["hits"]["hits"]) == 3
    assert page["dedup"]["groups_total"]["value"] >= 3
    assert {match.id for match in site.similar("ru-bridge-repair-1").matches} >= {"ru-bridge-repair-4"}
    assert site.explain("ru-bridge-repair-1", "ru-bridge-repair-4")["folds"]
    assert len(site.groups().groups) > 20
    assert site.doctor().healthy
    with pytest.raises(Refused):
        site.add(next(iter(articles())) | {"id": "copy"})
    assert site.add(FRESH).id == "new"
    assert site.delete(["new"]) == 1
    assert (
        sum(len(page["hits"]["hits"]) for page in site.pages({"query": {"match_all": {}}, "size": 50})) > 60
    )


@pytest.mark.parametrize("given", GIVEN)
def test_an_index_is_set_up_filled_and_searched(server, client, name, given):
    where = server.url if given == "address" else client(awaited=False)
    shinglefold.setup(where, name, text=["title", "body"])
    with shinglefold.open(where, name) as site:
        assert site.index(articles()).indexed == 166
        check_everything(site)
    if given == "client":
        # It is still open.
        assert where.count(index=name)["count"] == 166
        where.close()


def test_an_index_that_has_documents_is_backfilled_by_the_client_at_hand(client, name):
    client = client(awaited=False)
    for document in list(articles())[:5]:
        client.bulk(body=[{"index": {"_index": name, "_id": document["id"]}}, document])
    client.indices.refresh(index=name)
    plan = shinglefold.setup(client, name, text=["title", "body"])
    assert dict(plan.backfills) == {name: 5}
    with shinglefold.open(client, name) as site:
        assert site.backfill().counts.updated == 5
        assert len(site.groups().groups) == 1
    client.close()


@pytest.mark.parametrize("given", GIVEN)
def test_the_methods_are_awaited(server, client, name, given):
    shinglefold.setup(server.url, name, text=["title", "body"])

    async def work():
        where = server.url if given == "address" else client(awaited=True)
        async with await shinglefold.open_async(where, name) as site:
            assert (await site.index(articles())).indexed == 166
            await site.engine.refresh(name)
            page = await site.search(BRIDGE)
            assert len(page["hits"]["hits"]) == 3
            assert (await site.similar("ru-bridge-repair-1")).matches
            with pytest.raises(Refused):
                await site.add(next(iter(articles())) | {"id": "copy"})
            assert (await site.add(FRESH)).id == "new"
            assert await site.delete(["new"]) == 1
            assert (await site.doctor()).healthy
            assert (await site.groups()).documents == 166
        if given == "client":
            assert (await where.count(index=name))["count"] == 166
            await where.close()

    asyncio.run(work())


def test_a_client_whose_methods_are_awaited_is_refused_by_open(client, name):
    async def work():
        async with client(awaited=True) as awaited:
            with pytest.raises(shinglefold.ShinglefoldError, match="open_async"):
                shinglefold.open(awaited, name)

    asyncio.run(work())


def test_an_open_gate_stops_for_good_once_the_recipe_changed(server, name):
    shinglefold.setup(server.url, name, text=["body"])
    with shinglefold.open(server.url, name) as index:
        index.add({"id": "0", "body": "The bridge over the river is closed for repairs until the end of May"})
        shinglefold.setup(server.url, name, text=["body"], never_differ=["numbers"])
        time.sleep(1.2)
        for number, body in enumerate(("Rain and snow are expected in the north", "The port is open again")):
            with pytest.raises(EngineError, match=r"recipe .* was changed"):
                index.add({"id": f"new-{number}", "body": body})
