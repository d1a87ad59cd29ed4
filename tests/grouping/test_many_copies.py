"""A gate and many copies of one text: it reads a few, and still overlooks none that decides."""

from dataclasses import replace

import pytest
from support.maintenance import put

from shinglefold.grouping import Gate, Policy
from shinglefold.grouping import candidate_search as lookup
from shinglefold.grouping.gate.protocol import decide


@pytest.fixture
def stored(engine, pipeline, text, monkeypatch):
    """Return a function that stores copies past every gate, and count the documents that gates read."""
    read = []
    read_documents = decide.read_documents

    def counted(ids):
        wanted = set(ids)
        read.append(len(wanted))
        return (yield from read_documents(wanted))

    monkeypatch.setattr(decide, "read_documents", counted)

    def store(count, kind="a", **parts):
        (outcome,) = pipeline.run_block([{"_id": "x", "body": text(kind, 1)}])
        dedup = outcome.document["_dedup"] | parts
        source = {"body": text(kind, 1), "_dedup": dedup}
        put(engine, "texts", {f"{kind}{at}": {**source, "host": f"h{at}"} for at in range(count)})

    store.read = read
    return store


def _deletions(ids):
    return [{"_op_type": "delete", "_index": "texts", "_id": id_} for id_ in ids]


def _verdicts(engine, pipeline, documents, **policy):
    with Gate(engine, "texts", Policy(**policy), pipeline=pipeline) as gate:
        return gate.add_all(documents)


@pytest.mark.parametrize("policy", [{"action": "refuse"}, {"action": "tag"}, {"action": "cap", "most": 1000}])
def test_few_of_a_large_group_are_read(engine, pipeline, text, stored, policy):
    (first,) = _verdicts(engine, pipeline, [{"id": "lead", "body": text("a")}], action="tag")
    stored(300, group=first.group, leader=False)
    del stored.read[:]
    (told,) = _verdicts(engine, pipeline, [{"id": "new", "body": text("a", 2)}], **policy)
    assert told.status == ("refused" if policy["action"] == "refuse" else "accepted")
    assert told.group == first.group
    assert sum(stored.read) < 100


def _meanwhile(gate, *actions):
    """Run actions after each search of a gate, so that its results are outdated."""
    held = gate._group_commit._store.documents.lookup
    before = held.find_candidates

    def stale(*asked):
        found = yield from before(*asked)
        assert not gate.engine.bulk(actions).failures
        return found

    held.find_candidates = stale


@pytest.mark.parametrize("action", ["refuse", "tag"])
def test_the_last_copy_that_still_exists_decides(engine, pipeline, text, stored, action):
    with Gate(engine, "texts", Policy(action), pipeline=pipeline) as gate:
        stored(300, group=7, leader=False)
        gate.add_all([{"id": "other", "body": text("b")}])
        _meanwhile(gate, *_deletions([f"a{at}" for at in range(299)]))
        (told,) = gate.add_all([{"id": "new", "body": text("a", 2)}])
    assert (told.status, told.leads) == (("refused" if action == "refuse" else "accepted"), False)
    assert told.group == (7 if action == "tag" else told.group)


def test_a_leader_that_searches_show_as_a_follower_is_found(engine, pipeline, text, stored):
    leads = {"_op_type": "update", "_index": "texts", "_id": "a299", "doc": {"_dedup": {"leader": True}}}
    with Gate(engine, "texts", Policy("tag"), pipeline=pipeline) as gate:
        stored(300, group=7, leader=False)
        gate.add_all([{"id": "other", "body": text("b")}])
        _meanwhile(gate, leads)
        (told,) = gate.add_all([{"id": "new", "body": text("a", 2)}])
    assert (told.group, told.leads) == (7, False)


def test_places_are_counted_where_a_group_is_almost_full(engine, pipeline, text, stored):
    (first,) = _verdicts(engine, pipeline, [{"id": "lead", "body": text("a")}], action="tag")
    stored(97, group=first.group, leader=False)
    given = [{"id": f"n{at}", "body": text("a", 2 + at)} for at in range(4)]
    told = _verdicts(engine, pipeline, given, action="cap", most=100)
    assert [one.status for one in told] == ["accepted", "accepted", "refused", "refused"]
    assert not engine.bulk(_deletions(["a0"])).failures
    (again,) = _verdicts(engine, pipeline, [{"id": "late", "body": text("a", 3)}], action="cap", most=100)
    assert again.status == "accepted"


@pytest.mark.parametrize(("count", "status"), [(98, "accepted"), (99, "refused")])
@pytest.mark.parametrize("led", [0, 1])
def test_many_copies_without_a_number_take_places(engine, pipeline, text, stored, count, status, led):
    with Gate(engine, "texts", Policy("cap", most=99), pipeline=pipeline) as gate:
        gate.add_all([{"id": "lead", "body": text("a")}] * led)
        stored(count - led)
        (told,) = gate.add_all([{"id": "new", "body": text("a", 2)}])
    assert told.status == status


def test_scope_values_separate_many_copies(engine, pipeline, text, stored):
    stored(300)
    given = [{"id": f"n{at}", "body": text("a", 2), "host": host} for at, host in enumerate(("h299", "new"))]
    told = _verdicts(engine, pipeline, given, action="refuse", scope=("host",))
    assert [one.status for one in told] == ["refused", "accepted"]
    assert replace(told[0].like, guard=None).id == "a299"


def test_copies_in_a_scope_are_found_among_many_outside(engine, pipeline, text, stored, monkeypatch):
    monkeypatch.setattr(lookup, "_MANY", 100)
    stored(300)
    given = [{"id": f"n{at}", "body": text("a", 2), "host": host} for at, host in enumerate(("h7", "h299"))]
    told = _verdicts(engine, pipeline, given, action="refuse", scope=("host",))
    assert [one.like.id for one in told] == ["a7", "a299"]
