"""Folded clients on real servers: requests are folded or signed, or answered as by the plain client."""

import asyncio
import contextlib
import inspect
import warnings
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

import shinglefold
from shinglefold import fold, unfold
from shinglefold.examples import articles
from shinglefold.model.stored_fingerprint import without_fingerprint

FIELD = "_dedup"
BRIDGE = {"query": {"match": {"title": "мост"}}, "size": 3}
FOLDED = {**BRIDGE, "ext": {"dedup": {}}}
TEXT = (
    "Über den Fluss führt seit gestern eine neue Brücke, die Fußgänger und Radfahrer kostenlos nutzen dürfen."
)
OTHER = (
    "Im Rathaus wurde am Montag über den Haushalt des kommenden Jahres beraten, und beschlossen wurde nichts."
)
MAPPINGS = {"properties": {"title": {"type": "text"}, "body": {"type": "text"}, "views": {"type": "long"}}}


def a_client(product: str, url: str, *, awaited: bool) -> Any:
    if product == "opensearch":
        from opensearchpy import AsyncOpenSearch, OpenSearch

        return (AsyncOpenSearch if awaited else OpenSearch)(url)
    from elasticsearch import AsyncElasticsearch, Elasticsearch

    return (AsyncElasticsearch if awaited else Elasticsearch)(url)


def errors(product: str) -> SimpleNamespace:
    if product == "opensearch":
        import opensearchpy as package

        return SimpleNamespace(
            missing=package.NotFoundError, broken=package.RequestError, any=package.TransportError
        )
    import elasticsearch as package

    return SimpleNamespace(
        missing=package.NotFoundError, broken=package.BadRequestError, any=package.ApiError
    )


def helpers(product: str) -> Any:
    if product == "opensearch":
        from opensearchpy import helpers
    else:
        from elasticsearch import helpers
    return helpers


def plain(answer: Any) -> Any:
    """An answer as JSON, without what differs from one request to the next."""
    body = getattr(answer, "body", answer)
    if isinstance(body, dict):
        return {
            name: plain(value) for name, value in body.items() if name not in ("took", "_seq_no", "_version")
        }
    return [plain(one) for one in body] if isinstance(body, list) else body


