"""Indexing with the numbers of groups beside indexing without them, in turns, on real or made-up pages."""

import random
from collections.abc import Iterator
from dataclasses import replace
from statistics import median
from time import perf_counter, process_time

from bench import corpora
from bench.groups.places import engines
from bench.table import Row
from shinglefold.contracts.engine import Document, Engine
from shinglefold.grouping.intent_index import intents_name
from shinglefold.grouping.numbering import Numbering
from shinglefold.ingest import Pipeline, ensure_index, index_documents

CORPUS, INDEX = "libreoffice-ru", "bench-numbered"
_PAGES, _TURNS = 3000, 3
_DEFINITION = {
    "processors": [
        {"html_strip": {"field": "body", "ignore_missing": True}},
        {"supershingle": {"fields": ["title", "body"]}},
    ]
}


def measure() -> list[Row]:
    """Return documents a second with and without groups, and the share that is kept."""
    pages = _pages()
    with engines() as places:
        return [row for name, engine in places for row in _measured(name, engine, pages)]


def _pages() -> list[Document]:
    if corpora.available(CORPUS):
        return [dict(page) for page in corpora.pages(CORPUS)[:_PAGES]]
    chance = random.Random(1)
    made: list[Document] = []
    for number in range(_PAGES):
        words = [f"w{chance.randrange(20_000)}" for _ in range(300)]
        copied = number % 5 == 4
        made.append({"id": f"{number}", "body": str(made[-1]["body"]) + " x" if copied else " ".join(words)})
    return made


def _measured(name: str, engine: Engine, pages: list[Document]) -> Iterator[Row]:
    pipeline = Pipeline.from_json(_DEFINITION)
    # What is learned of words once is not to be paid by whoever comes first.
    list(pipeline.run(pages))
    seconds: dict[bool, list[float]] = {False: [], True: []}
    spent: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(_TURNS):
        for groups in (False, True):
            took, own = _indexed(engine, pages, pipeline, groups=groups)
            seconds[groups].append(took)
            spent[groups].append(own)
    note = f"{len(pages):,} pages, one process, in turns, median of {_TURNS}; {name}"
    for groups, said in ((False, "without groups"), (True, "with groups")):
        yield Row(f"index, {said}", len(pages) / median(seconds[groups]), "pages/s", note)
        yield Row(f"index, {said}, CPU of the caller", median(spent[groups]), "s", note)
    kept = median(plain / numbered for plain, numbered in zip(seconds[False], seconds[True], strict=True))
    yield Row("index with groups keeps", 100 * kept, "% of the rate", note)


def _indexed(
    engine: Engine, pages: list[Document], pipeline: Pipeline, *, groups: bool
) -> tuple[float, float]:
    for index in (INDEX, intents_name(INDEX)):
        if engine.index_exists(index):
            engine.delete_index(index)
    recipe = replace(pipeline.recipe(), groups=groups)
    ensure_index(engine, INDEX, recipe)
    start, own = perf_counter(), process_time()
    made_by = pipeline.tools.canonicalizer
    numbering = Numbering(engine, INDEX, recipe, canonicalizer=made_by) if groups else None
    summary = index_documents(engine, INDEX, pages, pipeline, workers=1, groups=numbering)
    engine.refresh(INDEX)
    took = perf_counter() - start, process_time() - own
    assert summary.indexed == len(pages)
    query = {"exists": {"field": "dedup.group"}}
    body = {"size": 0, "track_total_hits": True, "query": query}
    assert engine.search(INDEX, body)["hits"]["total"]["value"] == (len(pages) if groups else 0)
    return took
