"""Folding after scores of the request's own: scripts, functions, rescoring, and what retrieves for fusion.

Scores by distance stand for nearest neighbours on servers without vectors. Neither zip has what fuses lists
by their ranks: hybrid queries are a plugin of OpenSearch that needs modules its zip lacks, and ``rrf`` is a
module of Elasticsearch that its zip lacks, whatever the licence. Those tests run where a server has it.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.maintenance import put

from shinglefold.contracts.engine import JSON
from shinglefold.errors import UnsupportedQuery
from shinglefold.ingest import Fingerprinter, mappings
from shinglefold.rerank import FoldedSearch, FoldOptions, collapse, duplicates

GROUPS, COPIES = 30, 4
DOCUMENTS = GROUPS * COPIES
_DISTANCE = {"source": "1.0 / (1 + Math.abs(doc['n'].value - params.at))", "params": {"at": 0}}
_DECAY = {"linear": {"n": {"origin": 0, "scale": 10 * DOCUMENTS}}}
_BACKWARDS = {"function_score": {"linear": {"n": {"origin": DOCUMENTS, "scale": DOCUMENTS}}}}
_RANKED = {"standard": {"query": {"function_score": _DECAY}}}
BODIES: dict[str, JSON] = {
    "script": {"query": {"script_score": {"query": {"match_all": {}}, "script": _DISTANCE}}},
    "function": {"query": {"function_score": _DECAY}},
    "rescored": {
        "query": {"function_score": _DECAY},
        "rescore": {"window_size": 9, "query": {"rescore_query": _BACKWARDS, "rescore_query_weight": 5}},
    },
    "retriever": {"retriever": _RANKED},
    "fused": {
        "retriever": {"rrf": {"retrievers": [_RANKED, {"standard": {"query": _BACKWARDS}}]}},
    },
}


@pytest.fixture(scope="module")
def index(engine, scheme, canonicalizer) -> Iterator[str]:
    """Groups of copies next to each other on a line, over three shards."""
    name = "shinglefold-test-scored"
    if engine.index_exists(name):
        engine.delete_index(name)
    made = mappings(scheme)
    made["properties"] |= {"n": {"type": "integer"}}
    engine.create_index(name, made, {"number_of_shards": 3, "number_of_replicas": 0})
    rng = random.Random(3)
    texts = [" ".join(rng.choices("abcdefghijklmnopqrst", k=60)) for _ in range(GROUPS)]
    prints = Fingerprinter(scheme, canonicalizer).fingerprint(texts)
    put(engine, name, {str(n): {"n": n, "_dedup": prints[n // COPIES].to_field()} for n in range(DOCUMENTS)})
    yield name
    engine.delete_index(name)


@pytest.fixture(params=BODIES)
def body(request, engine, index) -> JSON:
    """A search the server can do."""
    try:
        engine.search(index, {**BODIES[request.param], "size": 1})
    except UnsupportedQuery as error:
        if request.param in ("function", "rescored"):
            raise
        pytest.skip(f"this server was built without it: {error}")
    return BODIES[request.param]


@pytest.fixture
def folded(engine, scheme, index) -> Callable[..., JSON]:
    search = FoldedSearch(engine, scheme, tiebreaker=engine.tiebreaker())

    def fold(body: JSON, size: int, **more: Any) -> JSON:
        options = FoldOptions(members=9, window=20)
        return search.search(index, {**body, "size": size, "_source": ["n"], **more}, options)

    return fold


def groups_of(answer: JSON) -> list[int]:
    return [hit["_source"]["n"] // COPIES for hit in answer["hits"]["hits"]]


def complete(engine, index, body) -> list[JSON]:
    """All hits in the engine's own order."""
    hits: list[JSON] = engine.search(index, {**body, "size": DOCUMENTS})["hits"]["hits"]
    assert len(hits) == DOCUMENTS
    return hits


@pytest.mark.parametrize("size", [2, 8, 25])
def test_a_page_is_full_in_the_engines_order_with_its_members_and_totals(
    engine, index, scheme, folded, body, size
):
    native = complete(engine, index, body)
    expected = [native[group.representative] for group in collapse(native, scheme).groups]
    found = folded(body, size)
    assert [hit["_id"] for hit in found["hits"]["hits"]] == [hit["_id"] for hit in expected[:size]]
    assert found["dedup"]["stopped_by"] == "page_full"
    assert found["hits"]["total"]["value"] == DOCUMENTS
    for hit, best in zip(found["hits"]["hits"], expected, strict=False):
        assert hit["_score"] == pytest.approx(best["_score"])
        own = {one["_source"]["n"] // COPIES for one in [hit, *duplicates(hit)]}
        assert len(own) == 1
    last = folded(body, GROUPS + 5)
    assert last["dedup"]["groups_total"] == {"value": GROUPS, "relation": "eq"}
    assert [len(duplicates(hit)) for hit in last["hits"]["hits"]] == [COPIES - 1] * GROUPS


def test_pages_follow_each_other(engine, index, scheme, folded, body):
    native = complete(engine, index, body)
    expected = [native[group.representative]["_id"] for group in collapse(native, scheme).groups]
    shown = [
        hit["_id"]
        for start in range(0, GROUPS, 7)
        for hit in folded(body, 7, **{"from": start})["hits"]["hits"]
    ]
    assert shown == expected


def test_scores_of_the_request_are_walked_by_a_cursor(engine, index, scheme, folded, body):
    if "rescore" in body or "retriever" in body:
        pytest.skip("what is ranked again, or retrieved, can't be read on from a hit")
    search = FoldedSearch(engine, scheme, tiebreaker=engine.tiebreaker())
    pages = search.pages(index, {**body, "size": 7, "_source": ["n"]}, FoldOptions(window=20))
    assert [group for page in pages for group in groups_of(page)] == list(range(GROUPS))
