"""Fingerprints of whole corpora, and how lists of them collapse; no engine is involved.

The scheme is that of the first indices, so that what they hold is seen to be read and folded as it was.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from support.golden.corpora import digest, file_of, in_blocks, pages_of

from shinglefold.ingest import Pipeline, default_definition
from shinglefold.model.scheme import Scheme
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldOptions, collapse

#: What a later version must write as it is.
_PARTS = ("scheme", "lang", "shingles", "digest", "supershingles", "signature")
_BLOCK = 1000
#: By name, how each block of a thousand hits is folded.
WAYS = {
    "leader": {},
    "connected": {"linkage": "connected"},
    "one keyword shared": {"min_shared": 1},
    "two keywords shared": {"min_shared": 2, "min_resemblance": 0.5},
    "resemblance of 0.8": {"min_resemblance": 0.8},
    "any length": {"min_length_ratio": 0.0, "min_resemblance": 0.45},
    "within a release": {"scope": "release"},
    "a release preferred": {"representative": "prefer:release=7.4.7-1+deb12u14,43.0-2"},
}


def fingerprints(folder: Path, corpus: str) -> dict[str, Any]:
    """Return how many pages have a signature, and a digest of the stored fields of each 200 in order."""
    stored = [page["_dedup"] for page in _prepared(file_of(folder, corpus))[1]]
    rows = [[field.get(part) for part in _PARTS] for field in stored]
    signed = sum("signature" in field for field in stored)
    return {"pages": len(rows), "signed": signed, "all": digest(rows), "blocks": in_blocks(rows, 200)}


def collapsed(folder: Path, corpus: str) -> dict[str, Any]:
    """Return of each way of folding groups, folded hits and a digest a block of 1,000, and of the whole list.

    The order is that of a hash of the ids, so that revisions of a page are apart and stand in any order.
    """
    scheme, pages = _prepared(file_of(folder, corpus))
    hits = [_hit(page) for page in sorted(pages, key=lambda page: sha256(page["id"].encode()).digest())]
    blocks = [hits[begin : begin + _BLOCK] for begin in range(0, len(hits), _BLOCK)]
    found = {name: list(_folds(blocks, scheme, FoldOptions.parse(way))) for name, way in WAYS.items()}
    for linkage in ("leader", "connected"):
        found[f"whole list, {linkage}"] = list(
            _folds([hits], scheme, FoldOptions.parse({"linkage": linkage}))
        )
    return found


@cache
def _prepared(path: Path) -> tuple[Scheme, list[dict[str, Any]]]:
    pipeline = Pipeline.from_json(default_definition(), make_scheme("once"))
    outcomes = list(pipeline.run(pages_of(path)))
    assert all(outcome.status == "done" for outcome in outcomes)
    kept = ("id", "release", "_dedup")
    return pipeline.scheme, [{name: (o.document or {})[name] for name in kept} for o in outcomes]


def _hit(page: dict[str, Any]) -> dict[str, Any]:
    source = {name: page[name] for name in ("release", "_dedup")}
    return {"_index": "pages", "_id": page["id"], "_score": 1.0, "_source": source}


def _folds(
    lists: Sequence[Sequence[dict[str, Any]]], scheme: Scheme, options: FoldOptions
) -> Iterator[list[Any]]:
    for hits in lists:
        made = collapse(hits, scheme, options)
        groups = [[group.representative, list(group.members)] for group in made.groups]
        yield [len(groups), made.folded, digest(groups)]
