"""Texts, requests and answers of the tests of folded clients."""

from typing import Any

import pytest
from support.clients import plain

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


SEARCHES = {
    "folded": ({"ext": {"dedup": {}}}, True),
    "options": ({"ext": {"dedup": {"representative": "longest", "members": 1}}}, True),
    "cursor": ({"ext": {"dedup": {"cursor": True}}}, True),
    "all counted": ({"ext": {"dedup": {}}, "track_total_hits": True, "from": 1}, True),
    "no ext": ({}, False),
    "false": ({"ext": {"dedup": False}}, False),
    "fold false": ({"ext": {"dedup": {"fold": False}}}, False),
    "own collapse": ({"collapse": {"field": "views"}}, False),
}


def search(client: Any, index: str, body: dict[str, Any], **options: Any) -> Any:
    return plain(client.search(index=index, body=body, **options))


def unasked(page: Any) -> Any:
    """A folded page of which all hits were read, as searches that do not ask for folding get it."""
    hits, told = page["hits"], page["dedup"]
    assert told["groups_total"]["relation"] == "eq"
    return {
        **page,
        "hits": {**hits, "total": told["groups_total"]},
        "dedup": {**told, "hits_total": hits["total"]},
    }


def stored(kit: Any, name: str, index: str = "") -> dict[str, Any]:
    return dict(kit.engine.get(index or kit.names.written, kit.of(name))["_source"])


def signed(kit: Any, document: dict[str, Any]) -> dict[str, Any]:
    """What ``index`` stores of a document."""
    kit.sites[kit.names.written].index([{"_id": kit.of("of-index"), **document}])
    return stored(kit, "of-index")


def check_a_search(kit: Any, name: str) -> None:
    """A search is answered as by an open index where it folds, else as by the engine."""
    more, folds = SEARCHES[name]
    body = {**BRIDGE, **more}
    found = search(kit.client, kit.names.read, body)
    if folds:
        expected = plain(kit.sites[kit.names.read].search(body))
        for page in (found, expected):
            page["dedup"].pop("cursor", None)
        assert found == expected
        assert found["dedup"]["mode"] == "window"
        assert found["dedup"]["folded"]
    else:
        body.pop("ext", None)
        assert found == search(kit.plain, kit.names.read, body)
        assert "dedup" not in found


def check_several_searches(kit: Any) -> None:
    """Several searches are answered as each alone."""
    names = kit.names
    lines = [
        {"index": names.read}, FOLDED,
        {"index": names.read}, BRIDGE,
        {"index": names.bare}, BRIDGE,
        {"index": "shinglefold-absent"}, FOLDED,
        {"index": names.read}, {**FOLDED, "sort": ["absent"]},
        {"index": [names.read]}, {**FOLDED, "size": 1},
    ]  # fmt: skip
    found = plain(kit.client.msearch(**kit.lines("searches", lines)))["responses"]
    site = kit.sites[names.read]
    assert {**plain(site.search(FOLDED)), "status": 200} == found[0]
    assert {**plain(site.search({**FOLDED, "size": 1})), "status": 200} == found[5]
    bare = [{key: value for key, value in line.items() if key != "ext"} for line in lines]
    assert plain(kit.plain.msearch(**kit.lines("searches", bare)))["responses"][1:5] == found[1:5]
    assert [one.get("status") for one in found] == [200, 200, 200, 404, 400, 200]


def check_errors(kit: Any) -> None:
    """Errors of searches and writes are those of the engine."""
    for body in (BRIDGE, FOLDED):
        with pytest.raises(kit.errors.missing):
            kit.client.search(index="shinglefold-absent", body=body)
        with pytest.raises(kit.errors.broken):
            kit.client.search(index=kit.names.read, body={**body, "query": {"nonsense": {}}})
    with pytest.raises(kit.errors.missing):
        kit.client.update(index=kit.names.written, id="absent", body={"doc": {"title": TEXT}})
    with pytest.raises(kit.errors.broken):
        kit.client.index(index=kit.names.written, id="odd", body={"title": TEXT, "views": "many"})
