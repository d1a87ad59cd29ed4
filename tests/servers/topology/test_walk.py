"""A walk in whole runs meets every document once: on every layout, in any order, on every server."""

import pytest
from support.topologies import NAMES, laid_out, ranked

from shinglefold.rerank.request.bodies import SEQ_NO, complete_tie_groups

COUNT = 120
#: What the walk is sorted by before ties are settled; every fourth document has no rank.
ORDERS = (
    [],
    [{"_score": "desc"}],
    [{"rank": {"order": "asc", "missing": "_last"}}],
    [{"rank": {"order": "desc", "missing": "_last"}}],
    [{"rank": {"order": "asc", "missing": "_first"}}],
)
PROPERTIES = {"properties": {"number": {"type": "integer"}}}


def walk(engine, index, body, size, pit):
    """Yield all hits, never more than so many at a time taken."""
    after = {}
    while True:
        wanted, count = size, 0
        while not count:
            window = {**body, **after, "size": wanted + 1, "track_total_hits": False}
            answer = engine.search(None if pit else index, window)
            hits = answer["hits"]["hits"]
            count = complete_tie_groups(hits, wanted)
            if len(hits) <= wanted:
                yield from hits
                return
            wanted *= 2
        yield from hits[:count]
        after = {"search_after": hits[count - 1]["sort"]}


@pytest.mark.parametrize("topology", NAMES)
def test_every_document_is_met_once(engine, server, topology):
    documents = ranked([{"number": number} for number in range(COUNT)])
    with laid_out(topology, engine, server, documents, PROPERTIES) as place:
        pit = engine.open_pit(place.target)
        for keys in ORDERS:
            body = {"query": {"match_all": {}}, "sort": [*keys, {SEQ_NO: "asc"}]}
            for more in ({}, {"pit": {"id": pit, "keep_alive": "1m"}}):
                for size in (13, 50):
                    met = [place.number(hit) for hit in walk(engine, place.target, body | more, size, more)]
                    assert sorted(met) == list(range(COUNT)), (keys, size, bool(more))
        engine.close_pit(pit)
