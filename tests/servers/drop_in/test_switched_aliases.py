"""An alias is switched to another index while a folded client still has the recipe of the first one."""

import warnings
from types import SimpleNamespace
from typing import Any

import pytest
from support.clients import plain
from support.drop_in import FIELD, FOLDED, MAPPINGS, OTHER, TEXT, search

import shinglefold
from shinglefold.model.stored_fingerprint import without_fingerprint

DOCUMENT = {"title": OTHER, "body": TEXT}
INDEX = {"index": {"_id": "1"}}
UPDATE = {"update": {"_id": "0"}}
#: The first write after the switch; document 0 is there before.
WRITES: dict[str, list[Any]] = {
    "a document": [INDEX, DOCUMENT],
    "an update": [UPDATE, {"doc": {"title": TEXT}}],
    "an update of what the first recipe does not read": [UPDATE, {"doc": {"body": OTHER, FIELD: {"x": 1}}}],
    "an upsert": [{"update": {"_id": "1"}}, {"doc": {"title": TEXT}, "doc_as_upsert": True}],
    "a bulk": [INDEX, DOCUMENT, {"create": {}}, {"title": TEXT}],
    "a bulk with an update": [UPDATE, {"doc": {"title": TEXT}}, INDEX, DOCUMENT, {"delete": {"_id": "2"}}],
}


def write(kit: Any, alias: str, lines: list[Any]) -> list[dict[str, Any]]:
    """Write by the request for one document if there is one, and return the answer to each action."""
    if len(lines) > 2:
        answer = kit.client.bulk(index=alias, **kit.lines("operations", lines), refresh=True)
        return [next(iter(item.values())) for item in answer["items"]]
    ((verb, named),) = lines[0].items()
    sent = getattr(kit.client, verb)(index=alias, id=named["_id"], body=lines[1], refresh=True)
    return [sent]


@pytest.fixture
def switched(kit, server, new_index):
    """A function that makes an alias, writes by it, and switches it; it returns the names."""

    def switch(*, recipe: bool = True) -> tuple[str, str]:
        old, new = new_index(MAPPINGS), new_index(MAPPINGS)
        alias = f"{new}-alias"
        shinglefold.setup(server.url, old, text=["title"], languages=[])
        if recipe:
            shinglefold.setup(server.url, new, text=["title", "body"], languages=[], preset="classic")
            kit.client.index(index=new, id="0", body=DOCUMENT)
            kit.client.index(index=new, id="2", body=DOCUMENT)
        kit.plain.indices.put_alias(index=old, name=alias)
        kit.client.index(index=alias, id="0", body=DOCUMENT, refresh=True)
        assert search(kit.client, alias, FOLDED)["dedup"]["mode"] == "window"
        actions = [{"remove": {"index": old, "alias": alias}}, {"add": {"index": new, "alias": alias}}]
        kit.plain.indices.update_aliases(body={"actions": actions})
        return alias, new

    return switch


@pytest.mark.parametrize("name", WRITES)
def test_documents_are_signed_for_the_index_that_stores_them(kit, server, switched, name):
    alias, new = switched()
    answers = write(kit, alias, WRITES[name])
    assert {one["_index"] for one in answers} == {new}
    kit.engine.refresh(new)
    found = kit.plain.search(index=new, body={"version": True, "seq_no_primary_term": True})["hits"]["hits"]
    with shinglefold.open(server.url, new) as site:
        for hit in found:
            (expected,) = site.sign([without_fingerprint(hit["_source"], FIELD)])
            left = {key: value for key, value in hit["_source"][FIELD].items() if value is not None}
            assert left == expected[FIELD]
    versions = {hit["_id"]: (hit["_version"], hit["_seq_no"]) for hit in found}
    told = {one["_id"]: (one["_version"], one["_seq_no"]) for one in answers if one["result"] != "deleted"}
    assert told.items() <= versions.items()
    # Searches by the alias have the new recipe, too.
    assert search(kit.client, alias, {**FOLDED, "query": {"match_all": {}}})["dedup"]["other_schemes"] == {}


def test_an_index_without_a_recipe_is_told(kit, switched):
    alias, new = switched(recipe=False)
    with pytest.warns(UserWarning, match=f"{alias}' was switched to '{new}', which has no recipe"):
        (answer,) = write(kit, alias, WRITES["a document"])
    assert plain(answer)["result"] == "created"
    write(kit, alias, WRITES["a document"])
    assert FIELD not in kit.plain.get(index=new, id="1")["_source"]


#: Updates of a document that has the same version in both indices, of one that has not, and of a new one.
UPDATES = {
    "an update": [UPDATE, {"doc": {"title": OTHER}}],
    "an update of another version": [{"update": {"_id": "1"}}, {"doc": {"title": OTHER}}],
    "an upsert of what is there": [
        {"update": {"_id": "3"}},
        {"doc": {"title": OTHER}, "doc_as_upsert": True},
    ],
    "a bulk": [
        *(UPDATE, {"doc": {"title": OTHER}}, {"update": {"_id": "1"}}, {"doc": {"title": OTHER}}),
        *({"update": {"_id": "3"}}, {"doc": {"title": OTHER}, "doc_as_upsert": True}),
    ],
}


