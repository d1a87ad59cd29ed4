"""What a stored fingerprint costs on disk, by the types of its fields: one merged shard of a real server."""

import json
import os
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from typing import Any

from bench import corpora
from bench.table import Row
from shinglefold.contracts.engine import Document, Engine
from shinglefold.engines import open_engine
from shinglefold.ingest import Pipeline, default_definition, mappings
from shinglefold.registry import make_scheme

CORPUS = "libreoffice-ru"
#: The address of a server to measure on, as the tests take it; ``make engine-up`` starts one.
URL = "SHINGLEFOLD_TEST_URL"
#: Bytes a document that a fingerprint of the default scheme may cost, all told.
TARGET = 600
#: Words of a short text at most.
SHORT = 200
_INDEX = "shinglefold-bench-storage"
_SETTINGS = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": -1}
_PAGE = {"title": "text", "body": "text", "url": "keyword", "host": "keyword", "lang": "keyword"}
_Fields = dict[str, Any]


def measure() -> list[Row]:
    """Return bytes a document for pages without fingerprints, and what each way to store them adds.

    Nothing where the corpus is not at hand, or no server is named.
    """
    if not corpora.available(CORPUS) or not os.environ.get(URL):
        return []
    documents = _made("default", _pages())
    fields = mappings(make_scheme())["properties"]["_dedup"]["properties"]
    with closing(open_engine(os.environ[URL])) as engine:
        plain = size_of(engine, None, [_without(one, "_dedup") for one in documents])
        rows = [*_variants(engine, fields, documents, plain), *_presets(engine, fields)]
        info = engine.info()
    note = f"{CORPUS}, {len(documents):,} pages, one merged shard, {info['distribution']} {info['version']}"
    assert rows[0].value <= TARGET
    return [Row("a page without a fingerprint", plain, "B / document", note), *rows]


def _made(preset: str, pages: Sequence[Document]) -> list[Document]:
    pipeline = Pipeline.from_json(default_definition(), make_scheme(preset))
    return [outcome.document or {} for outcome in pipeline.run(pages)]


def _pages() -> list[Document]:
    """Return the pages without markup: what a fingerprint adds to a block of an index depends on the rest."""
    texts = zip(corpora.pages(CORPUS), corpora.texts(CORPUS), strict=True)
    return [{**page, "body": text, "format": "text"} for page, text in texts]


def _presets(engine: Engine, fields: _Fields) -> Iterator[Row]:
    """Yield what short texts grow by, by preset, with supershingles and without."""
    pages = [page for page in _pages() if len(page["body"].split()) <= SHORT]
    words = sum(len(page["body"].split()) for page in pages) / len(pages)
    plain = size_of(engine, None, [_without(one, "_dedup") for one in _made("default", pages)])
    note = f"{len(pages):,} texts of at most {SHORT} words, {words:.0f} on average"
    yield Row("a short text without a fingerprint", plain, "B / document", note)
    for preset in ("default", "compact"):
        made = _made(preset, pages)
        rest = [{**one, "_dedup": _without(one["_dedup"], "supershingles")} for one in made]
        for name, documents in (("", made), (" without supershingles", rest)):
            growth = size_of(engine, fields, documents) - plain
            yield Row(f"+ fingerprint of preset {preset}{name}", growth, "B / document", note)


def _variants(engine: Engine, fields: _Fields, documents: Sequence[Document], plain: float) -> Iterator[Row]:
    for name, change in _WAYS.items():
        own = deepcopy(fields)
        change(own)
        growth = size_of(engine, own, documents) - plain
        yield Row(f"+ fingerprint, {name}", growth, "B / document", "growth over a page without one")
    # What ``setup --no-keywords`` leaves is the first of these.
    for part in ("supershingles", "signature", "digest"):
        rest = [{**one, "_dedup": _without(one["_dedup"], part)} for one in documents]
        growth = size_of(engine, fields, rest) - plain
        yield Row(f"+ fingerprint, as chosen but without {part}", growth, "B / document", "")
    for name, (change, changed) in _SMALLER.items():
        own = deepcopy(fields)
        changed(own)
        rest = [{**one, "_dedup": change(one["_dedup"])} for one in documents]
        note = "not read by any version: what it would cost"
        yield Row(f"+ fingerprint, {name}", size_of(engine, own, rest) - plain, "B / document", note)
    tight = {**_SETTINGS, "codec": "best_compression"}
    less = size_of(engine, None, [_without(one, "_dedup") for one in documents], tight)
    yield Row("a page without a fingerprint, codec best_compression", less, "B / document", "")
    growth = size_of(engine, fields, documents, tight) - less
    yield Row("+ fingerprint, codec best_compression", growth, "B / document", "")


