"""The register of intents: which records gates clear, and what they know of each other."""

import itertools
from dataclasses import replace

import pytest
from support.gate.model import FORMS, Relation, named
from support.gate.store import Source, Store

from shinglefold.contracts.engine import WriteResult
from shinglefold.grouping.gate.protocol.intent_register import SharedRegister
from shinglefold.grouping.gate.protocol.intents import WRITERS, Intent
from shinglefold.grouping.gate.protocol.pending_document import Delete, Put, Write
from shinglefold.runtime.sans_io import run

_LEASE = 30_000


class _Gates:
    """Two registers on one store; ``spoil`` may answer an action in its place."""

    def __init__(self):
        self.store, self.spoil = Store(), lambda _: None
        self.one, self.other = map(self._register, ("one", "other"))

    def _register(self, name):
        counted = itertools.count()
        return SharedRegister(lambda: f"{name}-{next(counted)}", _LEASE)

    def run(self, steps):
        return run(steps, self._answer)

    def _answer(self, request):
        if not isinstance(request, Write):
            self.store, answered = self.store.answered(request, Relation())
            return answered
        return [self.spoil(action) or self._written(action) for action in request.actions]

    def _written(self, action):
        self.store, written = self.store.run(action)
        return written

    def publish(self, until=_LEASE, id_="a"):
        intent = Intent(id_, f"d-{id_}", None, (0, id_), until, ("key",), {})
        put = Put("documents", intent.document, FORMS.placeholder(until, id_), create=True)
        self.run(self.one.publish([put], [intent]))

    def clean_at(self, late):
        self.store = replace(self.store, late=late)
        self.run(self.other.clean(FORMS))

    def listed(self):
        return set(self.store.there("intents")[WRITERS][1]["names"])


@pytest.fixture
def gates():
    gates = _Gates()
    gates.publish()
    gates.run(gates.other.look())
    return gates


@pytest.mark.parametrize(("late", "cleared"), [(_LEASE + 1, False), (2 * _LEASE + 1, True)])
def test_a_record_is_cleared_after_two_leases(gates, late, cleared):
    gates.clean_at(late)
    assert (gates.one.name not in gates.listed()) == cleared
    assert ("d-a" not in gates.store.there("documents")) == cleared


def test_a_record_that_was_written_since_it_was_read_is_left_alone(gates):
    gates.publish(id_="b")
    gates.clean_at(2 * _LEASE + 1)
    assert named(gates.store) == {"a", "b"}
    assert set(gates.store.there("documents")) == {"d-a", "d-b"}


def test_a_record_stays_while_its_guards_can_not_be_revoked(gates):
    gates.spoil = lambda one: (
        WriteResult(429, None, "busy") if isinstance(one, Delete) and one.where == "documents" else None
    )
    gates.clean_at(2 * _LEASE + 1)
    assert named(gates.store) == {"a"}


def test_a_gate_whose_record_is_closed_publishes_its_open_intents_under_another_name(gates):
    name = gates.one.name
    version, record = gates.store.shelf("intents")[name]
    gates.store = gates.store.put("intents", name, version + 1, Source({**record, "closed": True}))
    gates.run(gates.one.look())
    assert gates.one.name != name
    gates.store = gates.store.put("intents", name, version + 2, None)
    assert named(gates.store) == {"a"}


def test_two_gates_that_join_at_once_are_both_listed():
    gates, done = _Gates(), []

    def beside(action):
        if action.id == WRITERS and not done:
            done.append(action)
            gates.run(gates.other.look())

    gates.spoil = beside
    gates.publish()
    assert gates.listed() == {gates.one.name, gates.other.name}


def test_claims_of_other_gates_are_known(gates):
    gates.run(gates.one.claim([("a", 7)]))
    gates.run(gates.other.look())
    assert [one.intent_id for one in gates.other.known.with_claims_on(7)] == ["a"]
    assert gates.other.known.with_claims_on(8) == []


def test_a_listed_name_without_a_record_is_removed_from_the_list(gates):
    version, listed = gates.store.shelf("intents")[WRITERS]
    names = Source({"names": [*listed["names"], "gone"]})
    gates.store = gates.store.put("intents", WRITERS, version + 1, names)
    gates.run(gates.other.look())
    gates.clean_at(0)
    assert gates.listed() == {gates.one.name, gates.other.name}
