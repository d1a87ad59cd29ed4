"""Who contains a part of a text: the engine's inverted index, and Bloom filters to stand before it."""

import tempfile
from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.clock import best, once
from bench.generated import Vocabulary, hashes_of
from bench.table import Row
from shinglefold.canon import Canonicalizer
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.ingest.pipeline.pipeline import Pipeline, default_definition
from shinglefold.ingest.writing.worker_pool import process_block
from shinglefold.model.recipe import FIELD, Recipe, with_passages
from shinglefold.model.values import Int64s
from shinglefold.passages.shingle_positions import WIDTH
from shinglefold.registry import make_scheme
from shinglefold.relatives.bloom import PseudoMatrixFilter, Shape
from shinglefold.rerank.matching import MatchSearch
from shinglefold.sketch.shingles import shingle_hashes

_WORDS, _ASKED, _LARGE, _SMALL = 300, 1_000, 100_000, 10_000
_AT_ONCE = 2_000
#: Elements of a row, and the share of strangers that a filter takes for its own.
_ROWS = ((123_000, 0.05), (3_000, 0.05), (3_000, 0.01), (300, 0.01))


def measure() -> list[Row]:
    """Return what the stored elements cost, and how long a search for passages takes with and without."""
    vocabulary = Vocabulary.of(50_000)
    words = vocabulary.drawn(_LARGE * _WORDS, 1).reshape(_LARGE, _WORDS)
    own = vocabulary.drawn(_ASKED - 100, 2)
    # A tenth of the text is the beginning of document 7.
    asked = np.concatenate((own[:400], words[7, :100], own[400:]))
    return [
        *_stored(vocabulary, words[:_SMALL]),
        *_searched(vocabulary, words, asked),
        *_filters(words, asked),
    ]


def _text(vocabulary: Vocabulary, numbers: Int64s) -> str:
    return b" ".join([vocabulary.words[at] for at in numbers.tolist()]).decode("ascii")


def _pipeline(passages: bool) -> Pipeline:
    definition = default_definition(FIELD)
    return Pipeline.from_json(with_passages(definition, FIELD) if passages else definition, make_scheme())


def _filled(engine: EmbeddedEngine, vocabulary: Vocabulary, words: Int64s, *, passages: bool) -> None:
    pipeline = _pipeline(passages)
    recipe: Recipe = pipeline.recipe(FIELD)
    engine.create_index("bench", recipe_mappings(recipe), {})
    for begin in range(0, len(words), _AT_ONCE):
        part = range(begin, min(begin + _AT_ONCE, len(words)))
        given = [{"_id": str(at), "body": _text(vocabulary, words[at])} for at in part]
        documents = [one.document for one in process_block(pipeline, given).outcomes]
        engine.bulk(
            {"_index": "bench", "_id": one["_id"], "_source": {k: v for k, v in one.items() if k != "_id"}}
            for one in documents
            if one is not None
        )
    engine.refresh("bench")


def _stored(vocabulary: Vocabulary, words: Int64s) -> Iterator[Row]:
    sizes = []
    canonicalizer = Canonicalizer.of(make_scheme())
    for passages in (False, True):
        with tempfile.TemporaryDirectory() as folder, EmbeddedEngine(folder, canonicalizer) as engine:
            seconds, _ = once(partial(_filled, engine, vocabulary, words, passages=passages))
            (info,) = engine.indices("bench")
            sizes.append((info.size or 0) / len(words))
            name = "with" if passages else "without"
            note = (
                f"documents of {_WORDS} words, embedded; indexed in {seconds / len(words) * 1e6:,.0f} µs each"
            )
            yield Row(f"an index {name} elements", sizes[-1], "bytes a document", note)
    yield Row(
        "stored elements",
        sizes[1] - sizes[0],
        "bytes a document",
        f"{(sizes[1] - sizes[0]) / _WORDS:.1f} a word",
    )


def _searched(vocabulary: Vocabulary, words: Int64s, asked: Int64s) -> Iterator[Row]:
    canonicalizer = Canonicalizer.of(make_scheme())
    with tempfile.TemporaryDirectory() as folder, EmbeddedEngine(folder, canonicalizer) as engine:
        _filled(engine, vocabulary, words, passages=True)
        search = MatchSearch(engine, canonicalizer)
        text = _text(vocabulary, asked)
        page = search.find("bench", text)
        if [match.id for match in page.matches] != ["7"]:
            raise AssertionError(f"document 7 was not found alone: {page}")
        seconds = best(lambda: search.find("bench", text), 20)
        note = f"{_ASKED:,} words, a tenth in one document; {page.candidates} candidates' texts read"
        yield Row(f"matches, {len(words):,} documents, embedded", seconds * 1e3, "ms", note)


def _filters(words: Int64s, asked: Int64s) -> Iterator[Row]:
    elements = [np.unique(shingle_hashes(hashes_of(one), WIDTH)) for one in words]
    wanted = np.unique(shingle_hashes(hashes_of(asked), WIDTH))
    for capacity, rate in _ROWS:
        filled = PseudoMatrixFilter(Shape.of(capacity, rate))
        for number, one in enumerate(elements):
            filled.insert(str(number), one)
        counts = filled.counts(wanted)
        seconds = best(partial(filled.counts, wanted), 5)
        # What a row must show before a document in it can have five of a hundred words.
        rows = np.flatnonzero(counts >= 0.05 * len(wanted))
        left = sum(len(filled.documents(int(row))) for row in rows)
        if "7" not in {name for row in rows for name in filled.documents(int(row))}:
            raise AssertionError("a Bloom filter denied what it holds")
        size = filled.lanes.nbytes / len(words)
        note = f"{filled.rows:,} rows, {size:,.0f} bytes a document; leaves {left / len(words):.2%} of them"
        yield Row(f"filter before it, rows of {capacity:,}, p = {rate}", seconds * 1e3, "ms", note)
