"""What an address says of a search belongs to it: its cursor stays with it, and routing tells hits apart."""

import pytest
from support.hits import SCHEME, Spec, fingerprint_of
from support.topologies import laid_out

from shinglefold.errors import ConfigError
from shinglefold.ingest import mappings
from shinglefold.rerank import FoldedSearch, FoldOptions, duplicates

pytestmark = pytest.mark.newest

COUNT = 60


def properties():
    made = mappings(SCHEME)
    made["properties"] |= {"number": {"type": "integer"}}
    return made


def document(number, original):
    return {"number": number, "_dedup": fingerprint_of(Spec(original=original)).to_field()}


@pytest.fixture
def folded(engine):
    return FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())


def test_a_cursor_goes_on_under_the_address_it_was_made_under_and_no_other(engine, server, folded):
    documents = [document(number, number) for number in range(COUNT)]
    with laid_out("equal_ids_under_routing", engine, server, documents, properties()) as place:
        one, other = sorted({identity.routing for identity in place.identities})[:2]
        body = {"size": 5, "sort": [{"number": "asc"}]}
        first = folded.search(place.target, body, FoldOptions(cursor=True), routing=one)
        go_on = FoldOptions(cursor=first["dedup"]["cursor"])
        for address in ({"routing": other}, {}, {"routing": one, "preference": "_local"}):
            with pytest.raises(ConfigError, match="belongs to another search"):
                folded.search(place.target, body, go_on, **address)
        # What changes nothing about the hits may be said of one page and not of the next.
        second = folded.search(place.target, body, go_on, routing=one, request_cache=False)
        shown = [place.number(hit) for page in (first, second) for hit in page["hits"]["hits"]]
        own = [number for number, identity in enumerate(place.identities) if identity.routing == one]
        assert shown == own[:10]


@pytest.mark.parametrize("more", [{}, {"explain": True}, {"min_shared": 1}])
def test_a_document_without_routing_is_not_its_namesake_with_one(engine, folded, new_index, more):
    index = new_index(properties(), {"number_of_shards": 5})
    # Among so many routings some lead to other shards than the id alone does.
    routings = [f"r{number}" for number in range(20)]
    actions = [{"_index": index, "_id": "d", "_source": document(0, 0)}]
    actions += [
        {"_index": index, "_id": "d", "_routing": routing, "_source": document(number, number)}
        for number, routing in enumerate(routings, 1)
    ]
    for action in reversed(actions):
        assert not engine.bulk([action]).failures
    engine.refresh(index)
    options = FoldOptions.parse(
        {"inner_hits": {"name": "own", "size": 9, "sort": [{"number": "desc"}]}, **more}
    )
    answer = folded.search(index, {"size": 50, "sort": [{"number": "asc"}]}, options)
    hits = answer["hits"]["hits"]
    assert (len(hits) > 1, answer["dedup"]["vanished"]) == (True, 0)
    assert "_routing" not in hits[0]
    for hit in hits:
        assert duplicates(hit) == []
        inner = hit["inner_hits"]["own"]["hits"]["hits"]
        assert [one["_source"]["number"] for one in inner] == [hit["_source"]["number"]]
