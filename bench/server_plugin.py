"""Pages of 10 by our plugin inside OpenSearch, beside plain pages and those that the server collapses.

The texts are made up: 20,000 short ones, two in five copies with a few words replaced. The server at
``SHINGLEFOLD_TEST_URL`` must have the plugin, and a JVM as it is shipped:
``SHINGLEFOLD_TEST_JVM="-Xms2g -Xmx2g" make engine-up ENGINE=opensearch-plugin``.
"""

import asyncio
import gc
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from bench.clock import processor_time
from bench.server_callers import run
from bench.table import URL, Row, percentiles
from shinglefold.contracts.engine import JSON, Document, Engine
from shinglefold.engines import open_async_engine, open_engine
from shinglefold.ingest import Pipeline, default_definition, index_documents, mappings
from shinglefold.rerank import FoldedSearch, FoldOptions

_INDEX = "shinglefold-bench-plugin"
_TEXTS, _WORDS, _SEARCHES, _WARM = 20_000, 120, 300, 150
_MEMBERS, _CALLERS, _ROUNDS = 5, 50, 3
_PLAIN, _NATIVE, _FOLDED = "plain page", "native collapse with members", "folded page with members"
_PLUGIN = f"{_FOLDED}, by the plugin"
#: With as many hits as the plugin's page has, each group's first one twice, as a native collapse has it.
_AS_LONG = "plain page as long"
_INNER = {"name": "duplicates", "size": _MEMBERS + 1}
_BODIES: dict[str, JSON] = {
    _PLAIN: {},
    _NATIVE: {"collapse": {"field": "group", "inner_hits": _INNER}},
    _PLUGIN: {"ext": {"dedup": {"members": _MEMBERS}}},
}


def measure() -> list[Row]:
    """Return the figures; nothing where no server is named, or it has no plugin."""
    if not os.environ.get(URL):
        return []
    with open_engine(os.environ[URL]) as engine, _index(engine):
        found = engine.search(_INDEX, {"size": 1, **_BODIES[_PLUGIN]})
        assert found["dedup"]["mode"] == "server", "the server has no plugin"
        return [*_one_caller(engine), *asyncio.run(_many_callers())]


@contextmanager
def _index(engine: Engine) -> Iterator[None]:
    pipeline = Pipeline.from_json(default_definition())
    made = mappings(pipeline.scheme)
    made["properties"] |= {"title": {"type": "text"}, "body": {"type": "text"}, "group": {"type": "long"}}
    if engine.index_exists(_INDEX):
        engine.delete_index(_INDEX)
    engine.create_index(_INDEX, made, {"number_of_shards": 1, "number_of_replicas": 0})
    try:
        index_documents(engine, _INDEX, _texts(), pipeline)
        engine.refresh(_INDEX)
        yield
    finally:
        engine.delete_index(_INDEX)


def _texts() -> Iterator[Document]:
    rng = random.Random(7)
    words = [f"w{number}x" for number in range(4000)]
    frequent = np.random.default_rng(7)
    texts: list[list[str]] = []
    groups: list[int] = []
    for number in range(_TEXTS):
        if texts and rng.random() < 0.4:
            source = rng.randrange(max(0, len(texts) - 300), len(texts))
            text, group = list(texts[source]), groups[source]
            for _ in range(4):
                text[rng.randrange(_WORDS)] = rng.choice(words)
        else:
            ranks = np.minimum(frequent.zipf(1.15, _WORDS) - 1, len(words) - 1)
            text, group = [words[rank] for rank in ranks], number
        texts.append(text)
        groups.append(group)
        yield {"_id": str(number), "title": " ".join(text[:5]), "body": " ".join(text), "group": group}


def _searches() -> list[JSON]:
    rng = random.Random(9)
    return [
        {"query": {"match": {"body": " ".join(f"w{rng.randrange(5, 2000)}x" for _ in range(3))}}, "size": 10}
        for _ in range(_SEARCHES)
    ]


def _one_caller(engine: Engine) -> list[Row]:
    folded = FoldedSearch(engine, lambda recipe: recipe.scheme)
    members = FoldOptions(members=_MEMBERS)
    ways: dict[str, Callable[[JSON], JSON]] = {
        name: lambda body, more=more: engine.search(_INDEX, body | more) for name, more in _BODIES.items()
    }
    ways[_FOLDED] = lambda body: folded.search(_INDEX, body, members)
    bodies = _searches()
    sizes = {_query(body): _documents(engine.search(_INDEX, body | _BODIES[_PLUGIN])) for body in bodies}
    ways[_AS_LONG] = lambda body: engine.search(_INDEX, body | {"size": sizes[_query(body)]})
    for body in bodies[:_WARM]:
        for search in ways.values():
            search(body)
    gc.collect()
    gc.freeze()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    costs: dict[str, list[float]] = {name: [] for name in ways}
    for number, body in enumerate(bodies):
        answers = {}
        # The first search for a text finds nothing in the caches: each way comes first in turn.
        first = number % len(ways)
        for name, search in [*ways.items()][first:] + [*ways.items()][:first]:
            start = time.perf_counter()
            answers[name] = search(body)
            seconds[name].append(time.perf_counter() - start)
            costs[name].append(processor_time(lambda search=search: search(body)))  # type: ignore[misc]  # noqa: B023
        pages = [[hit["_id"] for hit in answers[name]["hits"]["hits"]] for name in (_FOLDED, _PLUGIN)]
        assert pages[0] == pages[1]
    note = f"{len(bodies)} searches, pages of 10 with sources, one connection, all ways in turn"
    rows = [row for name, taken in seconds.items() for row in percentiles(name, taken, (50, 99), note)]
    rows += [
        Row(f"{name}, CPU of the client", float(np.median(taken)) * 1e3, "ms", note)
        for name, taken in costs.items()
    ]
    middle = {name: float(np.median(taken)) for name, taken in seconds.items()}
    return rows + [
        Row(f"{_PLUGIN} ÷ {name}, p50", middle[_PLUGIN] / middle[name], "", note)
        for name in middle
        if name != _PLUGIN
    ]


def _query(body: JSON) -> str:
    return str(body["query"]["match"]["body"])


def _documents(page: JSON) -> int:
    """Return how many documents a page has, those attached included."""
    hits = page["hits"]["hits"]
    return len(hits) + sum(len(hit["inner_hits"]["duplicates"]["hits"]["hits"]) for hit in hits)


async def _many_callers() -> list[Row]:
    rates: dict[str, list[float]] = {name: [] for name in _BODIES}
    bodies = _searches()
    async with open_async_engine(os.environ[URL]) as engine:

        async def search(body: JSON) -> JSON:
            return await engine.search(_INDEX, body)

        for _ in range(_ROUNDS + 1):
            for name, more in _BODIES.items():
                shaped = [body | more for body in bodies]
                rates[name].append((await run(search, shaped, _CALLERS, len(bodies))).rate)
    note = f"{_CALLERS} callers of one awaited client, median of {_ROUNDS} rounds"
    middle = {name: float(np.median(found[1:])) for name, found in rates.items()}
    return [
        *(Row(f"{name}, {_CALLERS} callers", rate, "/s", note) for name, rate in middle.items()),
        *(
            Row(f"{_PLUGIN} ÷ {name}, {_CALLERS} callers", middle[_PLUGIN] / middle[name], "", note)
            for name in (_PLAIN, _NATIVE)
        ),
    ]
