"""A gate releases its placeholders after any request fails, done or not."""

import pytest
from support.gate.model import FORMS, Newcomer, Relation, accepted, named
from support.gate.store import Source, Store

from shinglefold.contracts.engine import WriteResult
from shinglefold.errors import EngineUnavailable
from shinglefold.grouping.gate.group_commit import WaitingCaller
from shinglefold.grouping.gate.protocol.intents import WRITERS
from shinglefold.grouping.gate.protocol.pending_document import (
    EXISTS,
    Delete,
    FindDocuments,
    Now,
    Pause,
    Write,
)
from shinglefold.grouping.gate.protocol.protocol import decide
from shinglefold.grouping.rules import Policy
from shinglefold.runtime.backoff import Backoff
from shinglefold.runtime.sans_io import run

_LONG = 60
_ONCE = Backoff(retries=0)


def _run(store, writer, policy, failing, *, done, failures=1):
    """Run a writer of whose requests some fail from the n-th on, after they were done or before."""
    steps = writer.steps(policy, Relation(), writer.register())
    request = next(steps)
    for number in range(_LONG):
        after, answer = store.answered(request, Relation())
        fails = failing <= number < failing + failures
        if not fails or done:
            store = after
        try:
            request = steps.throw(EngineUnavailable("gone")) if fails else steps.send(answer)
        except EngineUnavailable:
            return store, "failed"
        except StopIteration as end:
            return store, end.value
    raise AssertionError("it does not end")


@pytest.mark.long(every=6)
@pytest.mark.parametrize("done", [True, False], ids=["done", "undone"])
@pytest.mark.parametrize("policy", [Policy("refuse"), Policy("tag"), Policy("cap", most=2)], ids=str)
@pytest.mark.parametrize("changes", [False, True], ids=["new", "changed"])
def test_a_failed_request_leaves_no_placeholder_and_no_waiting_writer(policy, done, changes):
    start = Store()
    if changes:
        start = start.put("documents", "d0", 1, Source({"_dedup": {"digest": "x"}})).refreshed()
    writer = Newcomer("w", (("d0", "a"), ("d1", "a")), retry=_ONCE)
    failures = 0
    for number in range(_LONG):
        store, told = _run(start, writer, policy, number, done=done)
        failures += told == "failed"
        assert not [one for one in store.there("documents").values() if FORMS.expiry_of(one[1]) is not None]
        # Another need not wait for any lease to end, and decides by what there is.
        there = [source["_dedup"]["digest"] for source in accepted(store).values()].count("a")
        _, (verdict,) = _run(store, Newcomer("n", (("dn", "a"),)), policy, -_LONG, done=done)
        most = {"refuse": 1, "cap": 2}.get(policy.action, 9)
        assert (verdict.status == "accepted") == (there < most)
    assert failures > 5


@pytest.mark.long(every=6)
@pytest.mark.parametrize("done", [True, False], ids=["done", "undone"])
@pytest.mark.parametrize("policy", [Policy("refuse"), Policy("tag"), Policy("cap", most=2)], ids=str)
@pytest.mark.parametrize("how", ["new", "changed", "created"])
@pytest.mark.parametrize("failures", [1, 2], ids=["once", "releasing, too"])
def test_a_short_outage_of_the_store_changes_no_verdict(policy, done, how, failures):
    start = Store()
    if how == "changed":
        start = start.put("documents", "d0", 1, Source({"_dedup": {"digest": "x"}})).refreshed()
    writer = Newcomer("w", (("d0", "a"), ("d1", "a"), ("d2", "b")), creates=how == "created")
    _, undisturbed = _run(start, writer, policy, -_LONG, done=done)
    again = 0
    for number in range(_LONG):
        store, told = _run(start, writer, policy, number, done=done, failures=failures)
        if told == "failed":
            # The last request of all makes visible what is decided already.
            continue
        again += told is not None
        assert [one.status for one in told] == [one.status for one in undisturbed]
        assert [one.replaced for one in told[1:]] == [False, False]
        texts = sorted(source["_dedup"]["digest"] for source in accepted(store).values())
        assert texts == sorted(
            text for one, (_, text) in zip(undisturbed, writer.texts, strict=True) if one.status == "accepted"
        )
        assert not [one for one in store.there("documents").values() if FORMS.expiry_of(one[1]) is not None]
    assert again > 5