def _with(name: str, definition: Mapping[str, Any]) -> Callable[[_Fields], None]:
    return lambda fields: fields.update({name: dict(definition)})


_KEYWORD = {"type": "keyword"}
_SPACED = {"type": "text", "analyzer": "whitespace", "index_options": "docs", "norms": True}


def _keywords(change: Callable[[list[str]], Any]) -> Callable[[Document], Document]:
    return lambda made: {**made, "supershingles": change(made.get("supershingles", []))}


#: Ways to store less that were looked at and not taken: how documents change, and their mapping.
_SMALLER: Mapping[str, tuple[Callable[[Document], Document], Callable[[_Fields], None]]] = {
    "keywords of 5 letters": (_keywords(lambda words: [word[:5] for word in words]), lambda _: None),
    "16 keywords": (_keywords(lambda words: words[:16]), lambda _: None),
    "14 keywords": (_keywords(lambda words: words[:14]), lambda _: None),
    "keywords as one text": (_keywords(" ".join), _with("supershingles", _SPACED)),
}
_WAYS: Mapping[str, Callable[[_Fields], None]] = {
    "as chosen": lambda _: None,
    "supershingles with doc values": _with("supershingles", _KEYWORD),
    "signature as a keyword without an index": _with("signature", {**_KEYWORD, "index": False}),
    "signature stored, no doc values": _with("signature", {"type": "binary", "store": True}),
    "shingles with an index": _with("shingles", {"type": "integer"}),
    "digest without an index": _with("digest", {**_KEYWORD, "index": False}),
}


def size_of(
    engine: Engine,
    fields: _Fields | None,
    documents: Sequence[Document],
    settings: Mapping[str, Any] = _SETTINGS,
) -> float:
    """Return bytes a document of an index with these fields for fingerprints, or with none."""
    properties: dict[str, Any] = {name: {"type": kind} for name, kind in _PAGE.items()}
    if fields is not None:
        properties["_dedup"] = {"properties": fields}
    if engine.index_exists(_INDEX):
        engine.delete_index(_INDEX)
    engine.create_index(_INDEX, {"properties": properties}, settings)
    try:
        result = engine.bulk(_actions(documents))
        assert (result.indexed, result.failures) == (len(documents), ())
        _ask("POST", "_forcemerge?max_num_segments=1&flush=true")
        engine.refresh(_INDEX)
        if fields is not None:
            _assert_found(engine, fields, documents[0])
        stats = _ask("GET", "_stats/store,docs")["indices"][_INDEX]["primaries"]
        assert stats["docs"]["count"] == len(documents)
        return float(stats["store"]["size_in_bytes"]) / len(documents)
    finally:
        engine.delete_index(_INDEX)


def _actions(documents: Sequence[Document]) -> Iterator[dict[str, Any]]:
    for document in documents:
        yield {"_index": _INDEX, "_id": document["id"], "_source": _without(document, "_id")}


def _assert_found(engine: Engine, fields: _Fields, document: Document) -> None:
    """A document is found by a keyword of its own, and its signature read without its source."""
    keywords = document["_dedup"].get("supershingles")
    keywords = keywords.split() if isinstance(keywords, str) else keywords
    query = {"term": {"_dedup.supershingles": keywords[0]}} if keywords else {"match_all": {}}
    body: dict[str, Any] = {"query": query, "_source": False, "size": 10_000}
    if fields["signature"].get("store"):
        body["stored_fields"] = ["_dedup.signature"]
    else:
        body["docvalue_fields"] = ["_dedup.signature"]
    found = {hit["_id"]: hit.get("fields", {}) for hit in engine.search(_INDEX, body)["hits"]["hits"]}
    signature = found[document["id"]].get("_dedup.signature", [None])[0]
    assert signature == document["_dedup"].get("signature")


def _without(document: Mapping[str, Any], name: str) -> Document:
    return {key: value for key, value in document.items() if key != name}


def _ask(method: str, path: str) -> dict[str, Any]:
    request = urllib.request.Request(f"{os.environ[URL]}/{_INDEX}/{path}", method=method)
    with urllib.request.urlopen(request, timeout=300) as answer:
        told: dict[str, Any] = json.load(answer)
        return told
