"""The same pages in two indices of a server, with the stage and without, and what that took."""

import json
import os
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import cached_property
from typing import Any

from bench import corpora
from bench.table import URL, Row
from shinglefold.contracts.engine import JSON, Document, Engine
from shinglefold.engines import open_engine
from shinglefold.engines.http.bulk import CHUNK
from shinglefold.ingest import Fingerprinter, Pipeline, default_definition, index_documents, mappings
from shinglefold.sketch.clustering import connected_components

PLAIN, STAGED, RAW = (f"shinglefold-bench-{name}" for name in ("plain", "staged", "raw"))
_SETTINGS = {"number_of_shards": 1, "number_of_replicas": 0}
_Pages = Sequence[Document]


class Site:
    """A corpus on a server: pages as given (``raw``), and their texts, with a group filled in beforehand."""

    def __init__(self, engine: Engine, corpus: str) -> None:
        self.engine = engine
        self.corpus = corpus
        self.pipeline = Pipeline.from_json(default_definition())
        self.delete()

    @cached_property
    def raw(self) -> list[Document]:
        """The pages, each with the number of its group, which native collapse needs."""
        pages = corpora.pages(self.corpus)
        group = connected_components(*self._found, len(pages)).tolist()
        return [
            {"_id": page["id"], **page, "group": number} for page, number in zip(pages, group, strict=True)
        ]

    @cached_property
    def stripped(self) -> list[Document]:
        """The pages without markup."""
        return [
            {**page, "body": text, "format": "text"}
            for page, text in zip(self.raw, corpora.texts(self.corpus), strict=True)
        ]

    @cached_property
    def signed(self) -> list[Document]:
        """The pages without markup, with their fingerprints."""
        return [one.document or {} for one in self.pipeline.run(self.stripped)]

    @cached_property
    def with_fingerprints(self) -> JSON:
        """The fields of an index of these."""
        return {**_properties(), **mappings(self.pipeline.scheme)["properties"]}

    @cached_property
    def of_pages(self) -> Pipeline:
        """A pipeline of its own for pages, which are enough characters to have compiled code loaded."""
        return Pipeline.from_json(default_definition())

    @cached_property
    def compiled(self) -> Pipeline | None:
        """A pipeline that works by compiled code from the first document on, where that can be had."""
        made = Pipeline.from_json(default_definition())
        return made if made.tools.fingerprinter.compile() else None

    @cached_property
    def _found(self) -> tuple[Any, Any]:
        scheme = self.pipeline.scheme
        prints = Fingerprinter(scheme).fingerprint_arrays(
            [
                f"{page['title']}\n{text}"
                for page, text in zip(corpora.pages(self.corpus), corpora.texts(self.corpus), strict=True)
            ],
            [page["lang"] for page in corpora.pages(self.corpus)],
        )
        found = prints.pairs(scheme)
        return found.a, found.b

    def bulk(self, index: str, pages: _Pages) -> None:
        """Put pages into a new index as they are, through the same client's bulk."""
        self.create(index)
        result = self.engine.bulk(actions(index, pages))
        self.engine.refresh(index)
        assert result.indexed == len(pages)

    def bulk_overlapping(self, index: str, pages: _Pages, properties: JSON | None = None) -> None:
        """Do the same with as many requests on their way as the stage sends."""
        self.create(index, properties)
        parts = [list(actions(index, pages[at : at + CHUNK])) for at in range(0, len(pages), CHUNK)]
        with ThreadPoolExecutor(self.engine.can.bulks_at_once) as pool:
            indexed = sum(result.indexed for result in pool.map(self.engine.bulk, parts))
        self.engine.refresh(index)
        assert indexed == len(pages)

    def stage(self, pages: _Pages, pipeline: Pipeline | None = None, workers: int = 2) -> None:
        """Put pages into a new index through the stage, with two workers unless told."""
        self._drop(STAGED)
        summary = index_documents(
            self.engine,
            STAGED,
            pages,
            pipeline or self.pipeline,
            properties=_properties(),
            settings=_SETTINGS,
            workers=workers,
        )
        assert summary.indexed == summary.read == len(pages)

    def create(self, index: str, properties: JSON | None = None) -> None:
        """Make an empty index in the place of the one there may be."""
        self._drop(index)
        self.engine.create_index(index, {"properties": properties or _properties()}, _SETTINGS)

    def growth(self) -> list[Row]:
        """Return bytes a page of both indices, merged: their pages are the same but for the fingerprint."""
        plain, staged = (self._merged_size(index) for index in (PLAIN, STAGED))
        note = f"{len(self.raw):,} pages without markup, one shard merged to one segment"
        return [
            Row("index without the stage", plain, "B / document", note),
            Row("index with the stage", staged, "B / document", note),
            Row("growth", staged - plain, "B / document", "target: at most 600"),
        ]

    def _merged_size(self, index: str) -> float:
        ask("POST", f"{index}/_forcemerge?max_num_segments=1&flush=true")
        self.engine.refresh(index)
        stats = ask("GET", f"{index}/_stats/store,docs")["_all"]["primaries"]
        assert stats["docs"]["count"] == len(self.raw)
        return float(stats["store"]["size_in_bytes"]) / len(self.raw)

    def _drop(self, index: str) -> None:
        if self.engine.index_exists(index):
            self.engine.delete_index(index)

    def delete(self) -> None:
        """Delete all its indices."""
        for index in (PLAIN, STAGED, RAW):
            self._drop(index)


@contextmanager
def staged(corpus: str) -> Iterator[Site | None]:
    """Stage a corpus without markup on the server named; None where there is none, or no corpus."""
    if not os.environ.get(URL) or not corpora.available(corpus):
        yield None
        return
    with closing(open_engine(os.environ[URL])) as engine:
        site = Site(engine, corpus)
        try:
            site.stage(site.stripped)
            yield site
        finally:
            site.delete()


def actions(index: str, pages: _Pages) -> Iterator[JSON]:
    """Return what a bulk request needs to put pages into an index."""
    for page in pages:
        yield {"_index": index, "_id": page["_id"], "_source": {k: v for k, v in page.items() if k != "_id"}}


def ask(method: str, path: str) -> JSON:
    """Send a request that no contract has."""
    request = urllib.request.Request(f"{os.environ[URL]}/{path}", method=method)
    with urllib.request.urlopen(request, timeout=300) as answer:
        told: JSON = json.load(answer)
        return told


def _properties() -> JSON:
    keywords = ("lang", "family", "release", "format", "id")
    return {
        "title": {"type": "text"},
        "body": {"type": "text"},
        "group": {"type": "integer"},
        **{name: {"type": "keyword"} for name in keywords},
    }
