"""Folding windows of hits in the process, and a folded page beside a plain one on the embedded engine."""

import shutil
import tempfile
import tracemalloc
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.clock import best
from bench.groups.stored import words
from bench.table import Row
from shinglefold.contracts.engine import JSON
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import mappings
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import Fingerprint
from shinglefold.rerank import FoldedSearch, FoldOptions, collapse
from shinglefold.rerank.fold.clustering import folding_of
from shinglefold.sketch.b_bit_minhash import estimate, pack

SCHEME = Scheme()
#: What windows look like: how many hits an original has on average, and how much of a copy is changed.
WINDOWS = {
    "no duplicates": (0.0, 0.0),
    "2 hits an original": (2.0, 0.45),
    "8 hits an original": (8.0, 0.45),
    "copies of one original": (float("inf"), 0.15),
    "one original, half of the copies beyond the threshold": (float("inf"), 0.45),
}
_ROUNDS = 30


def measure() -> list[Row]:
    """Return ms of folding 200 and 1,000 hits, of a folded page, and the memory folding takes."""
    rows = [row for hits in (200, 1_000) for row in fold(hits)]
    return [*rows, *memory(), *page()]


def fold(hits: int) -> list[Row]:
    """Return ms of folding so many hits, each window's answer first compared with the exhaustive one."""
    rows = []
    for kind, (copies, changed) in WINDOWS.items():
        values = window(hits, copies, changed)
        found = made_hits(values)
        groups = [group.members for group in collapse(found, SCHEME).groups]
        assert groups == exhaustive(values)
        note = f"{kind}: {len(groups)} groups, equal to comparing every hit with every leader"
        for name, way in _ways().items():
            assert way(found) == groups
            seconds = best(lambda found=found, way=way: way(found), _ROUNDS)  # type: ignore[misc]
            rows.append(Row(f"fold {hits:,} hits{name}", seconds * 1e3, "ms", note))
    linked = FoldOptions(linkage="connected")
    seconds = best(lambda: collapse(found, SCHEME, linked), 5)
    return [*rows, Row(f"fold {hits:,} hits, connected", seconds * 1e3, "ms", "one original")]


def _ways() -> dict[str, Callable[[Sequence[JSON]], list[tuple[int, ...]]]]:
    """Return the ways to fold hits: by numpy, and by compiled code where it can be had."""
    ways = {"": lambda found: [group.members for group in collapse(found, SCHEME).groups]}
    if find_spec("numba"):
        from shinglefold.rerank.fold.compiled_groups import compiled_leader_groups

        def compiled(found: Sequence[JSON]) -> list[tuple[int, ...]]:
            folding = folding_of(SCHEME, FoldOptions(), "_dedup", lead=compiled_leader_groups)
            folding.add(found)
            return [group.members for group in folding.collapsed().groups]

        ways[", compiled"] = compiled
    return ways


def memory() -> list[Row]:
    """Return the most memory folding holds at a time, for 1,000 hits and for ten times as many."""
    rows = []
    for hits in (1_000, 10_000):
        found = made_hits(window(hits, 8.0))
        tracemalloc.start()
        collapse(found, SCHEME)
        rows.append(Row(f"fold {hits:,} hits, memory", tracemalloc.get_traced_memory()[1] / 2**20, "MB"))
        tracemalloc.stop()
    return rows


def page(documents: int = 5_000) -> list[Row]:
    """Return ms of a plain page and of a folded one over a window of 200, on the embedded engine."""
    folder = Path(tempfile.mkdtemp())
    body = {"query": {"match": {"title": "page"}}, "size": 10, "_source": ["title"]}
    try:
        with EmbeddedEngine(folder, words) as engine:
            _fill(engine, documents)
            search = FoldedSearch(engine, SCHEME)
            folded = search.search("pages", body)
            assert folded["dedup"]["stopped_by"] == "page_full"
            assert len(folded["hits"]["hits"]) == 10
            read = {**body, "size": 200, "_source": False, "docvalue_fields": ["_dedup.*"]}
            plain, reading, whole = (
                best(work, _ROUNDS)
                for work in (
                    lambda: engine.search("pages", body),
                    lambda: engine.search("pages", read),
                    lambda: search.search("pages", body),
                )
            )
    finally:
        shutil.rmtree(folder)
    note = f"embedded engine, {documents:,} documents, {folded['dedup']['groups']} groups in the window"
    return [
        Row("plain page of 10", plain * 1e3, "ms", note),
        Row("reading a window of 200", reading * 1e3, "ms", note),
        Row("folded page of 10 with up to 5 members each", whole * 1e3, "ms", note),
    ]


def window(hits: int, copies: float, most: float = 0.45) -> NDArray[np.uint32]:
    """Return the values of hits, each original's copies changed in up to ``most`` of them."""
    chance = np.random.default_rng(1)
    top, size = 2**SCHEME.sketch.bits, SCHEME.sketch.values
    if not copies:
        return chance.integers(0, top, (hits, size), dtype=np.uint32)
    originals = chance.integers(0, top, (max(1, round(hits / copies)), size), dtype=np.uint32)
    values = originals[chance.integers(0, len(originals), hits)]
    changed = chance.random(values.shape) < chance.random((hits, 1)) * most
    return np.where(changed, chance.integers(0, top, values.shape, dtype=np.uint32), values)


def made_hits(values: NDArray[np.uint32]) -> list[JSON]:
    """Return hits with these signatures as an engine answers with them."""
    return [
        {"_index": "pages", "_id": str(rank), "_score": 1.0, "fields": _fields(signature.tobytes(), rank)}
        for rank, signature in enumerate(pack(values, SCHEME.sketch.bits))
    ]


def exhaustive(values: NDArray[np.uint32]) -> list[tuple[int, ...]]:
    """Return the groups with a leader by comparing every hit with every leader, value by value."""
    groups: list[list[int]] = []
    for rank, row in enumerate(values):
        leaders = values[[group[0] for group in groups]] if groups else values[:0]
        alike, _ = estimate((leaders == row).sum(axis=1), SCHEME.sketch.values, SCHEME.sketch.bits)
        near = np.flatnonzero(alike >= SCHEME.decision.min_resemblance)
        if len(near):
            groups[near[0]].append(rank)
        else:
            groups.append([rank])
    return [tuple(group) for group in groups]


def _fields(signature: bytes, rank: int) -> JSON:
    stored = Fingerprint(SCHEME.id, "ru", 300, f"d{rank}", (), signature).to_field()
    return {f"_dedup.{name}": [stored[name]] for name in ("digest", "signature")}


def _fill(engine: EmbeddedEngine, documents: int) -> None:
    made = mappings(SCHEME)
    made["properties"]["title"] = {"type": "text"}
    engine.create_index("pages", made, {})
    signatures = pack(window(documents, 8.0), SCHEME.sketch.bits)
    result = engine.bulk(
        {"_index": "pages", "_id": str(rank), "_source": _document(rank, signature.tobytes())}
        for rank, signature in enumerate(signatures)
    )
    assert result.indexed == documents
    engine.refresh("pages")


def _document(rank: int, signature: bytes) -> JSON:
    words = tuple(f"{slot:02}{rank:05}" for slot in range(SCHEME.sketch.groups))
    stored = Fingerprint(SCHEME.id, "ru", 300, f"d{rank}", words, signature).to_field()
    return {"title": f"page {rank} " * (1 + rank % 7), "body": "word " * 500, "_dedup": stored}
