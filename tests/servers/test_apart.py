"""The servers that stand apart are what the tests about them need."""

from contextlib import closing

from support.maintenance import FIELDS, pages
from support.topologies import laid_out

from shinglefold.engines import Connection, open_engine

VECTORS = {
    "properties": {
        "v": {"type": "knn_vector", "dimension": 2, "method": {"name": "hnsw", "engine": "lucene"}}
    }
}


def test_the_nearest_vectors_are_found(knn):
    with closing(open_engine(knn.url)) as engine:
        engine.create_index("apart-vectors", VECTORS, {"index.knn": True})
        engine.bulk({"_index": "apart-vectors", "_id": str(n), "_source": {"v": [n, 1]}} for n in range(9))
        engine.refresh("apart-vectors")
        nearest = {"query": {"knn": {"v": {"vector": [7, 1], "k": 3}}}}
        hits = engine.search("apart-vectors", nearest)["hits"]["hits"]
        engine.delete_index("apart-vectors")
    assert hits[0]["_id"] == "7"
    assert {hit["_id"] for hit in hits} == {"6", "7", "8"}


def test_a_cluster_loses_and_regains_a_node(cluster):
    with (
        closing(open_engine(Connection(cluster.urls))) as engine,
        laid_out("replicas", engine, cluster, pages(30), {"properties": FIELDS}) as place,
    ):
        primary = cluster.primary(place.target)
        assert cluster.elected() in cluster.nodes
        primary.kill()
        assert not primary.runs
        cluster.wait_until_whole()
        hits = engine.search(place.target, {"size": 100})["hits"]["hits"]
        assert sorted(map(place.number, hits)) == list(range(30))
