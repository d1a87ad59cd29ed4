"""While a cluster gets the plugin node by node, searches fold where they can, and fail nowhere else."""

from collections.abc import Iterator
from urllib.error import HTTPError

import pytest
from support.hits import SCHEME
from support.plugin_trials import by_plugin, comparable, documents, indexed
from support.servers.cluster import Cluster
from support.servers.kinds import kind
from support.servers.local import minimal

from shinglefold.contracts.engine import JSON
from shinglefold.engines import open_engine
from shinglefold.rerank import FoldedSearch, FoldOptions

_BODY: JSON = {"query": {"match": {"body": "a"}}, "size": 5}
#: The shards of an index, and the node that they are on: the first alone has the plugin.
PLACES: dict[str, tuple[int, str | None]] = {
    "one with the plugin": (1, "node-0"),
    "one without it": (1, "node-1"),
    "both": (5, None),
}


@pytest.fixture(scope="module")
def cluster(apart) -> Iterator[Cluster]:
    def make() -> Cluster:
        return Cluster(*(minimal(kind(name)) for name in ("opensearch-plugin", "opensearch-3")))

    # Another test's server may have the name.
    apart.stop()
    made: Cluster = apart.running("opensearch-plugin", make)
    yield made
    apart.stop()


@pytest.mark.parametrize("options", [{}, {"min_shared": 1}])
@pytest.mark.parametrize("place", PLACES)
def test_a_search_folds_on_the_nodes_that_have_the_plugin(cluster, place, options):
    shards, node = PLACES[place]
    settings = {"number_of_shards": shards, "routing.allocation.require._name": node}
    name = "shinglefold-test-mixed"
    with_plugin, without = cluster.urls
    with (
        open_engine(with_plugin) as engine,
        open_engine(without) as other,
        indexed(engine, name, documents(), **settings),
    ):
        body = {**_BODY, "ext": {"dedup": options}}
        expected = FoldedSearch(engine, SCHEME).search(name, body)
        found = by_plugin(with_plugin, name, body)
        assert (found["dedup"]["mode"], found["_shards"]["failed"]) == ("server", 0)
        assert comparable(found) == comparable(expected)
        with pytest.raises(HTTPError, match="400"):
            by_plugin(without, name, body)
        auto = FoldedSearch(other, SCHEME).search(name, body, FoldOptions(mode="auto", **options))
        assert "has no plugin" in auto["dedup"]["mode_reason"]
        assert comparable(auto) == comparable(expected)