@pytest.mark.parametrize("name", UPDATES)
def test_updates_merge_the_document_of_the_index_that_is_written_to_now(kit, server, new_index, name):
    """As after a rollover: the alias has both indices, which have documents with the same ids."""
    old, new = new_index(MAPPINGS), new_index(MAPPINGS)
    alias = f"{new}-alias"
    for index, ids, body in ((old, ("0", "1"), TEXT), (new, ("0", "3", "1"), OTHER)):
        shinglefold.setup(server.url, index, text=["title", "body"], languages=[])
        for id_ in ids:
            kit.client.index(index=index, id=id_, body={"title": TEXT, "body": body})

    def write_to(index: str) -> None:
        actions = [
            {"add": {"index": one, "alias": alias, "is_write_index": one == index}} for one in (old, new)
        ]
        kit.plain.indices.update_aliases(body={"actions": actions})

    write_to(old)
    kit.client.update(index=alias, id="1", body={"doc": {"title": OTHER}}, refresh=True)
    write_to(new)
    answers = write(kit, alias, UPDATES[name])
    assert {(one["_index"], one.get("result")) for one in answers} == {(new, "updated")}
    kit.engine.refresh(new)
    found = kit.plain.search(index=new, body={"version": True})["hits"]["hits"]
    with shinglefold.open(server.url, new) as site:
        for hit in found:
            (expected,) = site.sign([without_fingerprint(hit["_source"], FIELD)])
            assert hit["_source"][FIELD] == expected[FIELD]
    versions = {hit["_id"]: hit["_version"] for hit in found}
    assert {one["_id"]: one["_version"] for one in answers}.items() <= versions.items()


SCRIPT = {"script": {"source": "ctx._source.title = params.t", "lang": "painless", "params": {"t": OTHER}}}
#: Updates of a document that both indices have, and of a new one.
UPDATES_OF_TEXTS: dict[str, list[Any]] = {
    **{name: UPDATES[name] for name in ("an update", "an upsert of what is there")},
    "an upsert of a new one": [{"update": {"_id": "9"}}, {"doc": {"title": OTHER}, "doc_as_upsert": True}],
    "a script": [UPDATE, SCRIPT],
    "a bulk": [UPDATE, {"doc": {"title": OTHER}}, {"update": {"_id": "3"}}, {"doc": {"title": OTHER}}],
    "a bulk with a script": [UPDATE, SCRIPT, {"update": {"_id": "3"}}, {"doc": {"title": OTHER}}],
}


@pytest.fixture
def widened(kit, server, new_index):
    """A function that makes an alias, updates by it, and adds a second index to it; it returns the names.

    A new index that stores the writes, or that has a recipe, is so by request.
    """

    def widen(*, writes: bool = True, recipe: bool = True) -> tuple[str, str]:
        old, new = new_index(MAPPINGS), new_index(MAPPINGS)
        alias = f"{new}-alias"
        for index in (old, new) if recipe else (old,):
            shinglefold.setup(server.url, index, text=["title", "body"], languages=[])
        for index, body in ((old, TEXT), (new, OTHER)):
            for id_ in ("0", "3"):
                kit.client.index(index=index, id=id_, body={"title": TEXT, "body": body})
        kit.plain.indices.put_alias(index=old, name=alias)
        kit.client.update(index=alias, id="0", body={"doc": {"title": f"{TEXT} {OTHER}"}})
        add = {"index": new, "alias": alias, **({"is_write_index": True} if writes else {})}
        kit.plain.indices.update_aliases(body={"actions": [{"add": add}]})
        return alias, new

    return widen


@pytest.mark.parametrize("name", UPDATES_OF_TEXTS)
def test_updates_go_on_when_an_alias_gains_the_index_that_is_written_to(kit, server, widened, name):
    """Engines read no document by an alias of several indices."""
    alias, new = widened()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            answers = write(kit, alias, UPDATES_OF_TEXTS[name])
        except kit.errors.any as error:
            if "painless" in f"{error} {getattr(error, 'info', '')}":
                pytest.skip(f"no scripts: {error}")
            raise
    if "error" in answers[0] and "script" in name:
        pytest.skip(f"no scripts: {answers[0]}")
    assert {one["_index"] for one in answers} == {new}
    assert {one["result"] for one in answers} <= {"created", "updated"}
    kit.engine.refresh(new)
    found = kit.plain.search(index=new, body={"version": True})["hits"]["hits"]
    written = {one["_id"] for one in answers}
    with shinglefold.open(server.url, new) as site:
        for hit in found:
            (expected,) = site.sign([without_fingerprint(hit["_source"], FIELD)])
            assert hit["_source"][FIELD] == expected[FIELD]
            assert (hit["_source"]["title"] == OTHER) is (hit["_id"] in written)
    versions = {hit["_id"]: hit["_version"] for hit in found}
    assert {one["_id"]: one["_version"] for one in answers}.items() <= versions.items()


