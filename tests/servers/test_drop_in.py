"""Folded clients on real servers: requests are folded or signed, or answered as by the plain client."""

import asyncio
import contextlib
import itertools
import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from support.clients import Blocking, a_client, errors, helpers, plain

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


def test_an_index_says_that_searches_are_folded_unasked(kit, server):
    client, names = kit.wrapped(fold(kit.given)), kit.names
    assert "dedup" not in search(client, names.read, BRIDGE)
    try:
        shinglefold.setup(server.url, names.read, text=["title", "body"], fold=True)
        client = kit.wrapped(fold(kit.given))
        expected = plain(kit.sites[names.read].search(BRIDGE))
        assert search(client, names.read, BRIDGE) == expected
        assert search(client, f"{names.read},{names.bare}", BRIDGE)["dedup"]["mode"]
        for body in ({**BRIDGE, "ext": {"dedup": False}}, {**BRIDGE, "collapse": {"field": "views"}}):
            bare = {key: value for key, value in body.items() if key != "ext"}
            assert search(client, names.read, body) == search(kit.plain, names.read, bare)
        several = f"{names.read},{names.written}"
        assert search(client, several, BRIDGE) == search(kit.plain, several, BRIDGE)
        lines = [{"index": names.read}, BRIDGE, {"index": names.written}, BRIDGE]
        ask = {"body": lines} if kit.product == "opensearch" else {"searches": lines}
        assert ["dedup" in one for one in plain(client.msearch(**ask))["responses"]] == [True, False]
    finally:
        shinglefold.setup(server.url, names.read, text=["title", "body"], fold=False)


TEMPLATE = {"query": {"match": {"title": "{{word}}"}}, "size": 3}
TEMPLATES = {
    "asked in the request": ({}, {"ext": {"dedup": {}}}, True),
    "asked in the template": ({"ext": {"dedup": {"members": "{{members}}"}}}, {}, True),
    "not asked": ({}, {}, False),
    "refused in the request": ({"ext": {"dedup": {}}}, {"ext": {"dedup": False}}, False),
    "refused in the template": ({"ext": {"dedup": False}}, {}, False),
}


@pytest.fixture(scope="module")
def rendered(kit):
    """Skip where a server has no templates."""
    try:
        kit.plain.render_search_template(body={"source": {"size": 1}})
    except kit.errors.any as error:
        pytest.skip(f"no templates: {error}")


def answer_of(client: Any, index: str, template: dict[str, Any]) -> Any:
    """The answer to a template, without the status that one engine puts into it."""
    found = plain(client.search_template(index=index, body=template))
    return {name: value for name, value in found.items() if name != "status"}


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_are_folded_as_the_searches_in_them(kit, rendered, name):
    inside, beside, folds = TEMPLATES[name]
    source = {**TEMPLATE, **inside}
    if name == "asked in the template":
        source = json.dumps(source).replace('"{{members}}"', "{{members}}")
    body = {"source": source, "params": {"word": "мост", "members": 1}, **beside}
    site, names = kit.sites[kit.names.read], kit.names
    options = {"members": 1} if name == "asked in the template" else {}
    expected = plain(site.search({**BRIDGE, "ext": {"dedup": options}}))
    if not folds:
        expected = search(kit.plain, names.read, BRIDGE)
    assert answer_of(kit.client, names.read, body) == expected
    always = kit.wrapped(fold(kit.given, always=True))
    if name == "not asked":
        assert answer_of(always, names.read, body) == plain(site.search(BRIDGE))
        assert answer_of(always, names.bare, body) == search(kit.plain, names.bare, BRIDGE)
    lines = [
        {"index": names.read},
        body,
        {"index": names.read},
        {"source": TEMPLATE, "params": {"word": "мост"}},
    ]
    ask = {"body": lines} if kit.product == "opensearch" else {"search_templates": lines}
    found = plain(kit.client.msearch_template(**ask))["responses"]
    unfolded = {**search(kit.plain, names.read, BRIDGE), "status": 200}
    assert found == [{**expected, "status": 200}, unfolded]


