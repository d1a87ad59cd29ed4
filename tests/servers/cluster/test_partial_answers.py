"""A node is down, and nobody has a copy of its shards: what lacks them says so, or is an error."""

import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest
from support.servers.admin import until
from support.servers.cluster import Cluster
from support.ways import WAYS

from shinglefold.contracts.engine import Engine
from shinglefold.engines import Connection, open_engine
from shinglefold.errors import EngineError
from shinglefold.ingest import index_documents, mappings
from shinglefold.maintenance import BackfillOptions, backfill
from shinglefold.maintenance.scan import Scan
from shinglefold.rerank import FoldedSearch
from shinglefold.runtime.backoff import Backoff

#: The index has as many shards as there are nodes, each one once.
SHARDS = 3
AT_ONCE = Backoff(retries=1, first=0.1)


@pytest.fixture(scope="module")
def torn(cluster: Cluster, scheme, pipeline, documents) -> Iterator[tuple[Engine, str]]:
    """An index of which one shard is nowhere, and an engine that asks the nodes which are left."""
    cluster.wait_until_whole()
    name = f"shinglefold-torn-{uuid.uuid4().hex[:12]}"
    made = mappings(scheme)
    made["properties"] |= {"number": {"type": "integer"}, "body": {"type": "text"}, "id": {"type": "keyword"}}
    whole = [
        {**page, "id": f"{page['id']}-{copy}", "number": number}
        for number, page in enumerate(documents[:60])
        for copy in range(2)
    ]
    with closing(open_engine(Connection(cluster.urls))) as admin:
        admin.create_index(name, made, {"number_of_shards": SHARDS, "number_of_replicas": 0})
        cluster.wait_until_whole()
        index_documents(admin, name, whole, pipeline, workers=1)
    holders = [cluster.primary(name, shard) for shard in range(SHARDS)]
    lost = next(node for node in holders if node is not cluster.elected())
    left = tuple(node.url for node in cluster.nodes if node is not lost)
    lost.kill()
    until(lambda: len(cluster.ask("GET", "/_cat/nodes?format=json")) == len(left))
    with closing(open_engine(Connection(left, timeout=5))) as engine:
        yield engine, name
    cluster.wait_until_whole()
    cluster.ask("DELETE", f"/{name}")


@pytest.mark.parametrize("name", WAYS)
def test_an_answer_that_lacks_a_shard_says_so_or_is_an_error(torn, scheme, name):
    engine, index = torn
    folded = FoldedSearch(engine, scheme, tiebreaker=engine.tiebreaker())
    told = WAYS[name](folded, index)["dedup"]
    assert told["partial"] == {"failed_shards": 1}
    assert told["groups_total"]["relation"] != "eq"
    with pytest.raises(EngineError):
        WAYS[name](folded, index, allow_partial_search_results=False)


def test_a_scan_never_passes_a_shard_over(torn, pipeline):
    engine, index = torn
    with pytest.raises(EngineError):
        Scan(engine, index, backoff=AT_ONCE).start()
    summary = backfill(engine, index, pipeline, BackfillOptions(workers=1, backoff=AT_ONCE))
    assert summary.stopped
