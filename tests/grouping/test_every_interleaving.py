"""Every interleaving of two and three writers, with crashes and expired leases at any moment."""

import os
from dataclasses import replace
from itertools import combinations

import pytest
from support.gate.model import FORMS, Explorer, Newcomer, Relation, accepted, named, run_alone
from support.gate.store import Source, Store
from support.servers.choose import in_full

from shinglefold.grouping.gate.protocol import group_limit
from shinglefold.grouping.gate.protocol.intents import WRITERS
from shinglefold.grouping.gate.protocol.pending_document import EXISTS
from shinglefold.grouping.rules import Policy

#: How often a writer of three is interrupted that could go on: each more takes some six times as long.
_SWITCHES = int(os.environ.get("SHINGLEFOLD_GATE_SWITCHES", "2" if in_full() else "1"))
_REFUSE, _TAG = Policy("refuse"), Policy("tag")
#: a and b, b and c are alike, a and c are not.
_CHAIN = Relation(frozenset({frozenset("ab"), frozenset("bc")}))


def _writers(*texts):
    return [
        Newcomer(f"w{number}", tuple((f"d{number}{place}", text) for place, text in enumerate(several)))
        for number, several in enumerate(texts)
    ]


def _texts(store):
    return [source["_dedup"]["digest"] for source in accepted(store).values()]


def _check_refused(explorer):
    relation, policy = explorer.relation, explorer.policy
    tried = set()

    def check(store, ended):
        there = accepted(store)
        for one, other in combinations(_texts(store), 2):
            assert not relation.alike(one, other), "both were let in"
        for verdicts, writer in zip(ended, explorer.writers, strict=True):
            for verdict, (id_, text) in zip(verdicts or (), writer.texts, strict=bool(verdicts)):
                if verdict.status == "accepted":
                    assert id_ in there
                else:
                    assert relation.alike(text, there[verdict.like.id]["_dedup"]["digest"])
                    assert id_ not in there
        # Whoever comes after all leases decides by what was let in, whatever the dead left behind.
        if (left := replace(store, late=0, woken=0, naps=0)) in tried:
            return
        tried.add(left)
        last, (verdict,) = run_alone(store, Newcomer("x", (("dx", "a"),), cleans=True), policy, relation)
        wanted = "refused" if any(relation.alike("a", text) for text in _texts(store)) else "accepted"
        assert verdict.status == wanted
        assert len(accepted(last)) == len(there) + (wanted == "accepted")
        kept = {FORMS.intent_id(source) for _, source in last.there("documents").values()} - {None}
        assert not kept & named(store), "a place is kept for ever"
        assert len(last.there("intents")[WRITERS][1]["names"]) == 1, "the dead are named for ever"

    return check


def _check_tagged(explorer):
    relation = explorer.relation

    def check(store, ended):
        there = accepted(store)
        leaders = {FORMS.group(source): source for source in there.values() if FORMS.leads(source)}
        assert len(leaders) == sum(FORMS.leads(source) for source in there.values()), "two lead one group"
        texts = [source["_dedup"]["digest"] for source in leaders.values()]
        for one, other in combinations(texts, 2):
            assert not relation.alike(one, other), "two groups of one text"
        for source in there.values():
            led_by = leaders[FORMS.group(source)]["_dedup"]["digest"]
            assert relation.alike(source["_dedup"]["digest"], led_by)
        told = [verdict for verdicts in ended for verdict in verdicts or ()]
        assert all(verdict.status == "accepted" and verdict.id in there for verdict in told)

    return check


def _check_capped(explorer):
    most = explorer.policy.most

    def check(store, ended):
        there = accepted(store)
        assert len(there) <= most, "more were let in than there are places"
        told = [verdict for verdicts in ended for verdict in verdicts or ()]
        assert {verdict.id for verdict in told if verdict.status == "accepted"} <= set(there)
        if None not in ended:
            assert len(there) == min(most, len(told))
        # A place that a dead writer had is free again.
        last, (verdict,) = run_alone(store, Newcomer("x", (("dx", "a"),)), explorer.policy, explorer.relation)
        assert (verdict.status == "accepted") == (len(there) < most)
        assert len(accepted(last)) == min(most, len(there) + 1)

    return check