class _Answers:
    """A store with one writer; ``spoil`` may answer an action in its place."""

    def __init__(self, store, spoil):
        self.store, self.spoil, self.pauses, self.written = store, spoil, 0, []

    def __call__(self, request):
        if not isinstance(request, Write):
            self.pauses += isinstance(request, Pause)
            assert self.pauses < 10, "it waits for itself"
            self.store, answered = self.store.answered(request, Relation())
            return answered
        return [self._written(action) for action in request.actions]

    def _written(self, action):
        spoilt = self.spoil(self, action)
        if spoilt is None:
            self.store, spoilt = self.store.run(action)
        self.written.append((action, spoilt))
        return spoilt


def _refusing(status, done=False):
    """Return what refuses the first placeholder of d0, or answers so though it was stored."""
    refused = []

    def spoil(answers, action):
        is_placeholder = action.id == "d0" and FORMS.expiry_of(action.source) is not None
        if refused or not is_placeholder or (answers.store.there("documents").get("d0") and action.create):
            return None
        refused.append(action)
        if done:
            answers.store, _ = answers.store.run(action)
        return WriteResult(status, None, "refused")

    return spoil


@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
@pytest.mark.parametrize(
    ("status", "done", "expired", "told"),
    [
        (429, False, False, "accepted"),
        (503, False, False, "accepted"),
        (400, False, False, "failed"),
        (409, False, False, "accepted"),
        # The request was sent twice.
        (409, True, False, "accepted"),
        (409, False, True, "accepted"),
    ],
)
def test_a_refused_placeholder_leaves_no_intent(status, done, expired, told, apart):
    store = Store(late=1)
    if expired:
        store = store.put("documents", "d0", 1, Source(FORMS.placeholder(0, "dead")))
    answers = _Answers(store, _refusing(status, done))
    writer = Newcomer("w", (("d0", "a"), ("d1", "b")), apart=apart)
    register = writer.register()
    verdicts = run(writer.steps(Policy("refuse"), Relation(), register), answers)
    assert [one.status for one in verdicts] == [told, "accepted"]
    assert verdicts[0].reason == ("refused" if told == "failed" else "")
    run(register.depart(), answers)
    assert {id_: one for id_, (_, one) in answers.store.there("intents").items()} == {WRITERS: {"names": []}}
    deleted = [one.status for action, one in answers.written if isinstance(action, Delete)]
    assert set(deleted) == {200}


def test_intents_stay_published_until_searches_see_their_documents():
    writer, answers = Newcomer("w", (("d0", "a"),)), _Answers(Store(), lambda *_: None)
    register = writer.register()
    run(decide(writer.documents(Relation()), writer.context(Policy("refuse"), Relation(), register)), answers)
    run(register.depart(), answers)
    assert named(answers.store)


def test_open_intents_stay_published_and_decided_ones_do_not():
    writer, answers = Newcomer("w", (("d0", "a"),)), _Answers(Store(), lambda *_: None)
    register = writer.register()
    undecided = []

    def answer(request):
        if isinstance(request, FindDocuments):
            undecided.append(register.settled_batches())
        return answers(request)

    run(decide(writer.documents(Relation()), writer.context(Policy("refuse"), Relation(), register)), answer)
    assert (undecided, len(register.settled_batches())) == ([()], 1)


@pytest.mark.parametrize("outage", [False, True])
def test_a_refused_document_leaves_no_intent(outage):
    broken = []

    def once(_, action):
        if outage and not broken and action.id == "d0":
            broken.append(action)
            raise EngineUnavailable("gone")

    start = Store().put("documents", "s0", 1, Source({"_dedup": {"digest": "a"}})).refreshed()
    writer, answers = Newcomer("w", (("d0", "a"),)), _Answers(start, once)
    register = writer.register()
    (verdict,) = run(writer.steps(Policy("refuse"), Relation(), register), answers)
    run(register.depart(), answers)
    assert verdict.status == "refused"
    assert {id_: one for id_, (_, one) in answers.store.there("intents").items()} == {WRITERS: {"names": []}}


