"""Folded clients on real servers: searches are folded, or answered as by the plain client."""

import json
from typing import Any

import pytest
from support import drop_in
from support.clients import plain
from support.drop_in import BRIDGE, FIELD, FOLDED, MAPPINGS, OTHER, TEXT, search, signed, unasked

import shinglefold
from shinglefold import fold, unfold


def test_a_folded_client_is_an_instance_of_the_clients_class(kit):
    assert type(kit.folded) is type(kit.given)
    assert unfold(kit.folded) is kit.given
    assert unfold(kit.given) is kit.given
    assert kit.folded.indices is not kit.given.indices
    with pytest.raises(shinglefold.ShinglefoldError, match="a client of opensearch-py"):
        fold("http://localhost:9200")


@pytest.mark.parametrize("name", drop_in.SEARCHES)
def test_searches_are_those_of_an_open_index_or_the_engines_own(kit, name):
    drop_in.check_a_search(kit, name)


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
    assert search(client, names.read, BRIDGE) == unasked(plain(kit.sites[names.read].search(BRIDGE)))
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
        expected = unasked(plain(kit.sites[names.read].search(BRIDGE)))
        assert search(client, names.read, BRIDGE) == expected
        assert search(client, f"{names.read},{names.bare}", BRIDGE)["dedup"]["mode"]
        for body in ({**BRIDGE, "ext": {"dedup": False}}, {**BRIDGE, "collapse": {"field": "views"}}):
            bare = {key: value for key, value in body.items() if key != "ext"}
            assert search(client, names.read, body) == search(kit.plain, names.read, bare)
        several = f"{names.read},{names.written}"
        assert search(client, several, BRIDGE) == search(kit.plain, several, BRIDGE)
        lines = [{"index": names.read}, BRIDGE, {"index": names.written}, BRIDGE]
        answers = plain(client.msearch(**kit.lines("searches", lines)))["responses"]
        assert ["dedup" in one for one in answers] == [True, False]
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


def with_status(kit: Any, page: dict[str, Any]) -> dict[str, Any]:
    """The answer to a template, into which one of the engines puts the status."""
    own = plain(kit.plain.search_template(index=kit.names.read, body={"source": {"size": 0}}))
    return page | {name: own[name] for name in ("status",) if name in own}


def answer_of(client: Any, index: str, template: dict[str, Any]) -> Any:
    return plain(client.search_template(index=index, body=template))


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
    assert answer_of(kit.client, names.read, body) == with_status(kit, expected)
    always = kit.wrapped(fold(kit.given, always=True))
    if name == "not asked":
        assert answer_of(always, names.read, body) == with_status(kit, unasked(plain(site.search(BRIDGE))))
        assert answer_of(always, names.bare, body) == with_status(kit, search(kit.plain, names.bare, BRIDGE))
    lines = [
        {"index": names.read},
        body,
        {"index": names.read},
        {"source": TEMPLATE, "params": {"word": "мост"}},
    ]
    found = plain(kit.client.msearch_template(**kit.lines("search_templates", lines)))["responses"]
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
    found = plain(kit.client.msearch_template(**kit.lines("search_templates", lines)))["responses"]
    assert ["error" in one for one in found] == [True, False, False]
    assert [one.get("dedup", {}).get("mode") for one in found] == [None, "window", "unfolded"]
    kit.plain.put_script(id="shinglefold-test", body={"script": {"lang": "mustache", "source": TEMPLATE}})
    try:
        body = {"id": "shinglefold-test", "params": {"word": "мост"}, **asked}
        found = plain(kit.client.search_template(index=names.read, body=body))
        assert found == with_status(kit, plain(kit.sites[names.read].search(FOLDED)))
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
    drop_in.check_errors(kit)
    with pytest.raises(kit.errors.missing):
        kit.client.get(index=kit.names.written, id=kit.of("absent"))
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
    drop_in.check_several_searches(kit)
    names = kit.names
    # Where none is folded, a filter holds.
    several = [{"index": names.read}, BRIDGE, {"index": names.read}, {**BRIDGE, "ext": {"dedup": False}}]
    found = plain(kit.client.msearch(**kit.lines("searches", several), filter_path="responses.hits.hits._id"))
    ids = [{"_id": hit["_id"]} for hit in search(kit.plain, names.read, BRIDGE)["hits"]["hits"]]
    assert found == {"responses": [{"hits": {"hits": ids}}] * 2}


def test_an_index_without_a_recipe_is_answered_as_by_the_plain_client(kit):
    def everything(client: Any) -> list[Any]:
        index = kit.names.bare
        document = {"title": TEXT, "views": 1, FIELD: {"digest": "x"}}
        bulk = [{"index": {"_index": index, "_id": "b"}}, document, {"delete": {"_index": index, "_id": "b"}}]
        return [
            client.index(index=index, id="a", body=document),
            client.update(index=index, id="a", body={"doc": {"title": OTHER}}, refresh=True),
            client.get(index=index, id="a"),
            client.bulk(**kit.lines("operations", bulk)),
            client.search(index=index, body={"query": {"match_all": {}}}),
            client.count(index=index),
            client.delete(index=index, id="a"),
        ]

    assert list(map(plain, everything(kit.client))) == list(map(plain, everything(kit.plain)))


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
    assert not client.bulk(**kit.lines("operations", bulk), refresh=True)["errors"]
    assert dict(kit.engine.get(new, "2")["_source"]) == signed(kit, document)
    assert dict(kit.engine.get(new, "1")["_source"]) == signed(kit, {"title": "Brücke", "body": OTHER})
    client.index(index=old, id="3", body=document, refresh=True)
    page = search(client, alias, {**FOLDED, "query": {"match_all": {}}})
    assert page["hits"]["total"]["value"] == 3
    # It is folded by one of the schemes, and tells how many documents are of the other one.
    assert sorted(page["dedup"]["other_schemes"].values()) in ([1], [2])
