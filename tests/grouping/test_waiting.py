"""A writer that waits for others holds no placeholder beyond its lease, which others might clear."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest
from support.gate.model import FORMS, Newcomer, Relation
from support.gate.store import Source, Store

from shinglefold.contracts.engine import WriteResult
from shinglefold.errors import EngineError, EngineUnavailable
from shinglefold.grouping.gate.group_commit import WaitingCaller
from shinglefold.grouping.gate.protocol.pending_document import FindDocuments, Now, Pause, Put, Steps
from shinglefold.grouping.gate.protocol.protocol import decide
from shinglefold.grouping.rules import Policy

_RELATION = Relation()


class _World:
    """A store and a clock, which moves on by a second at each pause."""

    def __init__(self, relation: Relation = _RELATION) -> None:
        self.store, self.relation = Store(), relation

    def requests(self, steps: Steps) -> Iterator[object]:
        """Yield the requests of a writer; each is answered when the next one is requested."""
        go = partial(steps.send, None)
        while True:
            try:
                request = go()
            except StopIteration as ended:
                yield ended.value
                return
            yield request
            try:
                go = partial(steps.send, self._answered(request))
            except EngineUnavailable as error:
                go = partial(steps.throw, error)

    def _answered(self, request: object) -> object:
        if isinstance(request, Pause):
            self.store = replace(self.store, late=self.store.late + 1000)
        self.store, answer = self.store.answered(request, self.relation)
        return answer

    def until(self, document: str) -> int | None:
        """Return when the placeholder of a document expires; None where there is none."""
        held = self.store.there("documents").get(document)
        return None if held is None else FORMS.expiry_of(held[1])


def _writer(name: str, text: str = "a", relation: Relation = _RELATION) -> Steps:
    writer = Newcomer(name, ((name, text),))
    return writer.steps(Policy("refuse"), relation, writer.register())


def _answer_until(kind: type, requests: Iterator[object]) -> None:
    while not isinstance(next(requests), kind):
        pass


def test_a_writer_that_waits_for_a_dead_one_renews_its_own_lease():
    world = _World()
    waiting = world.requests(_writer("waiting"))
    # It came first, so that it need not withdraw.
    next(waiting)
    world.store = replace(world.store, late=5)
    dead = world.requests(_writer("dead"))
    _answer_until(FindDocuments, dead)
    world.store = replace(world.store, late=0)
    kept, told = set(), []
    for asked in waiting:
        until = world.until("waiting")
        assert until is None or until >= world.store.late
        kept |= {until} - {None}
        told.append(asked)
    (verdict,) = told[-1]
    assert (verdict.status, len(kept)) == ("accepted", 2)


def test_an_id_stays_with_the_writer_that_reserved_it_until_its_lease_ends():
    world = _World()
    _answer_until(FindDocuments, world.requests(_writer("one")))
    world.store = replace(world.store, late=5)
    writer = Newcomer("second", (("one", "a"),))
    second = world.requests(writer.steps(Policy("refuse"), _RELATION, writer.register()))
    _answer_until(Pause, second)
    assert world.until("one") == 30_000
    (verdict,) = list(second)[-1]
    assert (verdict.status, world.store.late > 30_000) == ("accepted", True)


@pytest.mark.parametrize(("text", "waits"), [("b", True), ("c", False)])
def test_a_writer_waits_for_texts_that_may_match_and_not_for_all_with_its_keywords(text, waits):
    relation = Relation(frozenset({frozenset("ab"), frozenset("bc")}))
    assert set(relation.words("a")) & set(relation.words(text))
    world = _World(relation)
    _answer_until(FindDocuments, world.requests(_writer("dead", "a", relation)))
    told = list(world.requests(_writer("one", text, relation)))
    assert (told[-1][0].status, any(isinstance(one, Pause) for one in told)) == ("accepted", waits)


def test_nobody_waits_for_a_change_that_was_given_up():
    world = _World()
    for id_, text in (("changed", "x"), ("like", "a")):
        world.store = world.store.put("documents", id_, 1, Source({"_dedup": {"digest": text}})).refreshed()
    first = Newcomer("first", (("changed", "a"),))
    context = first.context(Policy("refuse"), _RELATION, first.register())
    *_, (refused,) = world.requests(decide(first.documents(_RELATION), context))
    world.store = world.store.put("documents", "like", 2, None).refreshed()
    *requests, (verdict,) = world.requests(_writer("second"))
    assert (refused.status, verdict.status) == ("refused", "accepted")
    assert not [one for one in requests if isinstance(one, Pause)]


class _TooBusy(_World):
    """A store that reserves ids, and is too busy for every document until the writer gives up."""

    def _answered(self, request: object) -> object:
        puts = [one for one in getattr(request, "actions", ()) if isinstance(one, Put)]
        if all(one.create or one.where == "intents" for one in puts):
            return super()._answered(request)
        self.store = replace(self.store, late=self.store.late + 10**9 + 1)
        return [WriteResult(429, None, "data too large") for _ in puts]


def test_a_document_that_the_store_is_too_busy_for_names_the_store_as_the_reason():
    with pytest.raises(EngineUnavailable, match=r"did not take 'one' for .* \(data too large\); try again"):
        list(_TooBusy().requests(_writer("one")))


def test_an_outage_beyond_the_longest_wait_is_not_tried_again():
    class Gone(_World):
        def _answered(self, request: object) -> object:
            assert not isinstance(request, Pause), "it is tried again"
            self.store = replace(self.store, late=self.store.late + 10**9 + 1)
            if isinstance(request, Now):
                return self.store.late
            raise EngineUnavailable("gone")

    with pytest.raises(EngineUnavailable, match="gone"):
        list(Gone().requests(_writer("one")))


def test_a_job_without_waiting_callers_releases_its_placeholders():
    world = _World()
    dead = world.requests(_writer("dead"))
    _answer_until(FindDocuments, dead)
    writer = Newcomer("waiting", (("waiting", "a"), ("other", "b")))
    caller = WaitingCaller(writer.documents(_RELATION))
    served = WaitingCaller(())
    job = writer.job(Policy("refuse"), _RELATION, [caller, served])
    *_, pause = world.requests(job.until_pause())
    job.deliver()
    assert (pause is not None, job.given_up, caller.done) == (True, False, False)
    caller.given_up = True
    assert job.given_up
    with pytest.raises(EngineError, match="interrupted"):
        list(world.requests(job.until_pause(EngineError("interrupted"))))
    assert world.until("waiting") is None
    assert world.until("dead") is not None


def test_an_error_reaches_only_callers_without_a_verdict():
    world = _World()
    _answer_until(FindDocuments, world.requests(_writer("dead")))
    writer = Newcomer("waiting", (("waiting", "a"), ("other", "b")))
    waiting, other = callers = [WaitingCaller([item]) for item in writer.documents(_RELATION)]
    job = writer.job(Policy("refuse"), _RELATION, callers)
    assert list(world.requests(job.until_pause()))[-1] is not None
    for _ in range(2):
        job.fail(EngineError("gone"))
    assert [verdict.status for verdict in other.result()] == ["accepted"]
    with pytest.raises(EngineError, match="gone"):
        waiting.result()


def test_a_clock_that_is_set_back_does_not_prolong_waiting():
    world = _World()
    world.store = replace(world.store, late=3_600_000_000)
    waiting = world.requests(_writer("waiting"))
    next(waiting)
    world.store = replace(world.store, late=3_600_000_005)
    dead = world.requests(_writer("dead"))
    _answer_until(FindDocuments, dead)
    world.store = replace(world.store, late=3_600_000_000)
    _answer_until(Pause, waiting)
    world.store = replace(world.store, late=0)
    with pytest.raises(EngineUnavailable, match="other writers have been deciding"):
        next(request for number, request in enumerate(waiting) if number == 1000)
