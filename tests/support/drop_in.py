"""Texts, requests and answers of the tests of folded clients."""

from typing import Any

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
