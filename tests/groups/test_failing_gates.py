"""A gate that fails, in whatever request and whether that was done or not, gives back what it keeps."""

import pytest
from support.gate.model import FORMS, Newcomer, Relation, accepted
from support.gate.store import Source, Store

from shinglefold.errors import EngineUnavailable
from shinglefold.groups.gate.policy import Policy
from shinglefold.groups.gate.requests import Now, Pause, Refresh, Write
from shinglefold.ingest import Backoff

_LONG = 60
_ONCE = Backoff(retries=0)


def _answered(store, request):
    if isinstance(request, Now):
        return store, 0
    if isinstance(request, Pause):
        return store, None
    if isinstance(request, Refresh):
        return store.refreshed(), None
    if isinstance(request, Write):
        written = []
        for action in request.actions:
            store, one = store.run(action)
            written.append(one)
        return store, written
    return store, store.answer(request, Relation())


def _run(store, writer, policy, failing, *, done):
    """Let a writer go on whose request of that number fails, after it was done or before."""
    steps = writer.steps(policy, Relation(), writer.register())
    request = next(steps)
    for number in range(_LONG):
        after, answer = _answered(store, request)
        if number != failing or done:
            store = after
        try:
            request = steps.throw(EngineUnavailable("gone")) if number == failing else steps.send(answer)
        except EngineUnavailable:
            return store, "failed"
        except StopIteration as end:
            return store, end.value
    raise AssertionError("it does not end")


@pytest.mark.parametrize("done", [True, False], ids=["done", "undone"])
@pytest.mark.parametrize("policy", [Policy("refuse"), Policy("tag"), Policy("cap", most=2)], ids=str)
@pytest.mark.parametrize("changes", [False, True], ids=["new", "changed"])
def test_a_request_that_fails_leaves_no_place_kept_and_nobody_waiting(policy, done, changes):
    start = Store()
    if changes:
        start = start.put("documents", "d0", 1, Source({"dedup": {"digest": "x"}})).refreshed()
    writer = Newcomer("w", (("d0", "a"), ("d1", "a")), again=_ONCE)
    failures = 0
    for number in range(_LONG):
        store, told = _run(start, writer, policy, number, done=done)
        failures += told == "failed"
        assert not [one for one in store.there("documents").values() if FORMS.pending(one[1]) is not None]
        # Another need not wait for any lease to end, and decides by what there is.
        there = [source["dedup"]["digest"] for source in accepted(store).values()].count("a")
        _, (verdict,) = _run(store, Newcomer("n", (("dn", "a"),)), policy, -1, done=done)
        most = {"refuse": 1, "cap": 2}.get(policy.action, 9)
        assert (verdict.status == "accepted") == (there < most)
    assert failures > 5


@pytest.mark.parametrize("done", [True, False], ids=["done", "undone"])
@pytest.mark.parametrize("policy", [Policy("refuse"), Policy("tag"), Policy("cap", most=2)], ids=str)
@pytest.mark.parametrize("changes", [False, True], ids=["new", "changed"])
def test_a_store_that_is_gone_for_a_moment_changes_no_verdict(policy, done, changes):
    start = Store()
    if changes:
        start = start.put("documents", "d0", 1, Source({"dedup": {"digest": "x"}})).refreshed()
    writer = Newcomer("w", (("d0", "a"), ("d1", "a"), ("d2", "b")))
    _, undisturbed = _run(start, writer, policy, -1, done=done)
    again = 0
    for number in range(_LONG):
        store, told = _run(start, writer, policy, number, done=done)
        if told == "failed":
            # The last request of all makes visible what is decided already.
            continue
        again += told is not None
        assert [one.status for one in told] == [one.status for one in undisturbed]
        assert [one.replaced for one in told[1:]] == [False, False]
        texts = sorted(source["dedup"]["digest"] for source in accepted(store).values())
        assert texts == sorted(
            text for one, (_, text) in zip(undisturbed, writer.texts, strict=True) if one.status == "accepted"
        )
        assert not [one for one in store.there("documents").values() if FORMS.pending(one[1]) is not None]
    assert again > 5