@pytest.mark.parametrize("name", ["an update", "an upsert of a new one", "a bulk"])
def test_an_update_goes_on_when_an_alias_gains_an_index_without_a_recipe(kit, widened, name):
    alias, new = widened(recipe=False)
    with pytest.warns(UserWarning, match=f"{alias}' was switched to '{new}', which has no recipe"):
        answers = write(kit, alias, UPDATES_OF_TEXTS[name])
    for one in answers:
        assert one["_index"] == new
        assert FIELD not in kit.plain.get(index=new, id=one["_id"])["_source"]


@pytest.mark.parametrize("name", ["an update", "an upsert of a new one", "a bulk"])
def test_an_alias_without_a_write_index_is_refused_as_by_the_engine(kit, widened, name):
    alias, _ = widened(writes=False)

    def answer(client: Any) -> Any:
        try:
            return write(SimpleNamespace(client=client, lines=kit.lines), alias, UPDATES_OF_TEXTS[name])
        except kit.errors.any as error:
            return str(error)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused = answer(kit.client)
    assert refused == answer(kit.plain)
    assert "no write index is defined" in str(refused)


def test_only_the_update_without_a_routing_is_refused(kit, server, new_index):
    """The engine reads none of the documents of a bulk if one lacks its routing."""
    index = new_index({**MAPPINGS, "_routing": {"required": True}})
    shinglefold.setup(server.url, index, text=["title", "body"], languages=[])
    for id_ in ("0", "1"):
        kit.client.index(index=index, id=id_, body=DOCUMENT, routing="r")
    changed = {"doc": {"title": TEXT}}
    lines = [{"update": {"_id": "0"}}, changed, {"update": {"_id": "1", "routing": "r"}}, changed]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused, done = write(kit, index, lines)
        with pytest.raises(kit.errors.any, match="routing"):
            kit.client.update(index=index, id="0", body=changed)
    assert (refused["status"], done["result"]) == (400, "updated")
    with shinglefold.open(server.url, index) as site:
        (expected,) = site.sign([{**DOCUMENT, "title": TEXT}])
    assert kit.plain.get(index=index, id="1", routing="r")["_source"][FIELD] == expected[FIELD]


@pytest.mark.parametrize("name", ["a document", "an update", "an upsert", "a bulk", "a bulk with an update"])
def test_a_routing_of_the_alias_holds_for_the_index_that_it_is_switched_to(kit, server, new_index, name):
    """Ids alone lead to other shards."""
    old, new = (new_index(MAPPINGS, {"number_of_shards": 5}) for _ in range(2))
    alias = f"{new}-alias"
    shinglefold.setup(server.url, old, text=["title"], languages=[])
    shinglefold.setup(server.url, new, text=["title", "body"], languages=[], preset="classic")
    for id_ in ("0", "2"):
        kit.client.index(index=new, id=id_, body=DOCUMENT, routing="r")
    kit.plain.indices.put_alias(index=old, name=alias, body={"routing": "r"})
    kit.client.index(index=alias, id="0", body=DOCUMENT, refresh=True)
    add = {"add": {"index": new, "alias": alias, "routing": "r"}}
    kit.plain.indices.update_aliases(body={"actions": [{"remove": {"index": old, "alias": alias}}, add]})
    answers = write(kit, alias, WRITES[name])
    assert {one["_index"] for one in answers} == {new}
    kit.engine.refresh(new)
    with shinglefold.open(server.url, new) as site:
        for hit in kit.plain.search(index=new, body={})["hits"]["hits"]:
            (expected,) = site.sign([without_fingerprint(hit["_source"], FIELD)])
            left = {key: value for key, value in hit["_source"][FIELD].items() if value is not None}
            assert (hit["_routing"], left) == ("r", expected[FIELD])


def test_vectors_stay_where_a_document_is_written_whole(kit, switched):
    alias, new = switched()
    try:
        vector = {"type": "dense_vector", "dims": 2}
        kit.plain.indices.put_mapping(index=new, body={"properties": {"v": vector}})
    except kit.errors.any as error:
        pytest.skip(f"this server can't: {error}")
    # No partial update removes a key with a dot.
    parts = kit.engine.get(new, "0")["_source"][FIELD]
    dotted = {f"{FIELD}.{part}": value for part, value in parts.items()}
    kit.plain.index(index=new, id="0", body={**DOCUMENT, "v": [1.5, 2], **dotted})
    kit.client.update(index=alias, id="0", body={"doc": {"body": OTHER, FIELD: {"x": 1}}}, refresh=True)
    (hit,) = kit.engine.search(new, {"query": {"ids": {"values": ["0"]}}, "_source": ["*"]})["hits"]["hits"]
    left = without_fingerprint(hit["_source"], FIELD)
    assert left == {"title": OTHER, "body": OTHER, "v": [1.5, 2]}
    assert hit["_source"][FIELD]["digest"] != parts["digest"]
