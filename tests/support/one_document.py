"""An index of one document, for tests of mappings."""

from shinglefold.engines.embedded import EmbeddedEngine


def index_one(engine: EmbeddedEngine, source: object, **mappings: object) -> list[str]:
    """Index one document; return why it was refused, if it was."""
    if not engine.index_exists("pages"):
        engine.create_index("pages", mappings, {})
    result = engine.bulk([{"_index": "pages", "_id": "1", "_source": source}])
    engine.refresh("pages")
    return [failure.reason for failure in result.failures]


def count(engine: EmbeddedEngine, query: dict) -> int:
    return engine.search("pages", {"query": query})["hits"]["total"]["value"]