@pytest.mark.long(every=9)
@pytest.mark.parametrize(
    ("texts", "relation"),
    [((["a"], ["a"]), Relation()), ((["a"], ["b"]), Relation()), ((["a"], ["b"]), _CHAIN)],
    ids=["copies", "strangers", "alike"],
)
def test_one_of_two_writers_is_accepted_despite_crashes_and_expired_leases(texts, relation):
    explorer = Explorer(_writers(*texts), _REFUSE, relation, crashes=1)
    assert explorer.walk(_check_refused(explorer)) > 100


@pytest.mark.long(every=16)
@pytest.mark.parametrize(
    ("texts", "relation"),
    [
        ((["a"], ["b"]), Relation(doubtful=frozenset({frozenset("ab")}))),
        pytest.param(
            (["a", "b"], ["b"]), Relation(doubtful=frozenset({frozenset("ab")})), marks=pytest.mark.long
        ),
        ((["a"], ["c"]), Relation(frozenset({frozenset("ab")}), frozenset({frozenset("ac")}))),
    ],
    ids=["strangers", "a batch", "beside a copy"],
)
@pytest.mark.parametrize("policy", [_REFUSE, _TAG], ids=["refuse", "tag"])
def test_documents_that_only_texts_distinguish_wait_and_are_both_accepted(texts, relation, policy):
    explorer = Explorer(_writers(*texts), policy, relation, crashes=1)
    check = _check_refused(explorer) if policy is _REFUSE else _check_tagged(explorer)
    wanted = {text for several in texts for text in several}

    def checked(store, ended):
        check(store, ended)
        if None not in ended:
            assert set(_texts(store)) == wanted

    assert explorer.walk(checked) > 5


def test_a_batch_of_two_copies_and_a_concurrent_third_accept_one():
    explorer = Explorer(_writers(["a", "a"], ["a"]), _REFUSE, Relation(), crashes=0, late=False)
    assert explorer.walk(_check_refused(explorer)) > 5


@pytest.mark.long
@pytest.mark.parametrize("crashes", [0, pytest.param(1, marks=pytest.mark.long)])
def test_clearing_the_records_of_slow_writers_accepts_no_second_copy(crashes):
    writers = [replace(one, cleans=True) for one in _writers(["a"], ["a"])]
    explorer = Explorer(writers, _REFUSE, Relation(), crashes)
    assert explorer.walk(_check_refused(explorer)) > 50


@pytest.mark.long
@pytest.mark.parametrize("cleans", [0, 1], ids=["clears", "cleared"])
def test_a_gate_whose_record_was_cleared_publishes_its_intents_again(cleans):
    both = enumerate(_writers(["b", "a"], ["a"]))
    writers = [replace(one, cleans=number == cleans, apart=number == 0) for number, one in both]
    explorer = Explorer(writers, _REFUSE, Relation(), crashes=0)
    assert explorer.walk(_check_refused(explorer)) > 20


@pytest.mark.long
def test_one_of_two_changes_to_a_document_and_a_similar_one_is_accepted():
    stored = Source({"_dedup": {"digest": "x"}})
    start = Store().put("documents", "d00", 1, stored).refreshed()
    writers = [Newcomer("w0", (("d00", "a"),)), Newcomer("w1", (("d10", "a"),))]
    explorer = Explorer(writers, _REFUSE, Relation(), crashes=1, start=start)
    assert explorer.walk(_check_changed) > 20


@pytest.mark.long
@pytest.mark.parametrize("creates", [(True, True), (True, False)], ids=["both", "one"])
def test_a_document_that_is_only_to_be_created_replaces_none(creates):
    writers = [
        Newcomer(f"w{number}", (("d0", text),), creates=one)
        for number, (text, one) in enumerate(zip("xy", creates, strict=True))
    ]

    def check(store, ended):
        there = {id_: source["_dedup"]["digest"] for id_, source in accepted(store).items()}
        told = [verdict for verdicts in ended for verdict in verdicts or ()]
        if None in ended:
            return
        assert told[0].status == "accepted" or told[0].reason == EXISTS
        assert not (told[0].status == "accepted" and told[0].replaced), "it replaced the other one"
        if all(creates):
            assert sorted(one.status for one in told) == ["accepted", "failed"]
            assert there == {"d0": "x" if told[0].status == "accepted" else "y"}
        else:
            # The other one may come first, or replace it.
            assert there == {"d0": "y"}

    assert Explorer(writers, _REFUSE, Relation(), crashes=1).walk(check) > 20