class Blocking:
    """An asynchronous client, called as a blocking one, so that one table serves both."""

    def __init__(self, client: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._client, self._loop = client, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if not callable(found):
            return Blocking(found, self._loop)

        def call(*args: Any, **kwargs: Any) -> Any:
            made = found(*args, **kwargs)
            return self._loop.run_until_complete(made) if inspect.isawaitable(made) else made

        return call


@pytest.fixture(scope="module")
def places(server, engine, shared_index):
    """Three indices, with articles, to write to, and without a recipe; and the open ones."""
    names = [shared_index(MAPPINGS) for _ in range(3)]
    sites = {}
    for name in names[:2]:
        shinglefold.setup(server.url, name, text=["title", "body"], languages=[])
        sites[name] = shinglefold.open(server.url, name)
    sites[names[0]].index(articles())
    engine.refresh(names[0])
    yield SimpleNamespace(read=names[0], written=names[1], bare=names[2], sites=sites)
    for site in sites.values():
        site.close()


@pytest.fixture(scope="module", params=["blocking", "awaited"])
def kit(request, server, engine, places):
    """A folded client and the plain one, as blocking ones; ids of documents are of their own."""
    product = engine.info()["distribution"]
    loop = asyncio.new_event_loop()
    awaited = request.param == "awaited"

    async def make() -> Any:
        return a_client(product, server.url, awaited=awaited)

    given = loop.run_until_complete(make())

    def wrapped(client: Any) -> Any:
        return Blocking(client, loop) if awaited else client

    own = fold(given)
    yield SimpleNamespace(
        client=wrapped(own), plain=wrapped(given), folded=own, given=given, names=places, sites=places.sites,
        product=product, errors=errors(product), awaited=awaited, engine=engine, loop=loop, wrapped=wrapped,
        of=lambda name: f"{request.param}-{name}",
    )  # fmt: skip
    wrapped(given).close()
    loop.close()


def search(client: Any, index: str, body: dict[str, Any], **options: Any) -> Any:
    return plain(client.search(index=index, body=body, **options))


def stored(kit: Any, name: str, index: str = "") -> dict[str, Any]:
    return dict(kit.engine.get(index or kit.names.written, kit.of(name))["_source"])


def signed(kit: Any, document: dict[str, Any]) -> dict[str, Any]:
    """What ``index`` stores of a document."""
    kit.sites[kit.names.written].index([{"_id": kit.of("of-index"), **document}])
    return stored(kit, "of-index")


def test_a_folded_client_is_an_instance_of_the_clients_class(kit):
    assert type(kit.folded) is type(kit.given)
    assert unfold(kit.folded) is kit.given
    assert unfold(kit.given) is kit.given
    assert kit.folded.indices is not kit.given.indices
    with pytest.raises(shinglefold.ShinglefoldError, match="a client of opensearch-py"):
        fold("http://localhost:9200")


SEARCHES = {
    "folded": ({"ext": {"dedup": {}}}, True),
    "options": ({"ext": {"dedup": {"representative": "longest", "members": 1}}}, True),
    "cursor": ({"ext": {"dedup": {"cursor": True}}}, True),
    "all counted": ({"ext": {"dedup": {}}, "track_total_hits": True, "from": 1}, True),
    "no ext": ({}, False),
    "false": ({"ext": {"dedup": False}}, False),
    "fold false": ({"ext": {"dedup": {"fold": False}}}, False),
    "own collapse": ({"collapse": {"field": "host"}}, False),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_are_those_of_an_open_index_or_the_engines_own(kit, name):
    more, folds = SEARCHES[name]
    body = {**BRIDGE, **more}
    if name == "own collapse":
        body["collapse"] = {"field": "views"}
    found = search(kit.client, kit.names.read, body)
    if folds:
        expected = plain(kit.sites[kit.names.read].search(body))
        for page in (found, expected):
            page["dedup"].pop("cursor", None)
        assert found == expected
        assert found["dedup"]["mode"] == "window"
    else:
        body.pop("ext", None)
        assert found == search(kit.plain, kit.names.read, body)
        assert "dedup" not in found


def test_parameters_of_the_address_hold(kit):
    given = {"preference": "_local", "routing": "a,b"}
    own = {"_source_includes" if kit.product == "opensearch" else "source_includes": ["title"]}
    found = search(kit.client, kit.names.read, FOLDED, **given, **own)
    expected = kit.sites[kit.names.read].search(FOLDED, _source_includes="title", **given)
    assert found == plain(expected)
    assert [set(hit["_source"]) for hit in found["hits"]["hits"]] == 3 * [{"title"}]


def test_always_folds_what_can_be_folded_and_leaves_the_rest(kit):
    client = kit.wrapped(fold(kit.given, always=True))
    names = kit.names
    assert search(client, names.read, BRIDGE) == plain(kit.sites[names.read].search(BRIDGE))
    for body in ({**BRIDGE, "ext": {"dedup": False}}, {**BRIDGE, "collapse": {"field": "views"}}):
        bare = {key: value for key, value in body.items() if key != "ext"}
        assert search(client, names.read, body) == search(kit.plain, names.read, bare)
    assert search(client, names.bare, BRIDGE) == search(kit.plain, names.bare, BRIDGE)
    # An open index takes the folded client, and folds its pages once.
    if not kit.awaited:
        with shinglefold.open(fold(kit.given, always=True), names.read) as site:
            assert plain(site.search(BRIDGE)) == plain(kit.sites[names.read].search(BRIDGE))


def test_what_cannot_be_folded_is_told_or_raised(kit):
    found = search(kit.client, kit.names.bare, FOLDED)
    assert found["dedup"]["mode"] == "unfolded"
    assert "shinglefold" in found["dedup"]["mode_reason"] or "recipe" in found["dedup"]["mode_reason"]
    strict = kit.wrapped(fold(kit.given, on_trouble="raise"))
    with pytest.raises(shinglefold.ShinglefoldError, match=r"recipe|fingerprints"):
        strict.search(index=kit.names.bare, body=FOLDED)
    with pytest.raises(shinglefold.ShinglefoldError, match="did you mean"):
        kit.client.search(index=kit.names.read, body={**BRIDGE, "ext": {"dedup": {"memberz": 1}}})


def test_errors_are_the_clients_own(kit):
    for body in (BRIDGE, FOLDED):
        with pytest.raises(kit.errors.missing):
            kit.client.search(index="shinglefold-absent", body=body)
        with pytest.raises(kit.errors.broken):
            kit.client.search(index=kit.names.read, body={**body, "query": {"nonsense": {}}})
    with pytest.raises(kit.errors.missing):
        kit.client.get(index=kit.names.written, id=kit.of("absent"))
    with pytest.raises(kit.errors.missing):
        kit.client.update(index=kit.names.written, id=kit.of("absent"), body={"doc": {"title": TEXT}})
    with pytest.raises(kit.errors.broken):
        kit.client.index(index=kit.names.written, id=kit.of("odd"), body={"title": TEXT, "views": "many"})
    with pytest.raises(kit.errors.broken, match="metadata field"):
        kit.client.index(index=kit.names.written, id=kit.of("odd"), body={"title": TEXT, "_id": "odd"})
    if kit.product == "opensearch":
        answer = kit.client.search(index="shinglefold-absent", body=FOLDED, params={"ignore": 404})
        assert answer["status"] == 404
    else:
        answer = kit.wrapped(kit.folded.options(ignore_status=404)).search(
            index="shinglefold-absent", body=FOLDED
        )
        assert answer["status"] == 404


def test_several_searches_at_once(kit):
    names = kit.names
    lines = [
        {"index": names.read}, FOLDED,
        {"index": names.read}, BRIDGE,
        {"index": names.bare}, BRIDGE,
        {"index": "shinglefold-absent"}, FOLDED,
        {"index": names.read}, {**FOLDED, "sort": ["absent"]},
        {"index": [names.read]}, {**FOLDED, "size": 1},
    ]  # fmt: skip
    ask = {"body": lines} if kit.product == "opensearch" else {"searches": lines}
    found = plain(kit.client.msearch(**ask))["responses"]
    site = kit.sites[names.read]
    assert {**plain(site.search(FOLDED)), "status": 200} == found[0]
    assert {**plain(site.search({**FOLDED, "size": 1})), "status": 200} == found[5]
    bare = [{key: value for key, value in line.items() if key != "ext"} for line in lines]
    ask = {"body": bare} if kit.product == "opensearch" else {"searches": bare}
    assert plain(kit.plain.msearch(**ask))["responses"][1:5] == found[1:5]
    assert [one.get("status") for one in found] == [200, 200, 200, 404, 400, 200]


def test_an_index_without_a_recipe_is_answered_as_by_the_plain_client(kit):
    def everything(client: Any) -> list[Any]:
        index = kit.names.bare
        document = {"title": TEXT, "views": 1, FIELD: {"digest": "x"}}
        bulk = [{"index": {"_index": index, "_id": "b"}}, document, {"delete": {"_index": index, "_id": "b"}}]
        ask = {"body": bulk} if kit.product == "opensearch" else {"operations": bulk}
        return [
            client.index(index=index, id="a", body=document),
            client.update(index=index, id="a", body={"doc": {"title": OTHER}}, refresh=True),
            client.get(index=index, id="a"),
            client.bulk(**ask),
            client.search(index=index, body={"query": {"match_all": {}}}),
            client.count(index=index),
            client.delete(index=index, id="a"),
        ]

    assert list(map(plain, everything(kit.client))) == list(map(plain, everything(kit.plain)))


def test_a_setup_and_a_removal_hold_at_once(server, kit, new_index):
    name, signed_at = new_index(MAPPINGS), []
    setup = partial(shinglefold.setup, text=["title"], languages=[])
    for change in (lambda *_: None, setup, shinglefold.remove):
        change(server.url, name)
        kit.client.index(index=name, id="a", body={"title": TEXT})
        signed_at.append(FIELD in kit.engine.get(name, "a")["_source"])
    assert signed_at == [False, True, False]


def test_documents_are_those_of_index(kit):
    client, index = kit.client, kit.names.written
    document = {"title": "Brücke", "body": TEXT, "views": 3}
    forged = {**document, FIELD: {"digest": "forged", "scheme": "sf3"}}
    expected = signed(kit, document)
    assert expected[FIELD]["signature"]
    answer = plain(client.index(index=index, id=kit.of("one"), body=forged))
    assert (answer["_id"], answer["result"]) == (kit.of("one"), "created")
    client.create(index=index, id=kit.of("two"), body=document)
    made = plain(client.index(index=index, body=document))["_id"]
    for id_ in (kit.of("one"), kit.of("two"), made):
        assert kit.engine.get(index, id_)["_source"] == expected
    with pytest.raises(Exception, match=r"version_conflict|document already exists"):
        client.create(index=index, id=kit.of("two"), body=document)
    assert plain(client.delete(index=index, id=kit.of("one")))["result"] == "deleted"


def test_updates_sign_the_merged_document(kit):
    client, index = kit.client, kit.names.written
    document = {"title": "Brücke", "body": TEXT, "views": 3}
    client.index(index=index, id=kit.of("up"), body=document)

    def check(
        body: dict[str, Any], becomes: dict[str, Any], id_: str = "up", result: str = "updated"
    ) -> None:
        assert plain(client.update(index=index, id=kit.of(id_), body=body))["result"] == result
        left = {name: value for name, value in stored(kit, id_)[FIELD].items() if value is not None}
        assert without_fingerprint(stored(kit, id_), FIELD) == becomes
        assert left == signed(kit, becomes)[FIELD]

    check({"doc": {"views": 4}}, {**document, "views": 4})
    check({"doc": {"views": 4}}, {**document, "views": 4}, result="noop")
    check({"doc": {"body": TEXT}}, {**document, "views": 4}, result="noop")
    check({"doc": {"body": OTHER, FIELD: {"digest": "forged"}}}, {**document, "views": 4, "body": OTHER})
    # Too little text for a signature: no part of the old fingerprint is left.
    check({"doc": {"body": "", "title": "x"}}, {"title": "x", "body": "", "views": 4})
    check({"doc": {"body": TEXT}, "doc_as_upsert": True}, {"body": TEXT}, "new", "created")
    check({"doc": {"body": OTHER}, "doc_as_upsert": True}, {"body": OTHER}, "new")
    check({"doc": {"views": 1}, "upsert": {"title": TEXT}}, {"title": TEXT}, "newer", "created")
    # Not all servers that tests start have scripts.
    with pytest.warns(UserWarning, match="shinglefold backfill"), contextlib.suppress(kit.errors.any):
        client.update(index=index, id=kit.of("up"), body={"script": {"source": "ctx._source.views = 9"}})
    for name in ("up", "new", "newer"):
        client.delete(index=index, id=kit.of(name))


def test_a_bulk_keeps_its_order_and_its_failures(kit):
    client, index = kit.client, kit.names.written
    of = {"_index": index}
    bulk = [
        {"index": {**of, "_id": kit.of("1")}}, {"title": TEXT},
        {"create": {**of, "_id": kit.of("2")}}, {"title": OTHER, FIELD: {"digest": "forged"}},
        {"create": {**of, "_id": kit.of("2")}}, {"title": TEXT},
        {"update": {**of, "_id": kit.of("1")}}, {"doc": {"title": OTHER}},
        {"update": {**of, "_id": kit.of("absent")}}, {"doc": {"title": OTHER}},
        {"update": {**of, "_id": kit.of("3")}}, {"doc": {"title": TEXT}, "doc_as_upsert": True},
        {"update": {**of, "_id": kit.of("3")}}, {"doc": {"title": OTHER}},
        {"index": {**of, "_id": kit.of("4")}}, {"title": TEXT, "views": "many"},
        {"index": {**of, "_id": kit.of("5")}}, {"title": TEXT, "_id": "5"},
        {"delete": {**of, "_id": kit.of("absent")}},
        {"index": {**of, "_id": kit.of("6")}}, {"title": TEXT, FIELD: {"mine": 1}},
        {"index": {"_index": kit.names.bare, "_id": kit.of("7")}}, {"title": TEXT},
    ]  # fmt: skip
    ask = {"body": bulk} if kit.product == "opensearch" else {"operations": bulk}
    answer = plain(client.bulk(**ask, refresh=True))
    assert answer["errors"]
    items = [
        (verb, item["_id"].partition("-")[2], item["status"])
        for one in answer["items"]
        for verb, item in one.items()
    ]
    assert items == [
        ("index", "1", 201), ("create", "2", 201), ("create", "2", 409), ("update", "1", 200),
        ("update", "absent", 404), ("update", "3", 201), ("update", "3", 200), ("index", "4", 400),
        ("index", "5", 400), ("delete", "absent", 404), ("index", "6", 400), ("index", "7", 201),
    ]  # fmt: skip
    for id_ in ("1", "2", "3"):
        assert stored(kit, id_)[FIELD] == signed(kit, {"title": OTHER})[FIELD]
    assert FIELD not in stored(kit, "7", kit.names.bare)
    for id_ in ("1", "2", "3"):
        client.delete(index=index, id=kit.of(id_))


def test_the_clients_helpers_work(kit):
    own, index = helpers(kit.product), kit.names.written
    texts = {kit.of(f"h{number}"): f"{number} {TEXT}" for number in range(5)}
    actions = [{"_index": index, "_id": id_, "title": text} for id_, text in texts.items()]
    if kit.awaited:
        done, failed = kit.loop.run_until_complete(own.async_bulk(kit.folded, actions, refresh=True))
    else:
        done, failed = own.bulk(kit.folded, actions, refresh=True)
    assert (done, failed) == (5, [])
    query = {"query": {"ids": {"values": list(texts)}}}
    if kit.awaited:

        async def scan() -> list[Any]:
            return [hit async for hit in own.async_scan(kit.folded, index=index, query=query)]

        hits = kit.loop.run_until_complete(scan())
    else:
        hits = list(own.scan(fold(kit.given, always=True), index=index, query=query))
    assert len(hits) == 5
    for hit in hits:
        assert hit["_source"] == signed(kit, {"title": hit["_source"]["title"]})


def test_aliases_templates_and_what_cannot_be_signed(kit):
    client, index = kit.client, kit.names.written
    alias, templated = f"{index}-alias", kit.of(f"{index}-of-template")
    kit.plain.indices.put_alias(index=index, name=alias)
    client.index(index=alias, id=kit.of("by-alias"), body={"title": TEXT})
    assert stored(kit, "by-alias") == signed(kit, {"title": TEXT})
    kit.engine.refresh(index)
    body = {"query": {"ids": {"values": [kit.of("by-alias")]}}, "ext": {"dedup": {}}}
    assert search(client, alias, body)["dedup"]["groups"] == 1
    mappings = kit.engine.mappings(index)
    template = {"index_patterns": [f"{templated}*"], "template": {"mappings": mappings}}
    kit.plain.indices.put_index_template(name=templated, body=template)
    try:
        client.index(index=templated, id=kit.of("first"), body={"title": TEXT})
        assert stored(kit, "first", templated) == signed(kit, {"title": TEXT})
        upsert = {"doc": {"title": OTHER}, "doc_as_upsert": True}
        update = [{"update": {"_index": f"{templated}-2", "_id": kit.of("first")}}, upsert]
        ask = {"body": update} if kit.product == "opensearch" else {"operations": update}
        assert not client.bulk(**ask)["errors"]
        assert stored(kit, "first", f"{templated}-2") == signed(kit, {"title": OTHER})
        absent = contextlib.suppress(kit.errors.any)
        copy = {"source": {"index": kit.names.bare}, "dest": {"index": index}}
        with pytest.warns(UserWarning, match="reindex writes documents"), absent:
            client.reindex(body=copy)
        script = {"script": {"source": "ctx._source.views = 1"}}
        with pytest.warns(UserWarning, match="update by query"), absent:
            client.update_by_query(index=templated, body=script)
        with warnings.catch_warnings(), absent:
            warnings.simplefilter("error", UserWarning)
            client.update_by_query(index=templated)
    finally:
        kit.plain.indices.delete_index_template(name=templated)
        for name in kit.engine.all_mappings(f"{templated}*"):
            kit.engine.delete_index(name)


def test_concurrent_updates_leave_the_fingerprint_of_the_text(kit):
    if not kit.awaited:
        return
    index = kit.names.written
    kit.client.index(index=index, id=kit.of("race"), body={"title": TEXT})

    async def race() -> None:
        titles = (
            {"title": f"{TEXT} {number}"} if number % 2 else {"body": f"{OTHER} {number}"}
            for number in range(4)
        )
        await asyncio.gather(
            *(kit.folded.update(index=index, id=kit.of("race"), body={"doc": doc}) for doc in titles)
        )

    kit.loop.run_until_complete(race())
    document = stored(kit, "race")
    assert document[FIELD] == signed(kit, without_fingerprint(document, FIELD))[FIELD]
