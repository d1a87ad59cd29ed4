"""Made-up documents by the hundred thousand: keywords and signatures of random values, a fifth copies."""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from shinglefold.contracts.engine import Engine
from shinglefold.ingest import default_recipe
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import Fingerprint
from shinglefold.sketch import low_bits, pack, supershingles, to_keywords

SCHEME = Scheme()
#: The index that look-ups and pages are measured on.
INDEX = "bench-stored"
#: Documents made at a time; copies are of one made with them.
_BLOCK = 10_000
#: Of values that a copy has otherwise: resemblance .9 and above.
_CHANGED = 12
_COPIES = 5


def count() -> int:
    """Return beside how many documents to measure."""
    return int(os.environ.get("SHINGLEFOLD_BENCH_STORED", "100000"))


def prints(number: int, seed: int = 1, scheme: Scheme = SCHEME) -> Iterator[tuple[int, Fingerprint]]:
    """Yield fingerprints with the numbers of their groups; every fifth document is a copy."""
    for begin in range(0, number, _BLOCK):
        size = min(_BLOCK, number - begin)
        minima, originals = _block(size, seed + begin)
        words = to_keywords(
            supershingles(minima, SCHEME.sketch.groups, SCHEME.sketch.group_size), np.ones(size, np.bool_)
        )
        signatures = pack(low_bits(minima, SCHEME.sketch.bits), SCHEME.sketch.bits)
        for row in range(size):
            made = Fingerprint(
                scheme.id, "ru", 300, f"{seed:x}{begin + row:x}", tuple(words[row]), signatures[row].tobytes()
            )
            yield begin + int(originals[row]), made


def _block(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    minima = rng.integers(0, 2**32, (size, SCHEME.sketch.values), np.uint32)
    originals = np.arange(size)
    copies = np.arange(_COPIES - 1, size, _COPIES)
    originals[copies] = rng.integers(0, np.maximum(copies // _COPIES, 1)) * _COPIES
    minima[copies] = minima[originals[copies]]
    for row in copies.tolist():
        places = rng.choice(SCHEME.sketch.values, _CHANGED, replace=False)
        minima[row, places] = rng.integers(0, 2**32, _CHANGED, np.uint32)
    return minima, originals


def fill(engine: Engine, index: str, number: int, scheme: Scheme = SCHEME) -> None:
    """Make an index of so many documents, where it does not have them yet."""
    if engine.index_exists(index):
        (info,) = engine.indices(index)
        if info.documents == number:
            return
        engine.delete_index(index)
    made = recipe_mappings(replace(default_recipe(scheme), groups=True))
    made["properties"] |= {"host": {"type": "keyword"}, "title": {"type": "text"}, "other": {"type": "long"}}
    engine.create_index(index, made, {})
    result = engine.bulk(_actions(index, number, scheme))
    assert not result.failures
    engine.refresh(index)


def _actions(index: str, number: int, scheme: Scheme) -> Iterator[dict[str, Any]]:
    for at, (group, made) in enumerate(prints(number, scheme=scheme)):
        source = {
            "title": f"heron lake {'river' if at % 3 else 'pond'} {at % 97}",
            "host": f"h{at % 7}.example",
            "other": group,
            "dedup": made.to_field() | {"group": group},
        }
        yield {"_index": index, "_id": str(at), "_source": source}
