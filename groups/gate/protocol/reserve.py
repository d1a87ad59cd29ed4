"""How members come in, by a place and an intent that all know of, and how they leave again."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shinglefold.contracts.engine import VersionedDocument, WriteResult
from shinglefold.errors import EngineUnavailable
from shinglefold.groups.gate.protocol.context import Terms
from shinglefold.groups.gate.protocol.leases import closing
from shinglefold.groups.gate.protocol.member import Member, Verdict
from shinglefold.groups.gate.protocol.requests import (
    BUSY,
    CONFLICT,
    CREATED,
    DONE,
    Action,
    Drop,
    FindDocuments,
    Intent,
    Now,
    Put,
    Read,
    Steps,
)


def enter(members: Sequence[Member], terms: Terms) -> Steps[None]:
    """Keep places and make intents known; a member whose place is somebody else's stays outside."""
    outside = [member for member in members if member.guard is None]
    now = yield Now()
    for member in outside:
        member.until, member.attempt = now + terms.lease, terms.attempts()
    puts = [
        Put("documents", one.id, terms.forms.placeholder(one.until, one.attempt), create=True)
        for one in outside
    ]
    kept = yield from terms.register.enter(puts, [_intent(one, terms) for one in outside])
    taken: list[Member] = []
    for member, written in zip(outside, kept, strict=True):
        member.turned_away = ""
        if written.status in (DONE, CREATED):
            member.guard = written.guard
        elif written.status == CONFLICT:
            taken.append(member)
        else:
            _turn_away(member, terms)
            if written.status in BUSY:
                member.turned_away = written.reason
            else:
                member.verdict = Verdict("failed", member.id, reason=written.reason)
    if taken:
        yield from _take_over(taken, now, terms)


def look(members: Sequence[Member], terms: Terms) -> Steps[None]:
    """Learn of intents and, after that, search documents: what is let in between is found as one of both."""
    yield from terms.register.look()
    seen = yield FindDocuments(tuple(members))
    own = {member.attempt for member in members}
    nominated = [
        [one for one in terms.register.known.sharing(member.words) if one.attempt not in own]
        for member in members
    ]
    asked = [
        (member, one.print) for member, several in zip(members, nominated, strict=True) for one in several
    ]
    possible = iter(terms.judge.possible(asked))
    for member, several, documents in zip(members, nominated, seen, strict=True):
        member.intents = [one for one in several if next(possible)]
        member.seen = documents
        member.known |= {one.document for one in member.intents}
        member.nominated = list(dict.fromkeys((*documents.ids, *member.nominated)))


class Left(NamedTuple):
    """What became of actions, and why the store has not taken back some places; "" where it has all."""

    written: list[WriteResult]
    busy: str


def leave(members: Sequence[Member], terms: Terms, first: Sequence[Action] = ()) -> Steps[Left]:
    """Give places back; whoever left can't let anything in, and has no guard any more.

    Args:
        first: actions to run in the same request.
    """
    dropping = [member for member in members if member.guard is not None and not member.changes]
    drops = [Drop("documents", member.id, member.guard) for member in dropping]
    # Of a placeholder that is gone all can see that nothing comes of it, of a document they can't.
    given_up = [member.attempt for member in members if member.changes and member.attempt]
    terms.register.settle(member.attempt for member in members)
    written = yield from terms.register.leave([*first, *drops], given_up)
    answers = zip(dropping, written[len(first) :], strict=False)
    busy = {id(member): one.reason for member, one in answers if one.status in BUSY}
    for member in members:
        if id(member) not in busy:
            member.reset()
    return Left(written[: len(first)], next(iter(busy.values()), ""))


def not_taken_back(reason: str) -> EngineUnavailable:
    """Return the error of a store that keeps places which were given back."""
    return EngineUnavailable(f"places that the gate keeps were not given back ({reason}); try again")


def release(members: Sequence[Member], terms: Terms) -> Steps[None]:
    """Take guards away after a failure, when it is not known what of the last request was done.

    Where that fails, too, intents stay open: a write that the store was sent may still come in by them.

    Raises:
        EngineUnavailable: the store has not taken all of it.
    """
    there = yield from held_by(member.id for member in members if member.attempt)
    actions: list[Action] = []
    for member in members:
        held = there.get(member.id)
        if held is None or not member.attempt:
            continue
        if member.attempt == terms.forms.attempt(held.source) or (
            member.changes and member.guard == held.guard
        ):
            actions.append(closing(held, terms.forms))
    written = (yield from terms.register.leave(actions, ())) if actions else []
    if busy := [one.reason for one in written if one.status in BUSY]:
        raise not_taken_back(busy[0])
    terms.register.settle(member.attempt for member in members)
    for member in members:
        member.retried = True
        member.reset()


def held_by(ids: Iterable[str]) -> Steps[dict[str, VersionedDocument]]:
    """Read documents as they are now; those that are gone are left out."""
    wanted = tuple(sorted(set(ids)))
    if not wanted:
        return {}
    there: list[VersionedDocument | None] = yield Read(wanted)
    return {id_: held for id_, held in zip(wanted, there, strict=True) if held is not None}


def _intent(member: Member, terms: Terms) -> Intent:
    guard = member.guard if member.changes else None
    print_ = terms.judge.print(member)
    return Intent(member.attempt, member.id, guard, member.order, member.until, member.words, print_)


def _turn_away(member: Member, terms: Terms) -> None:
    terms.register.settle((member.attempt,))
    member.attempt = ""


def _take_over(members: Sequence[Member], now: int, terms: Terms) -> Steps[None]:
    """Take the version of a document that is there as the guard, or the place that a dead writer kept."""
    there = yield from held_by(member.id for member in members)
    puts: list[Action] = []
    putting: list[Member] = []
    changing: list[Member] = []
    for member in members:
        held = there.get(member.id)
        if held is not None and terms.forms.attempt(held.source) == member.attempt:
            # The request was sent twice, as its connection broke.
            member.guard = held.guard
            continue
        _turn_away(member, terms)
        if held is None:
            continue
        until = terms.forms.pending(held.source)
        if until is None:
            member.attempt = terms.attempts()
            _change(member, held, terms)
            changing.append(member)
        elif until < now:
            member.attempt = terms.attempts()
            puts.append(
                Put("documents", member.id, terms.forms.placeholder(member.until, member.attempt), held.guard)
            )
            putting.append(member)
    if not putting and not changing:
        return
    intents = [_intent(member, terms) for member in (*putting, *changing)]
    answers: list[WriteResult] = yield from terms.register.enter(puts, intents)
    for member, written in zip(putting, answers, strict=True):
        if written.status == DONE:
            member.guard = written.guard
        else:
            _turn_away(member, terms)


def _change(member: Member, held: VersionedDocument, terms: Terms) -> None:
    member.guard, member.changes = held.guard, True
    group = terms.forms.group(held.source)
    same = terms.forms.same_text(member.document, held.source)
    if same and (group is not None or not terms.groups):
        member.kept = group, terms.forms.leads(held.source)