def test_a_document_that_another_writer_creates_during_an_outage_is_not_replaced():
    def other(answers, action):
        if action.where == "documents" and not isinstance(action, Delete) and not action.create:
            text = Source({"_dedup": {"digest": "z"}})
            answers.store = answers.store.put("documents", "d0", 9, text).refreshed()
            raise EngineUnavailable("gone")

    writer, answers = Newcomer("w", (("d0", "a"),), creates=True), _Answers(Store(), other)
    (verdict,) = run(writer.steps(Policy("refuse"), Relation(), writer.register()), answers)
    assert (verdict.status, verdict.reason) == ("failed", EXISTS)
    assert accepted(answers.store)["d0"]["_dedup"]["digest"] == "z"


def _kept(store):
    return {id_ for id_, (_, one) in store.there("documents").items() if FORMS.expiry_of(one) is not None}


def _begun(policy, *texts):
    """Return a job of documents that each have a caller of their own, and these callers."""
    writer, relation = Newcomer("w", texts), Relation()
    callers = [WaitingCaller([item]) for item in writer.documents(relation)]
    return writer.job(policy, relation, callers), callers


def _worked(job, store, spoil, asked=0):
    """Run a job to its next pause or its end, and deliver verdicts; ``spoil`` may fail a request.

    Returns:
        the store, how many requests there were, and whether that was the end.
    """
    steps = job.until_pause()
    request = next(steps)
    try:
        while True:
            store, answer = spoil(asked, store, request)
            asked += 1
            request = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
    except StopIteration as end:
        job.deliver()
        return store, asked, end.value is None
    except EngineUnavailable as error:
        job.fail(error)
        return store, asked, True


def _gone_from(first, last):
    """Return a store that is unavailable for some requests."""

    def spoilt(number, store, request):
        if first <= number < last and not isinstance(request, Now | Pause):
            return store, EngineUnavailable("gone")
        return store.answered(request, Relation())

    return spoilt


def _busy_from(first, last):
    """Return a store that deletes no placeholder for some requests, and does all else."""

    def spoilt(number, store, request):
        if not (first <= number < last and isinstance(request, Write)):
            return store.answered(request, Relation())
        written = []
        for action in request.actions:
            if isinstance(action, Delete) and action.where == "documents":
                written.append(WriteResult(503, None, "busy"))
                continue
            store, one = store.run(action)
            written.append(one)
        return store, written

    return spoilt


@pytest.mark.long(every=5)
@pytest.mark.parametrize("fault", [_gone_from, _busy_from])
@pytest.mark.parametrize("failures", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("policy", [Policy("refuse"), Policy("cap", most=2)], ids=["refuse", "cap"])
def test_a_refusal_is_delivered_after_its_placeholder_is_deleted(policy, failures, fault):
    # A caller that was told goes, and with the last of them nobody takes on what is left to do.
    start = Store()
    for number in range(2):
        grouped = {"_dedup": {"digest": "a", "group": 970, "leader": not number}}
        start = start.put("documents", f"s{number}", 1, Source(grouped))
    refused = 0
    for number in range(_LONG):
        job, callers = _begun(policy, ("d0", "a"))
        (caller,) = callers
        store, asked, ended = start.refreshed(), 0, False
        while not ended and not caller.done:
            store, asked, ended = _worked(job, store, fault(number, number + failures), asked)
        if caller.error is None:
            refused += caller.result()[0].status == "refused"
            assert not _kept(store)
    assert refused > _LONG // 2


@pytest.mark.parametrize("failures", [1, 2, 3, 4, 5])
def test_delivered_verdicts_are_not_decided_again_after_an_outage(failures):
    # Who was told that a document is in may delete it at once.
    again = 0
    for number in range(_LONG):
        job, callers = _begun(Policy("tag"), ("d0", "a"), ("d1", "a"), ("d2", "b"))
        store, asked, ended = Store(), 0, False
        deleted = set()
        while not ended:
            store, asked, ended = _worked(job, store, _gone_from(number, number + failures), asked)
            for caller in callers:
                (item,) = caller.documents
                if not ended and caller.done and caller.error is None and item.id not in deleted:
                    version, _ = store.shelf("documents")[item.id]
                    store = store.put("documents", item.id, version + 1, None)
                    deleted.add(item.id)
        again += bool(deleted)
        assert deleted.isdisjoint(store.there("documents"))
    assert again