def test_templates_that_cannot_be_rendered_are_answered_by_the_engine(kit, rendered):
    names, asked = kit.names, {"ext": {"dedup": {}}}
    for broken in ({"id": "shinglefold-absent"}, {"source": '{"query": {{#toJson}}', "params": {}}):
        for more in ({}, asked):
            with pytest.raises(kit.errors.any) as caught:
                kit.client.search_template(index=names.read, body={**broken, **more})
            with pytest.raises(type(caught.value)):
                kit.plain.search_template(index=names.read, body=broken)
    lines = [
        *({"index": names.read}, {"id": "shinglefold-absent", **asked}),
        *({"index": names.read}, {"source": TEMPLATE, "params": {"word": "мост"}, **asked}),
        *({"index": names.bare}, {"source": {**TEMPLATE, **asked}, "params": {"word": "мост"}}),
    ]
    ask = {"body": lines} if kit.product == "opensearch" else {"search_templates": lines}
    found = plain(kit.client.msearch_template(**ask))["responses"]
    assert ["error" in one for one in found] == [True, False, False]
    assert [one.get("dedup", {}).get("mode") for one in found] == [None, "window", "unfolded"]
    kit.plain.put_script(id="shinglefold-test", body={"script": {"lang": "mustache", "source": TEMPLATE}})
    try:
        body = {"id": "shinglefold-test", "params": {"word": "мост"}, **asked}
        found = plain(kit.client.search_template(index=names.read, body=body))
        assert found == plain(kit.sites[names.read].search(FOLDED))
    finally:
        kit.plain.delete_script(id="shinglefold-test")


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
    for name in ("up", "new", "newer"):
        client.delete(index=index, id=kit.of(name))


def test_fingerprints_are_renewed_after_scripts(kit):
    client, index = kit.client, kit.names.written
    document = {"title": TEXT, "views": 3}
    for name in ("s1", "s2"):
        client.index(index=index, id=kit.of(name), body=document, routing="r" if name == "s2" else None)

    def script(source: str, **params: Any) -> dict[str, Any]:
        return {"script": {"source": source, "lang": "painless", "params": params}}

    try:
        answer = plain(client.update(index=index, id=kit.of("s1"), body=script("ctx._source.views = 9")))
    except kit.errors.any as error:
        pytest.skip(f"no scripts: {error}")
    # Its text is that of before, so nothing is written after the script.
    assert answer["result"] == "updated"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = script("ctx._source.title = params.title", title=OTHER)
        client.update(index=index, id=kit.of("s1"), body=new, refresh=True)
        found = kit.plain.search(index=index, body={"query": {"ids": {"values": [kit.of("s1")]}}})
        assert found["hits"]["hits"][0]["_source"] == signed(kit, {"title": OTHER, "views": 9})
        version = kit.plain.get(index=index, id=kit.of("s1"))
        again = client.update(
            index=index, id=kit.of("s1"), body=script("ctx._source.title = params.t", t=TEXT)
        )
        stored_as = kit.plain.get(index=index, id=kit.of("s1"))
        assert stored_as["_version"] == version["_version"] + 2
        assert [again[name] for name in ("_version", "_seq_no")] == [
            stored_as[name] for name in ("_version", "_seq_no")
        ]
        of = {"_index": index}
        lines = [
            {"update": {**of, "_id": kit.of("s1")}}, new,
            {"update": {**of, "_id": kit.of("s2"), "routing": "r"}}, new,
            {"update": {**of, "_id": kit.of("s3")}}, {**new, "upsert": {"title": TEXT}},
            {"update": {**of, "_id": kit.of("s1")}}, {"doc": {"views": 1}},
            {"update": {**of, "_id": kit.of("absent")}}, new,
            {"update": {**of, "_id": kit.of("s2"), "routing": "r"}}, script("ctx.op = 'delete'"),
            {"update": {**of, "_id": kit.of("s3")}}, script("ctx.op = 'none'"),
        ]  # fmt: skip
        ask = {"body": lines} if kit.product == "opensearch" else {"operations": lines}
        items = plain(client.bulk(**ask, refresh=True))["items"]
    assert [one["update"]["status"] for one in items] == [200, 200, 201, 200, 404, 200, 200]
    assert stored(kit, "s1") == signed(kit, {"title": OTHER, "views": 1})
    assert stored(kit, "s3") == signed(kit, {"title": TEXT})
    for name in ("s1", "s3"):
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


