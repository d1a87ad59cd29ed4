"""Blocks end where hits differ in their sort values, however many of them are asked for at a time."""

import random

import pytest
from support.hits import SCHEME, Spec, hits_of

from shinglefold.rerank import FoldOptions
from shinglefold.rerank.page.window import WindowReader
from shinglefold.rerank.request.fold_options import SearchRequest

_COUNT, _WINDOW = 120, 10


def _hits(seed):
    """Hits of which up to eight follow each other that are equal in what they are sorted by."""
    chance = random.Random(seed)
    hits = hits_of([Spec(original=number) for number in range(_COUNT)])
    keys = [key for key in range(_COUNT) for _ in range(chance.randint(1, 8))]
    for hit, key in zip(hits, keys, strict=False):
        hit["sort"] = [key]
    return hits


def _borders(hits, most):
    """Read all hits, at most so many at a time, and return where the block of each begins."""
    body = {"query": {"match_all": {}}, "sort": ["key"], "size": _COUNT + 1}
    request = SearchRequest("pages", body, FoldOptions(window=_WINDOW))
    reading = WindowReader(request, SCHEME, "_dedup", tie="_seq_no", most=most)
    steps = reading.read_on()
    answer = None
    while True:
        try:
            call = steps.send(answer)
        except StopIteration:
            assert len(reading.hits) == _COUNT
            return [reading.block_start(place) for place in range(_COUNT)]
        _, asked = call.arguments
        after = asked.get("search_after", [-1])
        found = [hit for hit in hits if hit["sort"] > after][: asked["size"]]
        total = {"value": len(hits), "relation": "eq"}
        answer = {"hits": {"total": total, "hits": found}, "_shards": {"total": 2, "failed": 0}}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [9, 11, 16, 25, 9_999])
def test_where_blocks_end_depends_on_the_hits_alone(seed, most):
    hits = _hits(seed)
    borders = _borders(hits, most)
    expected, begin = [], 0
    while begin < _COUNT:
        end = min(begin + _WINDOW, _COUNT)
        while end < _COUNT and hits[end]["sort"] == hits[end - 1]["sort"]:
            end -= 1
        expected += [begin] * (end - begin)
        begin = end
    assert borders == expected
