"""The same pages in two indices of a server, with the stage and without, and what that took."""

import gc
import json
import os
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from bench import corpora
from bench.storage import URL
from bench.table import Row
from shinglefold.contracts import JSON, Document, Engine
from shinglefold.engines.http.bulk import CHUNK
from shinglefold.ingest import Fingerprinter, Pipeline, default_definition, index_documents
from shinglefold.sketch import connected

PLAIN, STAGED, RAW = (f"shinglefold-bench-{name}" for name in ("plain", "staged", "raw"))
_SETTINGS = {"number_of_shards": 1, "number_of_replicas": 0}
_ROUNDS = 3
#: The smallest of the texts' minima in each of so many hash ranges, by the engine's own filters: shingles of
#: two tokens, as in the default scheme.
MINIMA = 128
_ANALYSIS = {
    "filter": {
        "pairs": {"type": "shingle", "min_shingle_size": 2, "max_shingle_size": 2, "output_unigrams": False},
        "minima": {"type": "min_hash", "hash_count": 1, "bucket_count": MINIMA, "hash_set_size": 1},
    },
    "analyzer": {
        "minima": {"type": "custom", "tokenizer": "standard", "filter": ["lowercase", "pairs", "minima"]}
    },
}
_Pages = Sequence[Document]


class Site:
    """A corpus on a server: pages as given (``raw``), and their texts, with a group filled in beforehand."""

    def __init__(self, engine: Engine, corpus: str) -> None:
        self.engine = engine
        self.corpus = corpus
        self.pipeline = Pipeline.from_json(default_definition())
        self.delete()

    @cached_property
    def pairs(self) -> set[tuple[str, str]]:
        """The pairs of ids that the default scheme folds."""
        a, b = self._found
        ids = [page["id"] for page in corpora.pages(self.corpus)]
        return {
            (min(ids[i], ids[j]), max(ids[i], ids[j])) for i, j in zip(a.tolist(), b.tolist(), strict=True)
        }

    @cached_property
    def raw(self) -> list[Document]:
        """The pages, each with the number of its group, which native collapse needs."""
        pages = corpora.pages(self.corpus)
        group = connected(*self._found, len(pages)).tolist()
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
        result = self.engine.bulk(_actions(index, pages))
        self.engine.refresh(index)
        assert result.indexed == len(pages)

    def bulk_overlapping(self, index: str, pages: _Pages) -> None:
        """Do the same with as many requests on their way as the stage sends."""
        self.create(index)
        parts = [list(_actions(index, pages[at : at + CHUNK])) for at in range(0, len(pages), CHUNK)]
        with ThreadPoolExecutor(self.engine.can.bulks_at_once) as pool:
            indexed = sum(result.indexed for result in pool.map(self.engine.bulk, parts))
        self.engine.refresh(index)
        assert indexed == len(pages)

    def stage(self, pages: _Pages) -> None:
        """Put pages into a new index through the stage, with two workers."""
        self._drop(STAGED)
        summary = index_documents(
            self.engine, STAGED, pages, self.pipeline, properties=_properties(), settings=_SETTINGS, workers=2
        )
        assert summary.indexed == summary.read == len(pages)

    def create(self, index: str, properties: JSON | None = None) -> None:
        """Make an empty index in the place of the one there may be."""
        self._drop(index)
        settings = _SETTINGS if properties is None else {**_SETTINGS, "analysis": _ANALYSIS}
        self.engine.create_index(index, {"properties": properties or _properties()}, settings)

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
        _ask("POST", f"{index}/_forcemerge?max_num_segments=1&flush=true")
        self.engine.refresh(index)
        stats = _ask("GET", f"{index}/_stats/store,docs")["_all"]["primaries"]
        assert stats["docs"]["count"] == len(self.raw)
        return float(stats["store"]["size_in_bytes"]) / len(self.raw)

    def _drop(self, index: str) -> None:
        if self.engine.index_exists(index):
            self.engine.delete_index(index)

    def delete(self) -> None:
        """Delete all its indices."""
        for index in (PLAIN, STAGED, RAW):
            self._drop(index)


def _actions(index: str, pages: _Pages) -> Iterator[JSON]:
    for page in pages:
        yield {"_index": index, "_id": page["_id"], "_source": {k: v for k, v in page.items() if k != "_id"}}


def throughput(site: Site) -> list[Row]:
    """Return documents a second with the stage and without, round by round; markup and texts apart."""
    ways: dict[str, Callable[[], None]] = {
        "pages, plain bulk": lambda: site.bulk(RAW, site.raw),
        "pages, with the stage": lambda: site.stage(site.raw),
        "texts, plain bulk": lambda: site.bulk(PLAIN, site.stripped),
        _OVERLAPPING: lambda: site.bulk_overlapping(PLAIN, site.stripped),
        "texts, with the stage": lambda: site.stage(site.stripped),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    assert site.stripped
    # The corpora in memory are not the stage's: they need not be looked through for garbage.
    gc.collect()
    gc.freeze()
    for _ in range(_ROUNDS + 1):
        for name, work in ways.items():
            start = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - start)
    count = len(site.raw)
    # The first round warms the server and the lexicon.
    rates = {name: [count / one for one in taken[1:]] for name, taken in seconds.items()}
    rows = [Row(name, max(rate), "documents / s", _ROUNDS_NOTE) for name, rate in rates.items()]
    return [*rows, *(_share(rates, kind) for kind in ("pages", "texts")), _overlapping(rates)]


_OVERLAPPING = "texts, plain bulk, two requests at a time"
_ROUNDS_NOTE = f"best of {_ROUNDS} rounds after one to warm up; client, workers and server share two cores"


def _share(rates: dict[str, list[float]], kind: str) -> Row:
    what = "HTML as given: markup out and fingerprint" if kind == "pages" else "texts: fingerprint alone"
    plain, staged = rates[f"{kind}, plain bulk"], rates[f"{kind}, with the stage"]
    return _ratio(f"{kind}, with the stage ÷ plain bulk", plain, staged, f"{what}; target: at least .8")


def _overlapping(rates: dict[str, list[float]]) -> Row:
    plain, staged = rates[_OVERLAPPING], rates["texts, with the stage"]
    note = "what overlapping requests would do for a plain bulk, too"
    return _ratio(f"texts, with the stage ÷ {_OVERLAPPING.removeprefix('texts, ')}", plain, staged, note)


def _ratio(name: str, plain: list[float], staged: list[float], note: str) -> Row:
    by_round = [one / other for one, other in zip(staged, plain, strict=True)]
    told = ", ".join(f"{share:.2f}" for share in by_round)
    best = f"rounds {told}; best ÷ best {max(staged) / max(plain):.2f}"
    return Row(name, float(np.median(by_round)), "share", f"{note}; {best}")


def _ask(method: str, path: str) -> JSON:
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
