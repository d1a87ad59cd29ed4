"""Gates before an index with replicas, of which nodes are killed: one of each class is let in."""

import threading
import time
import uuid
from contextlib import closing
from dataclasses import replace

import pytest
from support.gate.copies import near_copies
from support.gate.crashes import Trial, make_pipeline

from shinglefold.engines import Connection, open_engine
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.intent_index import intents_name
from shinglefold.ingest.index_mapping import ensure_index

WRITERS = 4


@pytest.fixture(scope="module")
def gate_pipeline():
    return make_pipeline()


@pytest.fixture
def replicated(whole, admin, gate_pipeline):
    """Make an index of three shards, each on two nodes, with a gate's own beside it."""
    made = []

    def make(replication="DOCUMENT"):
        name = f"gate-{uuid.uuid4().hex[:8]}"
        settings = {"number_of_shards": 3, "number_of_replicas": 1}
        if whole.kind.product == "opensearch":
            settings["replication.type"] = replication
        recipe = replace(gate_pipeline.recipe(), groups=True)
        ensure_index(admin, name, recipe, settings={"index": settings})
        made.append(name)
        Gate(admin, name, pipeline=gate_pipeline).close()
        whole.wait_until_whole()
        return name

    yield make
    for name in made:
        for one in (name, intents_name(name)):
            admin.delete_index(one)


def _holders(cluster, index):
    """Return who has primaries of the index, who has that of the intents, and who is elected."""
    yield lambda: cluster.primary(index)
    yield lambda: cluster.primary(intents_name(index))
    yield cluster.elected


def _striking(cluster, index):
    """Return what kills one of these after the other, each once all copies are in place again."""
    roles = iter([*_holders(cluster, index)] * 9)

    def strike():
        cluster.wait_until_whole()
        node = next(roles)()
        node.kill()
        node.start(wait=False)

    return strike


@pytest.mark.parametrize(
    ("policy", "replication", "strikes"),
    [(Policy("refuse"), "DOCUMENT", 2), (Policy("cap", most=2), "SEGMENT", 1)],
    ids=["refuse", "cap, segments replicated"],
)
def test_writers_and_nodes_are_killed(whole, replicated, gate_pipeline, policy, replication, strikes):
    index = replicated(replication)
    trial = Trial(
        lambda: open_engine(Connection(whole.urls, product=whole.kind.product)),
        index,
        gate_pipeline,
        policy,
        seed=3,
        classes=20,
        copies=8,
        writers=WRITERS,
        kills=3,
        strike=_striking(whole, index),
        strikes=strikes,
    )
    assert trial.run() == {str(number): policy.most for number in range(trial.classes)}


@pytest.mark.parametrize(
    "role", [pytest.param(0, marks=pytest.mark.every_cluster), 2], ids=["primary", "elected"]
)
def test_a_gate_goes_on_when_a_node_is_lost(whole, replicated, admin, gate_pipeline, role):
    """No caller hears of it: what the gate asked is asked again."""
    index = replicated()
    documents = near_copies(gate_pipeline, 15, 8, role)
    told, failed = [], []

    def write(share):
        with closing(open_engine(Connection(whole.urls, product=whole.kind.product))) as engine:
            try:
                with Gate(engine, index, pipeline=gate_pipeline) as gate:
                    for begin in range(0, len(share), 3):
                        told.extend(gate.add_all(share[begin : begin + 3]))
            except Exception as error:
                failed.append(error)

    threads = [threading.Thread(target=write, args=(documents[at::WRITERS],)) for at in range(WRITERS)]
    for thread in threads:
        thread.start()
    while len(told) < 12:
        time.sleep(0.01)
    node = [*_holders(whole, index)][role]()
    node.kill()
    assert len(told) < len(documents)
    for thread in threads:
        thread.join()
    node.start(wait=False)
    assert not failed
    assert len(told) == len(documents)
    accepted = sorted(one.id.split("-")[0] for one in told if one.status == "accepted")
    assert accepted == sorted(map(str, range(15)))
    admin.refresh(index)
    hits = admin.search(index, {"size": 1000, "_source": False})["hits"]["hits"]
    assert {hit["_id"] for hit in hits} == {one.id for one in told if one.status == "accepted"}


def test_copies_made_while_gates_decide_show_what_was_let_in(whole, replicated, admin, gate_pipeline):
    """Replicas are added and taken away while two gates let copies in by turns."""
    index = replicated()
    documents = near_copies(gate_pipeline, 12, 6, 5)
    with Gate(admin, index, pipeline=gate_pipeline) as one, Gate(admin, index, pipeline=gate_pipeline) as two:
        told = []
        for number, document in enumerate(documents):
            if number % 18 == 0:
                body = {"index": {"number_of_replicas": (0, 1, 2, 1)[number // 18 % 4]}}
                whole.ask("PUT", f"/{index}/_settings", body)
            told += (one, two)[number % 2].add_all([document])
            time.sleep(0.05)
    accepted = sorted(verdict.id.split("-")[0] for verdict in told if verdict.status == "accepted")
    assert accepted == sorted(map(str, range(12)))