def test_the_gate_of_an_index_decides_about_what_is_written(kit, server, new_index):
    index = new_index(MAPPINGS)
    shinglefold.setup(server.url, index, text=["title", "body"], languages=[], gate="refuse")
    client, other = kit.client, kit.names.bare
    third = "Am Freitag öffnet das Hallenbad, und der Eintritt ist für Kinder bis zum Ende der Ferien frei."

    def refused(write: Any) -> tuple[int, dict[str, Any]]:
        with pytest.raises(kit.errors.any) as caught:
            write()
        error = caught.value
        body = error.info if kit.product == "opensearch" else error.body
        return (error.status_code if kit.product == "opensearch" else error.meta.status), body["error"]

    made = plain(client.index(index=index, id="1", body={"title": TEXT}, refresh=True))
    assert (made["result"], made["_index"], made["_primary_term"]) == ("created", index, 1)
    assert search(client, index, {"query": {"match_all": {}}})["hits"]["total"]["value"] == 1
    again = plain(client.index(index=index, id="1", body={"title": TEXT, "views": 2}))
    assert again["result"] == "updated"
    for write in (
        lambda: client.index(index=index, body={"title": f"{TEXT} Heute."}),
        lambda: client.create(index=index, id="2", body={"title": f"Heute: {TEXT}"}),
        lambda: client.index(index=index, id="2", body={"title": f"{TEXT} Heute."}, routing="a"),
    ):
        status, error = refused(write)
        assert (status, error["type"]) == (409, "near_duplicate_exception")
        assert (error["like"]["_index"], error["like"]["_id"]) == (index, "1")
        assert 0.5 < error["like"]["resemblance"] <= 1
    status, error = refused(lambda: client.create(index=index, id="1", body={"title": OTHER}))
    assert (status, error["type"]) == (409, "version_conflict_engine_exception")
    status, error = refused(
        lambda: client.index(index=index, id="1", body={"title": OTHER}, if_seq_no=1, if_primary_term=1)
    )
    assert (status, "setup" in error["reason"]) == (400, True)
    status, error = refused(
        lambda: client.update(index=index, id="9", body={"doc": {}, "upsert": {"title": OTHER}})
    )
    assert (status, "upsert" in error["reason"]) == (400, True)
    bulk = [
        {"index": {"_index": index}}, {"title": f"{TEXT} Ja."},
        {"create": {"_index": index, "_id": "3"}}, {"title": OTHER},
        {"create": {"_index": index, "_id": "3"}}, {"title": third},
        {"index": {"_index": other, "_id": kit.of("4")}}, {"title": OTHER},
        {"index": {"_index": index, "_id": "5"}}, {"title": f"{OTHER} Nein."},
        {"index": {"_index": index, "_id": "6", "version": 7, "version_type": "external"}}, {"title": third},
        {"index": {"_index": index, "_id": "7", "routing": "a"}}, {"title": third},
        {"index": {"_index": index, "_id": "7", "routing": "a"}}, {"title": third, "views": "many"},
        {"delete": {"_index": index, "_id": "3"}},
        {"index": {"_index": index, "_id": "8"}}, {"title": f"{OTHER} Nein."},
        {"update": {"_index": index, "_id": "8"}}, {"doc": {"views": 3}},
        {"update": {"_index": index, "_id": "9"}}, {"doc": {"title": OTHER}, "doc_as_upsert": True},
    ]  # fmt: skip
    ask = {"body": bulk} if kit.product == "opensearch" else {"operations": bulk}
    with pytest.warns(UserWarning, match="the gate of"):
        answer = plain(client.bulk(**ask, refresh=True))
    items = [(verb, one["_id"], one["status"]) for item in answer["items"] for verb, one in item.items()]
    assert answer["errors"] is True
    assert items[0][0::2] == ("index", 409)
    assert items[1:] == [
        ("create", "3", 201), ("create", "3", 409), ("index", kit.of("4"), 201), ("index", "5", 409),
        ("index", "6", 400), ("index", "7", 201), ("index", "7", 400), ("delete", "3", 200),
        ("index", "8", 201), ("update", "8", 200), ("update", "9", 400),
    ]  # fmt: skip
    likes = [
        next(iter(item.values()))["error"].get("like", {}).get("_id")
        for item in answer["items"]
        if "error" in next(iter(item.values()))
    ]
    assert likes == ["1", None, "3", None, None, None]
    hits = search(client, index, {"query": {"match_all": {}}})["hits"]["hits"]
    assert sorted(hit["_id"] for hit in hits) == ["1", "7", "8"]
    shinglefold.setup(server.url, index, text=["title", "body"], gate="none")
    free = kit.wrapped(fold(kit.given))
    assert plain(free.index(index=index, id="2", body={"title": TEXT}))["result"] == "created"


