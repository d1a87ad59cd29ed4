"""Every order in which two and three writers may act, with deaths and ended leases at any moment."""

from itertools import combinations

import pytest
from support.gate.model import FORMS, Explorer, Newcomer, Relation, accepted, run_alone

from shinglefold.groups.gate.policy import Policy

_REFUSE, _TAG = Policy("refuse"), Policy("tag")
#: a and b, b and c are alike, a and c are not.
_CHAIN = Relation(frozenset({frozenset("ab"), frozenset("bc")}))


def _writers(*texts):
    return [
        Newcomer(f"w{number}", tuple((f"d{number}{place}", text) for place, text in enumerate(several)))
        for number, several in enumerate(texts)
    ]


def _texts(store):
    return [source["dedup"]["digest"] for source in accepted(store).values()]


def _check_refused(explorer):
    relation, policy = explorer.relation, explorer.policy

    def check(store, ended):
        there = accepted(store)
        for one, other in combinations(_texts(store), 2):
            assert not relation.alike(one, other), "both were let in"
        for verdicts, writer in zip(ended, explorer.writers, strict=True):
            for verdict, (id_, text) in zip(verdicts or (), writer.texts, strict=bool(verdicts)):
                if verdict.status == "accepted":
                    assert id_ in there
                else:
                    assert relation.alike(text, there[verdict.like.id]["dedup"]["digest"])
                    assert id_ not in there
        # Whoever comes after all leases decides by what was let in, whatever the dead left behind.
        last, (verdict,) = run_alone(store, Newcomer("x", (("dx", "a"),)), policy, relation)
        wanted = "refused" if any(relation.alike("a", text) for text in _texts(store)) else "accepted"
        assert verdict.status == wanted
        assert len(accepted(last)) == len(there) + (wanted == "accepted")

    return check


@pytest.mark.parametrize(
    "texts",
    [(["a"], ["a"]), (["a"], ["b"]), (["a", "a"], ["a"])],
    ids=["two writers", "strangers", "a batch of two"],
)
def test_of_two_writers_one_is_let_in_whoever_dies_and_whatever_lease_ends(texts):
    explorer = Explorer(_writers(*texts), _REFUSE, Relation(), crashes=1)
    assert explorer.walk(_check_refused(explorer)) > 1
    print(explorer.states)
