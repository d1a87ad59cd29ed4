"""Documents to look after, and what must be true of every one of them."""

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from shinglefold.contracts.engine import Engine
from shinglefold.errors import PermissionDenied
from shinglefold.examples import articles
from shinglefold.ingest import Fingerprinter, Pipeline, mappings
from shinglefold.maintenance import BackfillOptions, backfill
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import Fingerprint

FIELDS = {"title": {"type": "text"}, "body": {"type": "text"}, "lang": {"type": "keyword"}}


def mapped(scheme: Scheme, **properties: Any) -> dict[str, Any]:
    """Return mappings for these documents with fingerprints, and for more fields."""
    made = mappings(scheme)
    made["properties"] |= {**FIELDS, "id": {"type": "keyword"}, **properties}
    return made


@cache
def words() -> tuple[str, ...]:
    """The Russian words of the example articles."""
    texts = " ".join(page["body"] for page in articles() if page["lang"] == "ru")
    return tuple(sorted(set(re.findall(r"[а-яё]{3,}", texts))))


def pages(count: int, length: int = 30, seed: int = 1) -> list[dict[str, Any]]:
    """Documents of generated text; every tenth is too short for a signature."""
    chance = random.Random(seed)
    return [
        {
            "id": f"page-{number}",
            "title": f"Страница {number}",
            "body": " ".join(chance.choices(words(), k=1 if number % 10 == 9 else length)),
            "lang": "ru",
        }
        for number in range(count)
    ]


def store(engine: Engine, index: str, documents: Iterable[Mapping[str, Any]]) -> None:
    """Put documents into an index as another client would: without fingerprints."""
    put(engine, index, {one["id"]: dict(one) for one in documents})


def put(engine: Engine, index: str, sources: Mapping[str, Any]) -> None:
    """Put documents by their ids into an index, and let searches see them."""
    actions = ({"_index": index, "_id": id_, "_source": source} for id_, source in sources.items())
    assert not engine.bulk(actions).failures
    engine.refresh(index)


def stored(engine: Engine, index: str) -> dict[str, dict[str, Any]]:
    """The sources of all documents by id."""
    engine.refresh(index)
    hits = engine.search(index, {"query": {"match_all": {}}, "size": 10_000})["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}


def wrongly_signed(sources: Mapping[str, Mapping[str, Any]], tool: Fingerprinter) -> Iterator[str]:
    """Yield the ids of documents whose fingerprint is not, byte for byte, the one of their text."""
    texts = [f"{source['title']}\n{source['body']}" for source in sources.values()]
    made = tool.fingerprint(texts, [source["lang"] for source in sources.values()])
    for (id_, source), expected in zip(sources.items(), made, strict=True):
        if (
            "scheme" not in (source.get("_dedup") or {})
            or Fingerprint.from_field(source["_dedup"]) != expected
        ):
            yield id_


def adds_up(books: Any) -> bool:
    """Whether every document read is in exactly one count."""
    return books.read == (
        books.updated + books.unchanged + books.dropped + books.failed + books.gone + books.textless
    )


PROPERTIES = {**FIELDS, "id": {"type": "keyword"}, "open": {"type": "boolean"}}


def copies() -> list[dict[str, Any]]:
    """Three copies of each of twenty pages; one or two of the three are open."""
    return [
        {**page, "id": f"{page['id']}-{copy}", "open": (number + copy) % 2 == 0}
        for number, page in enumerate(pages(20))
        for copy in range(3)
    ]


def check_a_backfill_is_refused(
    admin: Engine, user: Engine, site: str, index: str, pipeline: Pipeline
) -> None:
    """Check that who sees a part of an index like ``site`` changes nothing by a backfill, and is told why."""
    bare = {id_: {**source, "_dedup": None} for id_, source in stored(admin, site).items()}
    if admin.index_exists(index):
        admin.delete_index(index)
    admin.create_index(index, admin.mappings(site), {"number_of_replicas": 0})
    put(admin, index, bare)
    try:
        told = backfill(user, index, pipeline, BackfillOptions(workers=1)).stopped
    except PermissionDenied as error:
        told = str(error)
    assert "document- or field-level security" in told
    assert stored(admin, index) == bare
    admin.delete_index(index)