def test_of_near_copies_written_at_once_one_is_stored(kit, server, new_index):
    index = new_index(MAPPINGS)
    shinglefold.setup(server.url, index, text=["title"], languages=[], gate="refuse")
    texts = [f"{TEXT} {number}" for number in range(6)]

    def write(text: str) -> int:
        try:
            kit.client.index(index=index, body={"title": text})
        except kit.errors.any as error:
            return error.status_code if kit.product == "opensearch" else error.meta.status
        return 201

    if kit.awaited:

        async def each() -> list[Any]:
            made = (kit.folded.index(index=index, body={"title": text}) for text in texts)
            return await asyncio.gather(*made, return_exceptions=True)

        found = kit.loop.run_until_complete(each())
        statuses = [409 if isinstance(one, kit.errors.any) else 201 for one in found]
        assert all(not isinstance(one, Exception) or isinstance(one, kit.errors.any) for one in found), found
    else:
        with ThreadPoolExecutor(6) as pool:
            statuses = list(pool.map(write, texts))
    assert sorted(statuses) == [201, 409, 409, 409, 409, 409]


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


def test_streamed_and_parallel_helpers_sign(kit):
    own, index = helpers(kit.product), kit.names.written
    actions = [
        {"_index": index, "_id": kit.of(f"p{number}"), "title": f"{number} {TEXT}"} for number in range(20)
    ]
    actions += [{"_op_type": "update", "_index": index, "_id": kit.of("p0"), "doc": {"title": OTHER}}]
    if kit.awaited:

        async def stream() -> list[Any]:
            return [one async for one in own.async_streaming_bulk(kit.folded, actions, chunk_size=7)]

        done = kit.loop.run_until_complete(stream())
    else:
        done = list(own.streaming_bulk(kit.folded, actions, chunk_size=7))
        assert stored(kit, "p0") == signed(kit, {"title": OTHER})
        done += list(own.parallel_bulk(kit.folded, actions[1:20], thread_count=4, chunk_size=5))
    assert all(succeeded for succeeded, _ in done)
    for number in (0, 1, 19):
        title = f"{number} {TEXT}" if number else OTHER
        assert stored(kit, f"p{number}") == signed(kit, {"title": title})
    for number in range(20):
        kit.plain.delete(index=index, id=kit.of(f"p{number}"))


