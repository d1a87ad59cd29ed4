"""Documents in: reading, the pipeline for pages, and the whole way into an index on disk, by stage."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import corpora
from bench.clock import best, once, peak_memory
from bench.table import Row
from shinglefold.contracts.engine import Document
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Fingerprinter, Outcome, Pipeline, default_definition, index_documents, read

CORPUS = "libreoffice-ru"
#: Seconds of the clock of one run, and seconds added up over its workers.
_CLOCK = ("read", "wait", "index", "commit", "total")
_WORK = ("strip", "canon", "sketch")


def measure() -> list[Row]:
    """Return the throughput of each step on real pages; nothing where the corpus is not at hand."""
    if not corpora.available(CORPUS):
        return []
    return [*_reading(), *_pipeline(), *_indexing(1), *_indexing(0), _memory()]


def _path() -> Path:
    return corpora.folder() / f"{CORPUS}.jsonl.gz"


def _reading() -> list[Row]:
    records = list(read(_path()))
    assert [record.line for record in records] == list(range(1, len(corpora.pages(CORPUS)) + 1))
    assert all(record.document is not None for record in records)
    seconds = best(lambda: list(read(_path())), runs=3)
    return [Row("read JSONL.gz", len(records) / seconds, "pages / s", CORPUS)]


def _pipeline() -> list[Row]:
    documents = list(corpora.pages(CORPUS))
    pipeline = Pipeline.from_json(default_definition())
    cold, outcomes = once(lambda: list(pipeline.run(documents)))
    _assert_fingerprints(pipeline, documents, outcomes)
    pipeline.meter.take()
    warm = best(lambda: list(pipeline.run(documents)), runs=1)
    stages = pipeline.meter.take().seconds
    note = f"{CORPUS}, {len(documents):,} HTML pages, one process"
    return [
        Row("pipeline, cold lexicon", len(documents) / cold, "pages / s", note),
        Row("pipeline, warm", len(documents) / warm, "pages / s", note),
        *(
            Row(f"pipeline: {stage}", stages[stage] / len(documents) * 1e6, "µs / page", note)
            for stage in _WORK
        ),
    ]


def _assert_fingerprints(
    pipeline: Pipeline, documents: Sequence[Document], outcomes: Sequence[Outcome]
) -> None:
    """Every 100th page has the fingerprint it has when it is fingerprinted alone."""
    alone = Fingerprinter(pipeline.scheme)
    assert len(documents) == len(outcomes)
    for given, outcome in list(zip(documents, outcomes, strict=True))[::100]:
        assert outcome.document is not None
        text = "\n".join((given["title"], outcome.document["body"]))
        assert outcome.document["_dedup"] == alone.fingerprint([text], [given["lang"]])[0].to_field()


def _indexing(workers: int) -> list[Row]:
    """Index the corpus on disk with a cold lexicon, as the command does."""
    pipeline = Pipeline.from_json(default_definition())
    folder = tempfile.mkdtemp()
    engine = EmbeddedEngine(folder, pipeline.tools.canonicalizer)
    try:
        summary = index_documents(engine, "pages", read(_path()), pipeline, workers=workers)
        found = engine.search("pages", {"query": {"match_all": {}}, "size": 0, "track_total_hits": True})
        assert (
            found["hits"]["total"]["value"] == summary.indexed == summary.read == len(corpora.pages(CORPUS))
        )
    finally:
        engine.close()
        shutil.rmtree(folder)
    name = f"index, workers={workers}"
    note = f"{CORPUS}, {summary.indexed:,} pages into the embedded engine, cold"
    rows = [Row(name, summary.indexed / summary.seconds["total"], "pages / s", note)]
    rows += [Row(f"{name}: {stage}", summary.seconds[stage], "s", "by the clock") for stage in _CLOCK]
    return rows + [
        Row(f"{name}: {stage}", summary.seconds[stage], "s", "over all workers") for stage in _WORK
    ]


def _memory() -> Row:
    return Row("peak memory of the whole run", peak_memory(), "MB", "pages and answers included")
