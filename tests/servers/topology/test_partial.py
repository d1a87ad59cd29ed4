"""Where partial answers are not allowed, one that comes all the same is an error, whatever was asked."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from support.hits import SCHEME, Spec, fingerprint_of
from support.servers.faulty import FINE, PARTIAL, Relay, relay
from support.topologies import Place, laid_out
from support.ways import WAYS

from shinglefold.engines import open_engine
from shinglefold.errors import EngineUnavailable
from shinglefold.ingest import mappings
from shinglefold.registry import references
from shinglefold.rerank import FoldedSearch

pytestmark = pytest.mark.newest

COUNT = 60
#: Passages are of texts in a language.
READABLE = replace(SCHEME, languages=references(["any"]))


@pytest.fixture(scope="module", params=["one_shard", "five_shards"])
def place(request, engine, server) -> Iterator[Place]:
    made = mappings(READABLE)
    made["properties"] |= {"number": {"type": "integer"}, "body": {"type": "text"}}
    documents = [
        {
            "number": number,
            "body": f"text {number % 20}",
            # Equal texts of two shards may make a page be read again, and its first answer count for nothing.
            "_dedup": fingerprint_of(
                Spec(original=number % 20, digest=str(number), scheme=READABLE.id)
            ).to_field(),
        }
        for number in range(COUNT)
    ]
    with laid_out(request.param, engine, server, documents, made) as laid:
        yield laid


@pytest.fixture
def spoilt(server) -> Iterator[Relay]:
    """A relay before the server, through which searches go."""
    with relay(server.url, "search") as made:
        yield made


@pytest.fixture
def folded(spoilt) -> Iterator[FoldedSearch]:
    with closing(open_engine(spoilt.url)) as engine:
        yield FoldedSearch(engine, READABLE, tiebreaker=engine.tiebreaker())


@pytest.mark.parametrize("name", WAYS)
def test_whichever_answer_is_partial_it_is_an_error_or_is_told(place, spoilt, folded, name):
    way = WAYS[name]
    assert "partial" not in way(folded, place.target, allow_partial_search_results=False)["dedup"]
    before = spoilt.asked
    way(folded, place.target, allow_partial_search_results=False)
    for request in range(spoilt.asked - before):
        spoilt.faults = [*[FINE] * request, PARTIAL]
        with pytest.raises(EngineUnavailable, match="not all shards answered"):
            way(folded, place.target, allow_partial_search_results="false")
        assert not spoilt.faults
        spoilt.faults = [*[FINE] * request, PARTIAL]
        told = way(folded, place.target)["dedup"]
        spoilt.faults = []
        assert told["partial"] == {"failed_shards": 1}, request
        assert told["groups_total"]["relation"] != "eq", request
