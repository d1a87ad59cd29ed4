"""A gate leaves out stored documents whose fingerprint is of another text than they have by now."""

import pytest

from shinglefold.documents import get
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.gate.protocol import group_limit


@pytest.mark.long(every=6)
@pytest.mark.parametrize("verify", ["text", "signature", "keywords"])
@pytest.mark.parametrize("counted", [True, False], ids=["counted", "read"])
@pytest.mark.parametrize("stale", ["1", "123"])
def test_stale_documents_take_no_place(engine, pipeline, text, monkeypatch, verify, counted, stale):
    monkeypatch.setattr(group_limit, "_FEW", 1 if counted else 50)
    with Gate(engine, "texts", Policy("cap", most=4, verify=verify), pipeline=pipeline) as gate:
        told = gate.add_all([{"id": f"{number}", "body": text("a", number)} for number in range(5)])
        assert [one.status for one in told] == ["accepted"] * 4 + ["refused"]
        gate.refresh()
        for id_ in stale:
            _replace(engine, id_, body=text(f"b{id_}"))
        again = gate.add_all([{"id": f"{number}", "body": text("a", number)} for number in range(4, 7)])
        assert [one.status for one in again] == ["accepted"] * len(stale) + ["refused"] * (3 - len(stale))
        assert {one.group for one in again} == {told[0].group}
        assert [one.to_json()["stale"] for one in again] == [len(stale)] * 3
        # More are stored than are read at first, and searches find last what was written last.
        for one in (told[0], *again[: len(stale)]):
            _replace(engine, one.id, host="new")
        (last,) = gate.add_all([{"id": "7", "body": text("a", 7)}])
        assert (last.status, len(last.stale)) == ("refused", len(stale))


def _replace(engine, id_, **fields):
    """Replace a text as a writer that signs nothing."""
    update = {"_op_type": "update", "_index": "texts", "_id": id_, "doc": fields}
    assert not engine.bulk([update]).failures
    engine.refresh("texts")


@pytest.mark.long(every=5)
@pytest.mark.parametrize("verify", ["text", "signature", "keywords"])
@pytest.mark.parametrize("policy", ["refuse", "tag", "cap"])
def test_a_stale_twin_decides_nothing(engine, pipeline, text, policy, verify):
    chosen = Policy(policy, most=1, verify=verify)
    with Gate(engine, "texts", chosen, pipeline=pipeline) as gate:
        first = gate.add({"id": "first", "body": text("a")})
        gate.refresh()
        _replace(engine, "first", body=text("b"))
        alone = gate.add({"id": "second", "body": text("a", 2)})
        assert (alone.status, alone.to_json()["stale"]) == ("accepted", 1)
        assert alone.group != first.group or policy == "refuse"
        # A fresh twin beside the stale one decides as ever, and so does one that was signed again.
        (third,) = gate.add_all([{"id": "third", "body": text("a", 3)}])
        assert third.like is None or third.like.id == "second"
        assert third.status == ("accepted" if policy == "tag" else "refused")
        assert third.group == alone.group
        again = gate.add({"id": "first", "body": text("b")})
        assert again.status == "accepted"
        (fourth,) = gate.add_all([{"id": "fourth", "body": text("b", 4)}])
        assert fourth.to_json().get("stale") is None
        assert fourth.status == third.status
    assert get(engine.get("texts", "second")["_source"], "body") == text("a", 2)