def test_names_with_dates_and_aliases_of_two_recipes(kit, server, new_index):
    if kit.awaited:
        return
    client, dated = kit.client, kit.of(f"{kit.names.written}-dated")
    name = f"<{dated}-{{now/d}}>"
    try:
        with pytest.warns(UserWarning, match="template can't be looked at"):
            client.index(index=name, id="1", body={"title": TEXT, "body": "", "views": 1})
        (made,) = kit.engine.all_mappings(f"{dated}-*")
        shinglefold.setup(server.url, made, text=["title", "body"], languages=[])
        client = kit.wrapped(fold(kit.given))
        for id_ in ("1", "2"):
            client.index(index=name, id=id_, body={"title": TEXT}, refresh=True)
            client.update(index=name, id=id_, body={"doc": {"title": OTHER}}, refresh=True)
            assert dict(kit.engine.get(made, id_)["_source"]) == signed(kit, {"title": OTHER})
        assert search(client, name, FOLDED | {"query": {"match_all": {}}})["dedup"]["folded"] == 1
    finally:
        for one in kit.engine.all_mappings(f"{dated}-*"):
            kit.engine.delete_index(one)
    old, new = new_index(MAPPINGS), new_index(MAPPINGS)
    alias = f"{new}-alias"
    shinglefold.setup(server.url, old, text=["title"], languages=[], preset="classic")
    shinglefold.setup(server.url, new, text=["title", "body"], languages=[])
    kit.plain.indices.put_alias(index=old, name=alias)
    kit.plain.indices.put_alias(index=new, name=alias, body={"is_write_index": True})
    document = {"title": "Brücke", "body": TEXT}
    client.index(index=alias, id="1", body=document)
    bulk = [{"index": {"_index": alias, "_id": "2"}}, document, {"update": {"_index": alias, "_id": "1"}}]
    bulk += [{"doc": {"body": OTHER}}]
    ask = {"body": bulk} if kit.product == "opensearch" else {"operations": bulk}
    assert not client.bulk(**ask, refresh=True)["errors"]
    assert dict(kit.engine.get(new, "2")["_source"]) == signed(kit, document)
    assert dict(kit.engine.get(new, "1")["_source"]) == signed(kit, {"title": "Brücke", "body": OTHER})
    client.index(index=old, id="3", body=document, refresh=True)
    page = search(client, alias, {**FOLDED, "query": {"match_all": {}}})
    assert page["hits"]["total"]["value"] == 3
    # It is folded by one of the schemes, and tells how many documents are of the other one.
    assert sorted(page["dedup"]["other_schemes"].values()) in ([1], [2])


def test_signed_actions_are_sent_by_other_means(kit):
    index, bare = kit.names.written, kit.names.bare
    actions = [
        {"_index": index, "_id": kit.of("a1"), "title": TEXT, FIELD: {"digest": "forged"}},
        {
            "_op_type": "create",
            "_index": index,
            "_id": kit.of("a2"),
            "_routing": "r",
            "_source": {"title": OTHER},
        },
        {"_index": bare, "_id": kit.of("a3"), "title": TEXT},
        {
            "_op_type": "update",
            "_index": index,
            "_id": kit.of("a1"),
            "doc": {"views": 1, FIELD: {"digest": "x"}},
        },
        {"_op_type": "delete", "_index": bare, "_id": kit.of("a3")},
        {"_id": kit.of("a4"), "title": OTHER},
    ]

    def make(given: Any) -> list[Any]:
        made = shinglefold.signed(kit.folded, given, index)
        if not kit.awaited:
            return list(made)

        async def collect() -> list[Any]:
            return [one async for one in made]

        return kit.loop.run_until_complete(collect())

    made = make(iter(actions))
    assert [made[2], made[4]] == [actions[2], actions[4]]
    own = helpers(kit.product)
    if kit.awaited:
        done, failed = kit.loop.run_until_complete(own.async_bulk(kit.given, made, refresh=True))
    else:
        done, failed = own.bulk(kit.given, made, refresh=True)
    assert (done, failed) == (6, [])
    assert stored(kit, "a1") == signed(kit, {"title": TEXT, "views": 1}) | {"views": 1}
    assert kit.plain.get(index=index, id=kit.of("a2"), routing="r")["_source"] == signed(
        kit, {"title": OTHER}
    )
    assert stored(kit, "a4") == signed(kit, {"title": OTHER})
    with pytest.warns(UserWarning, match="send updates by the folded client"):
        (update,) = make(
            [{"_op_type": "update", "_index": index, "_id": kit.of("a1"), "doc": {"title": OTHER}}]
        )
    assert update["doc"] == {"title": OTHER}
    with pytest.raises(shinglefold.errors.InputError, match="metadata field"):
        make([{"_index": index, "_id": "b", "_source": {"title": TEXT, "_id": "b"}}])
    with pytest.raises(shinglefold.errors.ConfigError, match="fold"):
        shinglefold.signed(kit.given, actions)
    # Actions are read as they are needed.
    if not kit.awaited:
        endless = ({"_index": index, "title": f"{TEXT} {number}"} for number in itertools.count())
        first = next(iter(shinglefold.signed(kit.folded, endless)))
        assert first["_source"] == signed(kit, {"title": f"{TEXT} 0"})
    for name in ("a1", "a4"):
        kit.client.delete(index=index, id=kit.of(name))


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
