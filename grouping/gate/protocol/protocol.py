"""The protocol by which many writers decide at once, without locks: pure steps that yield requests.

1. Reserve (``reserve.py``): a writer reserves the id of its document, by an empty placeholder or by the
version
   of the document that it changes, and publishes its intent, all in one request. That version is the guard:
   only a write under it stores the new text.
2. Look (``reserve.py``): it reads the intents of the others, and searches the documents after that.
3. Decide (``commit.py``, ``decisions.py``): it reads again what it found, as it is now. A stored document
that
   matches decides. Without one, a writer that sees an open intent that matches does not go on: of two writers
   the later withdraws, the earlier waits and looks again.
4. Commit (``commit.py``): it stores its document under the guard. Its intent goes once searches see the
   document.

A writer that dies leaves an open intent with a lease. After the lease has expired, any other writer takes the
guard away, so that a writer that was only slow can't store anything any more. Clocks decide nothing else.
docs/gate.md has the argument, tests/grouping/test_every_interleaving.py the proof.
"""

from collections.abc import Sequence
from contextlib import suppress

from shinglefold.errors import EngineError, EngineUnavailable
from shinglefold.grouping.gate.protocol.commit import commit
from shinglefold.grouping.gate.protocol.context import DecisionContext
from shinglefold.grouping.gate.protocol.intent_register import SharedRegister
from shinglefold.grouping.gate.protocol.member import Member, Verdict
from shinglefold.grouping.gate.protocol.placeholders import id_and_routing
from shinglefold.grouping.gate.protocol.requests import Now, Pause, Refresh, Steps
from shinglefold.grouping.gate.protocol.reserve import look, release, reserve


def decide(members: Sequence[Member], context: DecisionContext) -> Steps[list[Verdict]]:
    """Decide about the documents of a batch, whose ids differ; verdicts are in order.

    Where the store is unavailable for a moment, as when a node is lost, the undecided ones begin again.

    Raises:
        EngineUnavailable: others have kept a member waiting for too long, or the store does not come back.
            Then
            placeholders are released as far as the store allows; documents that were stored stay.
    """
    begun = yield Now()
    for member in members:
        member.started = begun
    for earlier, later in context.judge.pairs(members):
        members[later].earlier_duplicates.add(earlier)
    for seconds in (*context.retry.delays(), None):
        try:
            yield from _decided(members, begun, context)
            break
        except GeneratorExit:
            raise
        except BaseException as error:
            with suppress(EngineError):
                yield from release(members, context)
            if seconds is None or not isinstance(error, EngineUnavailable):
                raise
            now = yield Now()
            if abs(now - begun) > context.max_wait:
                raise
        yield Pause(round(seconds * 1000))
    return [member.verdict for member in members if member.verdict is not None]


def _decided(members: Sequence[Member], begun: int, context: DecisionContext) -> Steps[None]:
    if any(member.intent_id for member in members):
        # What the store was sent before it failed may still be stored as long as the guards hold.
        yield from release(members, context)
    # A caller may have changed or deleted a document since it got the verdict.
    undecided = [member for member in members if member.verdict is None]
    while undecided:
        yield from reserve(undecided, context)
        inside = [member for member in undecided if member.guard is not None]
        if inside:
            yield from look(inside, context)
            yield from commit(members, inside, context)
        undecided = [member for member in members if member.verdict is None]
        if undecided:
            now = yield Now()
            if abs(now - begun) > context.max_wait:
                raise EngineUnavailable(_kept_waiting(undecided[0], context.max_wait // 1000))
            yield Pause(15)


def _kept_waiting(member: Member, seconds: int) -> str:
    """Return why a member is still undecided."""
    id_, _ = id_and_routing(member.id)
    if member.turned_away:
        return f"the server refused to reserve {id_!r} for {seconds} s ({member.turned_away}); try again"
    return f"other writers have been deciding about documents like {id_!r} for {seconds} s; try again"


def publish_settled(register: SharedRegister) -> Steps[None]:
    """Make decided documents visible to searches, so that their intents can go."""
    if ready := register.settled():
        yield Refresh()
        register.seen(ready)


__all__ = ["DecisionContext", "decide", "publish_settled"]
