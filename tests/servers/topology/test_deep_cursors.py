"""Cursors far down, where many hits are equal and stand in different shards: no group comes again."""

import pytest
from support.hits import SCHEME, Spec, fingerprint_of
from support.topologies import laid_out

from shinglefold.ingest import mappings
from shinglefold.rerank import FoldedSearch, FoldOptions

COUNT, TEXTS = 480, 240


def documents():
    """Pairs of copies in every shard, with one value to sort by; some have none."""
    stored = [fingerprint_of(Spec(original=number)).to_field() for number in range(TEXTS)]
    return [
        {"number": number, "_dedup": stored[number % TEXTS], **({"price": 7} if number % 5 else {})}
        for number in range(COUNT)
    ]


@pytest.mark.parametrize("topology", ["five_shards", "three_indices"])
def test_among_equal_hits_of_several_shards_no_group_comes_again(engine, server, topology):
    made = mappings(SCHEME)
    made["properties"] |= {"number": {"type": "integer"}, "price": {"type": "integer"}}
    folded = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())
    with laid_out(topology, engine, server, documents(), made) as place:
        for window, policies in ((200, []), (7, []), (200, ["longest"])):
            options = FoldOptions.parse({"window": window, "representative": policies})
            body = {"size": 13, "sort": [{"price": "asc"}], "_source": False}
            shown = [
                place.number(hit)
                for page in folded.pages(place.target, body, options)
                for hit in page["hits"]["hits"]
            ]
            assert sorted(number % TEXTS for number in shown) == list(range(TEXTS)), (window, policies)
