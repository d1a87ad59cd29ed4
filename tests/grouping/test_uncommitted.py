"""Decisions on an embedded index go by what was let in a moment ago, which no search sees yet."""

import threading

import pytest

from shinglefold.engines.embedded.store import writer
from shinglefold.engines.embedded.store.write_ahead_log import WriteAheadLog
from shinglefold.errors import IndexReadOnly, Refused
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.numbering import numbers_of
from shinglefold.model.values import Fingerprint


@pytest.fixture(autouse=True)
def late(monkeypatch):
    """Commits that come only when they are asked for."""
    monkeypatch.setattr(writer, "_AGE", 1e9)


@pytest.fixture
def held(engine):
    """The index, kept from round to round as by a gate that is never idle."""
    with engine.lease("texts"):
        yield engine


def _gate(engine, pipeline, *options, **more):
    return Gate(engine, "texts", Policy(*options, **more), pipeline=pipeline)


def _seen(engine):
    return {hit["_id"] for hit in engine.search("texts", {"size": 100})["hits"]["hits"]}


def test_copies_of_what_another_gate_of_the_engine_let_in_are_refused(held, pipeline, text):
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


def test_a_changed_document_has_its_old_place_no_more(held, pipeline, text):
    with _gate(held, pipeline) as gate:
        gate.add({"id": "first", "body": text("a")})
        gate.add({"id": "first", "body": text("b")})
        assert gate.add({"id": "second", "body": text("a", 1)}).status == "accepted"
        with pytest.raises(Refused, match="resembles 'first'"):
            gate.add({"id": "third", "body": text("b", 1)})
        held.bulk([{"_op_type": "delete", "_index": "texts", "_id": "first"}])
        assert gate.add({"id": "third", "body": text("b", 1)}).status == "accepted"
        assert _seen(held) == set()


def test_groups_are_joined_and_handed_over(held, pipeline, text):
    with _gate(held, pipeline, "tag") as gate:
        first = gate.add({"id": "first", "body": text("a")})
        second = gate.add({"id": "second", "body": text("a", 1)})
        assert (second.group, second.leads) == (first.group, False)
        held.bulk([{"_op_type": "delete", "_index": "texts", "_id": "first"}])
        third = gate.add({"id": "third", "body": text("a", 2)})
        assert third.group == first.group
        assert held.get("texts", "second")["_source"]["dedup"]["leader"] is True
        assert _seen(held) == set()


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


def test_nobody_is_told_of_a_place_before_it_is_durable(held, pipeline, text, monkeypatch):
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


def test_on_a_full_disk_nobody_is_let_in_and_the_gate_goes_on_once_there_is_room(
    held, pipeline, text, monkeypatch
):
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
    first, second, *_ = numbers_of(Fingerprint.from_field(one["dedup"]), (), "texts", "one")
    with _gate(held, pipeline, "tag") as gate:
        gate.add({"id": "any", "body": text("c")})
        source = {**other, "dedup": {**other["dedup"], "group": first, "leader": True}}
        assert not held.bulk([{"_index": "texts", "_id": "other", "_source": source}]).failures
        assert gate.add({"id": "one", "body": text("a")}).group == second
        assert _seen(held) == set()
