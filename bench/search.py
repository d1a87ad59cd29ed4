"""Folded searches over real pages: what they cost beside plain ones, and what is left of the clutter."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench import corpora
from bench.clock import once
from bench.table import Row
from shinglefold.contracts.engine import JSON
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.rerank import FoldedSearch

CORPUS = "libreoffice-ru"
QUERIES = 500
_PAGE = 10


def measure() -> list[Row]:
    """Return latencies of plain and folded pages of 10, and the near-copies left on them."""
    if not corpora.available(CORPUS):
        return []
    folder = tempfile.mkdtemp()
    pipeline = Pipeline.from_json(default_definition())
    try:
        with EmbeddedEngine(folder, pipeline.tools.canonicalizer) as engine:
            summary = index_documents(engine, "pages", corpora.pages(CORPUS), pipeline)
            assert summary.indexed == len(corpora.pages(CORPUS))
            return _compared(engine, FoldedSearch(engine, pipeline.scheme))
    finally:
        shutil.rmtree(folder)


def _compared(engine: EmbeddedEngine, folded: FoldedSearch) -> list[Row]:
    bodies = title_searches(CORPUS)
    plain_times, plain = _timed(lambda body: engine.search("pages", body), bodies)
    folded_times, pages = _timed(lambda body: folded.search("pages", body), bodies)
    for before, after in zip(plain, pages, strict=True):
        assert after["hits"]["total"] == before["hits"]["total"]
        assert len(after["hits"]["hits"]) <= _PAGE
        assert after["hits"]["hits"][0]["_id"] == before["hits"]["hits"][0]["_id"]
    note = f"{CORPUS}, {len(bodies)} searches by title, pages of {_PAGE} with sources, embedded engine"
    rows = [
        *_percentiles("plain page", plain_times, note),
        *_percentiles("folded page", folded_times, f"{note}; window of 200"),
        Row(
            "folded p50 ÷ plain p50", np.median(folded_times) / np.median(plain_times), "times", "in one run"
        ),
    ]
    for name, responses in (("plain", plain), ("folded", pages)):
        shown, copies = _clutter(responses)
        rows.append(
            Row(f"near-copies on {name} pages", copies / shown, "share", f"{copies:,} of {shown:,} hits")
        )
    return rows


def title_searches(corpus: str) -> list[JSON]:
    """Return searches for pages of 10 by titles of a corpus, evenly drawn."""
    titles = dict.fromkeys(page["title"] for page in corpora.pages(corpus) if page["title"])
    chosen = list(titles)[:: max(1, len(titles) // QUERIES)][:QUERIES]
    fields = ["title^2", "body"]
    return [{"query": {"multi_match": {"query": title, "fields": fields}}, "size": _PAGE} for title in chosen]


def _timed(search: Callable[[JSON], JSON], bodies: Sequence[JSON]) -> tuple[list[float], list[JSON]]:
    for body in bodies[:20]:
        search(body)
    timed = [once(lambda body=body: search(body)) for body in bodies]  # type: ignore[misc]
    return [seconds for seconds, _ in timed], [answer for _, answer in timed]


def _percentiles(name: str, seconds: Sequence[float], note: str) -> list[Row]:
    values = np.percentile(np.array(seconds) * 1e3, (50, 95, 99))
    return [Row(f"{name}, p{p}", float(ms), "ms", note) for p, ms in zip((50, 95, 99), values, strict=True)]


def _clutter(responses: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """Return the hits shown, and how many of them are labelled near-copies of a hit above on their page."""
    similarity = corpora.labels(CORPUS)
    shown = copies = 0
    for response in responses:
        ids = [hit["_id"] for hit in response["hits"]["hits"]]
        shown += len(ids)
        for rank, one in enumerate(ids):
            above = ((min(one, other), max(one, other)) for other in ids[:rank])
            copies += any(similarity.get(pair, 0.0) >= 0.8 for pair in above)
    return shown, copies
