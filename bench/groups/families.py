"""Made-up collections with families of realistic sizes: most documents alone, a few copied by the hundred."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bench.groups.edited import SHARES, pipeline, texts
from bench.groups.stored import SCHEME
from shinglefold.contracts.engine import Engine
from shinglefold.ingest import default_recipe, ensure_index
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.model.values import Fingerprint, Int64s
from shinglefold.sketch import low_bits, pack, supershingles, to_keywords
from shinglefold.testing.edits import edited

#: The share of families of s documents falls with s to this power: a third of all documents are copies.
_POWER = 2.8
_LARGEST = 5_000
#: One copy in so many is the same text; the others differ.
_EQUAL = 3
#: Values of a signature that are others in a copy: resemblance .96 to its original, .93 to other copies.
_CHANGED = 12
_BLOCK = 10_000
#: Words of a text that is stored.
WORDS = 120


def families(number: int, seed: int = 1) -> Int64s:
    """Return the family of each of so many documents, int64 (D,): 36 % of them are copies, in no order."""
    chances = np.arange(1, _LARGEST + 1, dtype=np.float64) ** -_POWER
    rng = np.random.default_rng(seed)
    sizes = rng.choice(_LARGEST, number, p=chances / chances.sum()) + 1
    named = np.repeat(np.arange(number), sizes)[:number]
    return np.asarray(rng.permutation(named), np.int64)


def fill_with_prints(engine: Engine, index: str, number: int) -> None:
    """Make an index of documents that came without numbers, and have a title and a fingerprint."""
    made = recipe_mappings(replace(default_recipe(SCHEME), groups=True))
    made["properties"] |= {"host": {"type": "keyword"}, "title": {"type": "text"}}
    engine.create_index(index, made, {})
    sources = (
        {
            "title": f"heron lake {'river' if at % 3 else 'pond'} {at % 97}",
            "host": f"h{at % 7}.example",
            "dedup": one.to_field(),
        }
        for at, one in enumerate(prints(number))
    )
    _store(engine, index, sources)


def prints(number: int, seed: int = 1) -> Iterator[Fingerprint]:
    """Yield the fingerprints of a collection; what its copies changed is other than in the other copies."""
    sketch, named = SCHEME.sketch, families(number, seed)
    for begin in range(0, number, _BLOCK):
        block = named[begin : begin + _BLOCK].tolist()
        minima = np.empty((len(block), sketch.values), np.uint32)
        digests = []
        for row, family in enumerate(block):
            whole = np.random.default_rng((seed, family)).integers(0, 2**32, sketch.values, np.uint32)
            own = np.random.default_rng((seed, begin + row, 1))
            same = own.integers(_EQUAL) == 0
            if not same:
                places = own.choice(sketch.values, _CHANGED, replace=False)
                whole[places] = own.integers(0, 2**32, _CHANGED, np.uint32)
            minima[row] = whole
            digests.append(f"{seed:x}f{family:x}" if same else f"{seed:x}d{begin + row:x}")
        words = to_keywords(
            supershingles(minima, sketch.groups, sketch.group_size), np.ones(len(block), np.bool_)
        )
        signatures = pack(low_bits(minima, sketch.bits), sketch.bits)
        for row, digest in enumerate(digests):
            yield Fingerprint(SCHEME.id, "ru", 300, digest, tuple(words[row]), signatures[row].tobytes())


def fill_with_texts(engine: Engine, index: str, number: int) -> None:
    """Make an index of texts that came without numbers: each copy is an edit of the first of its family."""
    made_by = pipeline()
    ensure_index(engine, index, replace(made_by.recipe(), groups=True))
    named = families(number)
    first: dict[int, str] = {}
    for begin in range(0, number, _BLOCK):
        block = named[begin : begin + _BLOCK].tolist()
        bodies = texts(len(block), seed=begin + 1, words=WORDS)
        for row, family in enumerate(block):
            original = first.setdefault(family, bodies[row])
            if original is not bodies[row]:
                share = SHARES[(begin + row) % len(SHARES)]
                bodies[row] = edited(original, "words replaced", share, "en", seed=begin + row).text
        given = [{"body": body} for body in bodies]
        made = made_by.run_block(given)
        _store(engine, index, (one.document or {} for one in made), begin)


def _store(engine: Engine, index: str, sources: Iterable[Mapping[str, Any]], begin: int = 0) -> None:
    actions = (
        {"_index": index, "_id": str(begin + at), "_source": source} for at, source in enumerate(sources)
    )
    assert not engine.bulk(actions).failures
    engine.refresh(index)
