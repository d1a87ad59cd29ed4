"""A gate on an embedded index sees documents that are not committed yet."""

import threading

import pytest

from shinglefold.engines.embedded.store import writer
from shinglefold.engines.embedded.store.write_ahead_log import WriteAheadLog
from shinglefold.errors import IndexReadOnly, Refused
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.gate.protocol.pending_document import numbers_of
from shinglefold.model.values import Fingerprint


@pytest.fixture(autouse=True)
def late(monkeypatch):
    """Commit only on request."""
    monkeypatch.setattr(writer, "_AGE", 1e9)


@pytest.fixture
def held(engine):
    """Hold the lease of the index, as a busy gate does."""
    with engine.lease("texts"):
        yield engine


def _gate(engine, pipeline, *options, **more):
    return Gate(engine, "texts", Policy(*options, **more), pipeline=pipeline)


def _seen(engine):
    return {hit["_id"] for hit in engine.search("texts", {"size": 100})["hits"]["hits"]}


def test_copies_of_uncommitted_documents_of_another_gate_are_refused(held, pipeline, text):
    one, other = (_gate(held, pipeline) for _ in range(2))
    assert one.add({"id": "first", "body": text("a")}).status == "accepted"
    assert one.add({"id": "short", "body": "three short words"}).status == "accepted"
    with pytest.raises(Refused, match="resembles 'first'"):
        other.add({"id": "second", "body": text("a", 2)})
    with pytest.raises(Refused, match="resembles 'short'"):
        other.add({"id": "third", "body": "Three short words"})
    assert _seen(held) == set()
    other.refresh()
    assert _seen(held) == {"first", "short"}
    one.close()
    other.close()


def test_a_changed_document_frees_the_place_of_its_old_text(held, pipeline, text):
    with _gate(held, pipeline) as gate:
        gate.add({"id": "first", "body": text("a")})
        gate.add({"id": "first", "body": text("b")})
        assert gate.add({"id": "second", "body": text("a", 1)}).status == "accepted"
        with pytest.raises(Refused, match="resembles 'first'"):
            gate.add({"id": "third", "body": text("b", 1)})
        held.bulk([{"_op_type": "delete", "_index": "texts", "_id": "first"}])
        assert gate.add({"id": "third", "body": text("b", 1)}).status == "accepted"
        assert _seen(held) == set()


def test_uncommitted_groups_are_joined_and_get_new_leaders(held, pipeline, text):
    before = {*threading.enumerate()}
    with _gate(held, pipeline, "tag") as gate:
        first = gate.add({"id": "first", "body": text("a")})
        second = gate.add({"id": "second", "body": text("a", 1)})
        assert (second.group, second.leads) == (first.group, False)
        held.bulk([{"_op_type": "delete", "_index": "texts", "_id": "first"}])
        third = gate.add({"id": "third", "body": text("a", 2)})
        assert third.group == first.group
        assert held.get("texts", "second")["_source"]["_dedup"]["leader"] is True
        assert _seen(held) == set()
    # A closed gate has made them visible, and its thread has ended.
    assert _seen(held) == {"second", "third"}
    assert {one.name for one in {*threading.enumerate()} - before}.isdisjoint({"shinglefold-gate"})


@pytest.mark.long(every=2)
@pytest.mark.parametrize("most", [3, 60])
def test_places_are_counted(held, pipeline, text, most):
    with _gate(held, pipeline, "cap", most) as gate:
        told = [gate.add_all([{"id": f"{n}", "body": text("a", n % 5)}])[0].status for n in range(most + 2)]
        assert told == ["accepted"] * most + ["refused"] * 2
        held.bulk([{"_op_type": "delete", "_index": "texts", "_id": "1"}])
        assert gate.add({"id": "new", "body": text("a", 1)}).status == "accepted"
        with pytest.raises(Refused):
            gate.add({"id": "newer", "body": text("a", 2)})
        assert _seen(held) == set()


def test_no_verdict_is_returned_before_it_is_durable(held, pipeline, text, monkeypatch):
    told, noting, on = [], threading.Event(), threading.Event()
    write = WriteAheadLog.write

    def waits(journal, changes):
        noting.set()
        assert on.wait(20)
        write(journal, changes)

    monkeypatch.setattr(WriteAheadLog, "write", waits)
    with _gate(held, pipeline) as gate:
        add = threading.Thread(target=lambda: told.append(gate.add({"id": "first", "body": text("a")})))
        beside = threading.Thread(target=lambda: told.append(gate.add({"id": "second", "body": text("b")})))
        add.start()
        assert noting.wait(20)
        # Whoever comes now wakes those that wait.
        beside.start()
        add.join(0.2)
        assert told == []
        on.set()
        add.join(20)
        beside.join(20)
        assert [verdict.status for verdict in told] == ["accepted", "accepted"]


def test_on_a_full_disk_nothing_is_accepted_until_there_is_room(held, pipeline, text, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with _gate(held, pipeline) as gate:
        gate.add({"id": "first", "body": text("a")})
        with monkeypatch.context() as patched:
            patched.setattr(WriteAheadLog, "write", full)
            with pytest.raises(IndexReadOnly, match="the disk is full"):
                gate.add({"id": "second", "body": text("b")})
        with pytest.raises(Refused, match="resembles 'first'"):
            gate.add({"id": "third", "body": text("a", 1)})
        assert gate.add({"id": "second", "body": text("b")}).status == "accepted"
    held.refresh("texts")
    assert _seen(held) == {"first", "second"}


def test_a_number_that_only_an_uncommitted_document_has_is_taken(held, pipeline, text):
    one, other = (made.document for made in pipeline.run_block([{"body": text("a")}, {"body": text("b")}]))
    first, second, *_ = numbers_of(Fingerprint.from_field(one["_dedup"]), (), "texts", "one")
    with _gate(held, pipeline, "tag") as gate:
        gate.add({"id": "any", "body": text("c")})
        source = {**other, "_dedup": {**other["_dedup"], "group": first, "leader": True}}
        assert not held.bulk([{"_index": "texts", "_id": "other", "_source": source}]).failures
        assert gate.add({"id": "one", "body": text("a")}).group == second
        assert _seen(held) == set()
