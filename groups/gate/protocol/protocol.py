"""The protocol by which many writers decide at once, without locks: pure steps that yield requests.

1. A writer keeps the place of its document, by an empty placeholder or by the version of the document that it
   changes, and makes its intent known: all at once. That place is the guard: only a write under it lets the
   new text in.
2. It asks what others have made known, searches the documents after that, and reads again what it found, as
   it is now.
3. A document that matches decides. Else nobody goes on who sees an open intent that matches: of two the later
   withdraws, the earlier waits and looks again.
4. It lets its document in under the guard. Its intent goes once searches see the document.

A writer that dies leaves an open intent with a lease. When that has ended, whoever meets it takes the guard
away; so a writer that was only slow can't let anything in any more. Clocks decide about nothing else.
docs/gate.md has the argument, tests/groups/test_every_interleaving.py the proof.
"""

from collections.abc import Sequence
from contextlib import suppress

from shinglefold.errors import EngineError, EngineUnavailable
from shinglefold.groups.gate.protocol.commit import settle
from shinglefold.groups.gate.protocol.context import Terms
from shinglefold.groups.gate.protocol.intent_register import Shared
from shinglefold.groups.gate.protocol.keys import id_and_routing
from shinglefold.groups.gate.protocol.member import Member, Verdict
from shinglefold.groups.gate.protocol.requests import Now, Pause, Refresh, Steps
from shinglefold.groups.gate.protocol.reserve import enter, look, release


def decide(members: Sequence[Member], terms: Terms) -> Steps[list[Verdict]]:
    """Decide about the documents of a batch, whose ids differ; verdicts are in order.

    Where the store is not there for a moment, as when a node of it is lost, it begins again with those that
    are not decided.

    Raises:
        EngineUnavailable: others have kept a member waiting for too long, or the store does not come back.
            Then, and where the store fails, places are given back as far as it goes; what is let in stays.
    """
    begun = yield Now()
    for member in members:
        member.started = begun
    for earlier, later in terms.judge.pairs(members):
        members[later].waits.add(earlier)
    for seconds in (*terms.again.delays(), None):
        try:
            yield from _decided(members, begun, terms)
            break
        except GeneratorExit:
            raise
        except BaseException as error:
            with suppress(EngineError):
                yield from release(members, terms)
            if seconds is None or not isinstance(error, EngineUnavailable):
                raise
            now = yield Now()
            if abs(now - begun) > terms.patience:
                raise
        yield Pause(round(seconds * 1000))
    return [member.verdict for member in members if member.verdict is not None]


def _decided(members: Sequence[Member], begun: int, terms: Terms) -> Steps[None]:
    if any(member.attempt for member in members):
        # What the store was sent before it failed may still come in as long as places are kept.
        yield from release(members, terms)
    # Who has a verdict may have been told of it, and may have changed or deleted that document since.
    undecided = [member for member in members if member.verdict is None]
    while undecided:
        yield from enter(undecided, terms)
        inside = [member for member in undecided if member.guard is not None]
        if inside:
            yield from look(inside, terms)
            yield from settle(members, inside, terms)
        undecided = [member for member in members if member.verdict is None]
        if undecided:
            now = yield Now()
            if abs(now - begun) > terms.patience:
                raise EngineUnavailable(_kept_waiting(undecided[0], terms.patience // 1000))
            yield Pause(15)


def _kept_waiting(member: Member, seconds: int) -> str:
    """Return why a member is not decided in all this time."""
    id_, _ = id_and_routing(member.id)
    if member.turned_away:
        return f"the server has taken no place for {id_!r} in {seconds} s ({member.turned_away}); try again"
    return f"others have been deciding about documents like {id_!r} for {seconds} s; try again"


def tidy(register: Shared) -> Steps[None]:
    """Make visible to searches what is decided, so that nobody needs to know of its intents any more."""
    if ready := register.settled():
        yield Refresh()
        register.seen(ready)


__all__ = ["Terms", "decide", "tidy"]
