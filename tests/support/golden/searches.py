"""Folded searches of corpora on the embedded engine, in an order that no tie leaves open."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from support.golden.corpora import digest, file_of, pages_of, printed

from shinglefold.api.index_recipe import search_canonicalizer
from shinglefold.contracts.engine import Engine
from shinglefold.engines import open_engine
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldedSearch
from shinglefold.settings import Settings

QUERIES = 100
#: A family is all revisions of a page; of a large corpus each fourth is enough for lists of any kind.
_SMALL, _EACH = 1_000, 4
#: No two pages have both in common.
_UNIQUE = ("family.keyword", "release.keyword")
_BY_SCORE = [{"_score": "desc"}, *_UNIQUE]
#: By name, what differs from a first page of ten by score over a window of 200; each query takes the next.
WAYS: dict[str, dict[str, Any]] = {
    "by score": {},
    "from 20": {"from": 20},
    "by name": {"sort": list(_UNIQUE)},
    "by release, newest first": {"sort": [{"release.keyword": "desc"}, "family.keyword"]},
    "connected": {"ext": {"linkage": "connected"}},
    "pages by cursor": {"ext": {"cursor": True}},
    "within a release": {"ext": {"scope": "release.keyword"}},
    "a release preferred": {
        "ext": {"representative": "prefer:release.keyword=7.4.7-1+deb12u14,43.0-2", "members": 2}
    },
    "small windows": {"size": 40, "ext": {"window": 20, "max_window": 200}},
    "stricter": {"ext": {"min_resemblance": 0.8, "min_shared": 2}},
}
#: What is kept of an answer; then how many groups are shown, and a digest of their ids.
COUNTERS = ("groups", "folded", "window", "stopped_by", "groups_total")


def searches(folder: Path, corpus: str) -> dict[str, Any]:
    """Return by query, of each page, its counters and a digest of the ids of its groups.

    The index is made by the command.
    """
    pages = _part(pages_of(file_of(folder, corpus)))
    with TemporaryDirectory() as place:
        source, path = Path(place, "pages.jsonl"), Path(place, "engine")
        source.write_text("".join(f"{json.dumps(page)}\n" for page in pages), "utf-8")
        printed("index", source, "--index", "pages", "--engine", path, "--workers", "1", "--preset", "once")
        with closing(open_engine(path, search_canonicalizer(make_scheme("once")))) as engine:
            return dict(_answers(engine, pages))


def _part(pages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(pages) < _SMALL:
        return pages
    kept = set(sorted({page["family"] for page in pages})[::_EACH])
    return [page for page in pages if page["family"] in kept]


def _answers(engine: Engine, pages: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    search = FoldedSearch(
        engine, make_scheme("once"), Settings().field, tiebreaker=engine.tiebreaker(), cursor_key=b"golden"
    )
    step = len(pages) // QUERIES
    for number, (name, way) in zip(range(QUERIES), cycle(WAYS.items())):
        # Any word of a title finds most of a manual, all of them find its neighbours.
        operator = "or" if number // len(WAYS) % 2 else "and"
        body = _request(pages[number * step]["title"], operator, **way)
        one_page = "cursor" not in body["ext"]["dedup"]
        answers = iter([search.search("pages", body)]) if one_page else search.pages("pages", body)
        yield f"{number}: {name}", [_told(answer) for answer in islice(answers, 3)]


def _request(title: str, operator: str, ext: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
    body = {
        "query": {"multi_match": {"query": title, "fields": ["title^2", "body"], "operator": operator}},
        "size": 10,
        "sort": _BY_SCORE,
        "_source": False,
    }
    return {**body, **given, "ext": {"dedup": ext or {}}}


def _told(answer: dict[str, Any]) -> list[Any]:
    hits = answer["hits"]["hits"]
    shown = [[hit["_id"], *_members(hit)] for hit in hits]
    return [*(answer["dedup"][name] for name in COUNTERS), len(shown), digest(shown)]


def _members(hit: dict[str, Any]) -> list[Any]:
    told = hit["inner_hits"]["duplicates"]["hits"]
    return [told["total"], [member["_id"] for member in told["hits"]]]
