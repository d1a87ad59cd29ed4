"""Made-up documents by the hundred thousand: keywords and signatures of random values, a fifth copies."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any
from urllib.request import urlopen

import numpy as np

from bench.table import URL
from shinglefold.contracts.engine import Engine
from shinglefold.engines import open_engine
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Pipeline
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import Fingerprint, Token
from shinglefold.sketch.b_bit_minhash import low_bits, pack
from shinglefold.sketch.minhash import supershingles, to_keywords

#: Documents made at a time; copies are of one made with them.
_BLOCK = 10_000
#: Of values that a copy has otherwise: resemblance .9 and above.
_CHANGED = 12
_COPIES = 5


def count() -> int:
    """Return beside how many documents to measure."""
    return int(os.environ.get("SHINGLEFOLD_BENCH_STORED", "100000"))


def prints(number: int, scheme: Scheme) -> Iterator[tuple[int, Fingerprint]]:
    """Yield fingerprints with the numbers of their groups; every fifth document is a copy."""
    sketch = scheme.sketch
    for begin in range(0, number, _BLOCK):
        size = min(_BLOCK, number - begin)
        minima, originals = _block(size, 1 + begin, sketch.values)
        words = to_keywords(supershingles(minima, sketch.groups, sketch.group_size), np.ones(size, np.bool_))
        signatures = pack(low_bits(minima, sketch.bits), sketch.bits)
        for row in range(size):
            made = Fingerprint(
                scheme.id, "ru", 300, f"1{begin + row:x}", tuple(words[row]), signatures[row].tobytes()
            )
            yield begin + int(originals[row]), made


def _block(size: int, seed: int, values: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    minima = rng.integers(0, 2**32, (size, values), np.uint32)
    originals = np.arange(size)
    copies = np.arange(_COPIES - 1, size, _COPIES)
    originals[copies] = rng.integers(0, np.maximum(copies // _COPIES, 1)) * _COPIES
    minima[copies] = minima[originals[copies]]
    for row in copies.tolist():
        places = rng.choice(values, _CHANGED, replace=False)
        minima[row, places] = rng.integers(0, 2**32, _CHANGED, np.uint32)
    return minima, originals


def fill(engine: Engine, index: str, number: int, pipeline: Pipeline) -> None:
    """Make an index of so many documents, with the recipe of a pipeline."""
    made = recipe_mappings(replace(pipeline.recipe(), groups=True))
    made["properties"] |= {"host": {"type": "keyword"}, "title": {"type": "text"}, "other": {"type": "long"}}
    engine.create_index(index, made, {})
    result = engine.bulk(_actions(index, number, pipeline.scheme))
    assert not result.failures
    engine.refresh(index)


def _actions(index: str, number: int, scheme: Scheme) -> Iterator[dict[str, Any]]:
    for at, (group, made) in enumerate(prints(number, scheme)):
        source = {
            "title": f"heron lake {'river' if at % 3 else 'pond'} {at % 97}",
            "host": f"h{at % 7}.example",
            "other": group,
            "_dedup": made.to_field() | {"group": group},
        }
        yield {"_index": index, "_id": str(at), "_source": source}


@contextmanager
def engines() -> Iterator[list[tuple[str, Engine]]]:
    """Open the engines, by what they are called in the figures."""
    with ExitStack() as opened:
        folder = opened.enter_context(TemporaryDirectory())
        found: list[tuple[str, Engine]] = [
            ("embedded", opened.enter_context(closing(EmbeddedEngine(folder, words))))
        ]
        if url := os.environ.get(URL):
            server = opened.enter_context(closing(open_engine(url)))
            info = server.info()
            found.append((f"{info['distribution']} {info['version']}", server))
        yield found


def merged() -> None:
    """Wait until a server, where one is named, has merged what was written."""
    while url := os.environ.get(URL):
        with urlopen(f"{url}/_nodes/stats/indices/merge") as answer:
            nodes = json.load(answer)["nodes"].values()
        if not any(node["indices"]["merges"]["current"] for node in nodes):
            return
        sleep(0.5)


def words(text: str) -> list[Token]:
    """Return the words of a text as they are."""
    return [Token(word, 0, 0, "en") for word in text.split()]