def _check_changed(store, ended):
    there = accepted(store)
    assert _texts(store).count("a") <= 1, "both were let in"
    assert "d00" in there, "what was to be changed is gone"
    for verdict in (verdict for verdicts in ended for verdict in verdicts or ()):
        if verdict.status == "accepted":
            assert there[verdict.id]["_dedup"]["digest"] == "a"
        else:
            assert there[verdict.like.id]["_dedup"]["digest"] == "a"
    if None not in ended:
        assert _texts(store).count("a") == 1


@pytest.mark.long(every=4)
@pytest.mark.parametrize("crashes", [0, 1])
@pytest.mark.parametrize("texts", [(["a"], ["a"], ["a"]), (["a"], ["b"], ["c"])], ids=["copies", "chain"])
def test_three_writers_accept_no_two_matching_documents(texts, crashes):
    switches = _SWITCHES - crashes
    explorer = Explorer(_writers(*texts), _REFUSE, _CHAIN, crashes, late=False, switches=switches)
    assert explorer.walk(_check_refused(explorer)) > 20


@pytest.mark.long(every=4)
@pytest.mark.parametrize(
    ("texts", "crashes"),
    [((["a"], ["a"]), 1), ((["a"], ["b"]), 1), ((["a"], ["b"], ["c"]), 0), ((["b"], ["a"], ["c"]), 0)],
)
def test_matching_texts_found_no_two_groups(texts, crashes):
    switches = None if len(texts) == 2 else _SWITCHES
    explorer = Explorer(_writers(*texts), _TAG, _CHAIN, crashes, late=False, switches=switches)
    assert explorer.walk(_check_tagged(explorer)) > 5


@pytest.mark.parametrize(
    "given", [(("d", "b"), ("d1", "a")), (("d0", "a"), ("d1", "c"))], ids=["added again", "adopted by two"]
)
def test_a_document_without_a_number_becomes_the_leader_of_one_group(given):
    start = Store().put("documents", "d", 1, Source({"_dedup": {"digest": "b"}})).refreshed()
    writers = [Newcomer(f"w{number}", (one,)) for number, one in enumerate(given)]
    explorer = Explorer(writers, _TAG, _CHAIN, crashes=0, late=False, start=start)
    assert explorer.walk(_check_tagged(explorer)) > 3


@pytest.mark.parametrize(
    ("most", "crashes"), [(1, 0), (2, 0), pytest.param(2, 1, marks=pytest.mark.long), (3, 0)]
)
def test_a_capped_group_never_exceeds_its_limit(most, crashes):
    writers = _writers(["a"], ["a"], ["a"])
    explorer = Explorer(
        writers,
        Policy("cap", most=most),
        Relation(),
        crashes,
        late=False,
        switches=max(0, _SWITCHES - 1 - crashes),
    )
    assert explorer.walk(_check_capped(explorer)) > 5


@pytest.mark.parametrize("few", [0, 50], ids=["counted", "read"])
@pytest.mark.parametrize("stored", [0, 1])
@pytest.mark.parametrize("crashes", [0, pytest.param(1, marks=pytest.mark.long)])
def test_one_of_two_writers_takes_the_last_place_of_a_group(monkeypatch, few, stored, crashes):
    monkeypatch.setattr(group_limit, "_FEW", few)
    leader = Source({"_dedup": {"digest": "a", "group": 970, "leader": True}})
    start = Store().put("documents", "d", 1, leader).refreshed() if stored else Store()
    writers = _writers(["a"] * (2 - stored), ["a"])
    explorer = Explorer(writers, Policy("cap", most=2), Relation(), crashes, late=False, start=start)
    assert explorer.walk(_check_capped(explorer)) > 5
