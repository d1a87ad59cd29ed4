"""Places in groups, and their leaders, when documents change, are deleted, or arrive together."""

import pytest
from support.maintenance import store

from shinglefold.errors import Refused
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.gate.protocol import group_limit


def _gate(engine, pipeline, *options):
    return Gate(engine, "texts", Policy(*options), pipeline=pipeline)


def _copies(text, numbers):
    return [{"id": f"{number}", "body": text("a", number % 12)} for number in numbers]


@pytest.mark.long(every=6)
@pytest.mark.parametrize("together", [1, 3, 7])
@pytest.mark.parametrize("counted", [True, False], ids=["counted", "read"])
def test_a_group_is_filled_to_its_last_place_and_no_further(
    engine, pipeline, text, monkeypatch, together, counted
):
    monkeypatch.setattr(group_limit, "_FEW", 1 if counted else 50)
    told = []
    with _gate(engine, pipeline, "cap", 5) as gate:
        for begin in range(0, 9, together):
            told += gate.add_all(_copies(text, range(begin, min(9, begin + together))))
            gate.refresh()
    assert [one.status for one in told] == ["accepted"] * 5 + ["refused"] * 4


@pytest.mark.parametrize("counted", [True, False], ids=["counted", "read"])
def test_documents_without_a_number_take_places_too(engine, pipeline, text, monkeypatch, counted):
    monkeypatch.setattr(group_limit, "_FEW", 1 if counted else 50)
    with _gate(engine, pipeline, "cap", 4) as gate:
        gate.add({"id": "first", "body": text("a")})
        made = [outcome.document for outcome in pipeline.run_block(_copies(text, [1, 2]))]
        store(engine, "texts", made)
        told = gate.add_all(_copies(text, [3, 4, 5]))
    assert [one.status for one in told] == ["accepted", "refused", "refused"]


def test_a_document_of_a_full_group_may_be_changed_within_it(engine, pipeline, text):
    with _gate(engine, pipeline, "cap", 2) as gate:
        first, _ = gate.add_all(_copies(text, range(2)))
        again = gate.add({"id": "1", "body": text("a", 5)})
        assert (again.group, again.leads, again.replaced) == (first.group, False, True)
        with pytest.raises(Refused, match="has 2 documents already"):
            gate.add({"id": "2", "body": text("a", 2)})


def test_a_leader_that_moved_no_longer_leads_its_old_group(engine, pipeline, text):
    with _gate(engine, pipeline, "tag") as gate:
        first, second = gate.add_all(_copies(text, range(2)))
        gone = gate.add({"id": first.id, "body": text("b")})
        third = gate.add({"id": "2", "body": text("a", 2)})
    assert (gone.leads, gone.group == first.group) == (True, False)
    assert (third.group, third.leads) == (first.group, False)
    assert engine.get("texts", second.id)["_source"]["_dedup"]["leader"] is True
