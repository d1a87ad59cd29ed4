"""The layouts that the matrix of tests stands on are what they say, on every server."""

import pytest
from support.maintenance import FIELDS, pages
from support.topologies import NAMES, laid_out, ranked

from shinglefold.engines.embedded import EmbeddedEngine

COUNT = 60


@pytest.mark.parametrize("topology", NAMES)
def test_a_layout_shows_every_document_once_and_no_other(engine, server, topology):
    documents = ranked(pages(COUNT))
    with laid_out(topology, engine, server, documents, {"properties": FIELDS}) as place:
        hits = engine.search(place.target, {"size": 1000})["hits"]["hits"]
        assert sorted(map(place.number, hits)) == list(range(COUNT))
        for hit in hits:
            assert hit["_source"]["id"] == documents[place.number(hit)]["id"]
        hits = engine.search(place.target, {"query": {"exists": {"field": "rank"}}, "size": 0})["hits"]
        assert hits["total"]["value"] == COUNT * 3 // 4
        indices = place.indices
    assert not any(map(engine.index_exists, indices))


@pytest.mark.parametrize("topology", ["three_indices", "equal_ids_under_routing", "data_stream"])
def test_three_documents_share_an_id(engine, server, topology):
    with laid_out(topology, engine, server, pages(COUNT), {"properties": FIELDS}) as place:
        assert len({identity.id for identity in place.identities}) == COUNT // 3
        place.engine.bulk([place.action(7, _op_type="delete")])
        place.engine.refresh(place.target)
        left = engine.search(place.target, {"size": 1000})["hits"]["hits"]
        assert sorted(map(place.number, left)) == [n for n in range(COUNT) if n != 7]


def test_the_embedded_engine_has_one_shard(tmp_path, canonicalizer):
    with (
        EmbeddedEngine(tmp_path / "site", canonicalizer) as engine,
        laid_out("one_shard", engine, None, pages(COUNT), {"properties": FIELDS}) as place,
    ):
        hits = engine.search(place.target, {"size": 1000})["hits"]["hits"]
        assert sorted(map(place.number, hits)) == list(range(COUNT))
