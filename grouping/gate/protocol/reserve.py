"""Steps 1 and 2 of the protocol: reserve the id, publish the intent, then search. Also the way back."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shinglefold.contracts.engine import VersionedDocument, WriteResult
from shinglefold.errors import EngineUnavailable
from shinglefold.grouping.gate.protocol.context import DecisionContext
from shinglefold.grouping.gate.protocol.intents import Intent
from shinglefold.grouping.gate.protocol.member import (
    BUSY,
    CONFLICT,
    CREATED,
    DONE,
    Action,
    Delete,
    FindDocuments,
    Member,
    Now,
    Put,
    ReadDocuments,
    Steps,
    Verdict,
)
from shinglefold.grouping.gate.protocol.placeholders import guard_revocation


def reserve(members: Sequence[Member], context: DecisionContext) -> Steps[None]:
    """Reserve ids and publish intents; a member whose id another writer has reserved has no guard."""
    outside = [member for member in members if member.guard is None]
    now = yield Now()
    for member in outside:
        member.until, member.intent_id = now + context.lease, context.new_intent_id()
    puts = [
        Put("documents", one.id, context.gate_fields.placeholder(one.until, one.intent_id), create=True)
        for one in outside
    ]
    kept = yield from context.register.publish(puts, [_intent(one, context) for one in outside])
    taken: list[Member] = []
    for member, written in zip(outside, kept, strict=True):
        member.turned_away = ""
        if written.status in (DONE, CREATED):
            member.guard = written.guard
        elif written.status == CONFLICT:
            taken.append(member)
        else:
            _turn_away(member, context)
            if written.status in BUSY:
                member.turned_away = written.reason
            else:
                member.verdict = Verdict("failed", member.id, reason=written.reason)
    if taken:
        yield from _take_over(taken, now, context)


def look(members: Sequence[Member], context: DecisionContext) -> Steps[None]:
    """Read the intents of others and then search: what is stored in between is found as one of the two."""
    yield from context.register.look()
    seen = yield FindDocuments(tuple(members))
    own = {member.intent_id for member in members}
    nominated = [
        [one for one in context.register.known.sharing(member.match_keys) if one.intent_id not in own]
        for member in members
    ]
    asked = [
        (member, one.print) for member, several in zip(members, nominated, strict=True) for one in several
    ]
    possible = iter(context.judge.possible(asked))
    for member, several, documents in zip(members, nominated, seen, strict=True):
        member.intents = [one for one in several if next(possible)]
        member.search_hits = documents
        member.related_ids |= {one.document for one in member.intents}
        member.nominated = list(dict.fromkeys((*documents.ids, *member.nominated)))


class Withdrawal(NamedTuple):
    """The answers to actions, and why the store kept some placeholders; "" where it deleted all."""

    written: list[WriteResult]
    busy: str


def withdraw(
    members: Sequence[Member], context: DecisionContext, first: Sequence[Action] = ()
) -> Steps[Withdrawal]:
    """Withdraw: delete placeholders and give up intents, so that members have no guard any more.

    Args:
        first: actions to run in the same request.
    """
    dropping = [member for member in members if member.guard is not None and not member.changes]
    drops = [Delete("documents", member.id, member.guard) for member in dropping]
    # A missing placeholder shows that its intent is over; a document that stays as it is does not.
    given_up = [member.intent_id for member in members if member.changes and member.intent_id]
    context.register.settle(member.intent_id for member in members)
    written = yield from context.register.withdraw([*first, *drops], given_up)
    answers = zip(dropping, written[len(first) :], strict=False)
    busy = {id(member): one.reason for member, one in answers if one.status in BUSY}
    for member in members:
        if id(member) not in busy:
            member.reset()
    return Withdrawal(written[: len(first)], next(iter(busy.values()), ""))


def not_deleted(reason: str) -> EngineUnavailable:
    """Return the error of a store that was too busy to delete placeholders."""
    return EngineUnavailable(
        f"the server did not delete the gate's placeholders ({reason}): they expire by themselves; try again"
    )


def release(members: Sequence[Member], context: DecisionContext) -> Steps[None]:
    """Take guards away after a failure, when it is unknown what of the last request was done.

    Where that fails, too, the intents stay open: a write that was sent may still be done under their guards.

    Raises:
        EngineUnavailable: the store was too busy for some of it.
    """
    there = yield from read_documents(member.id for member in members if member.intent_id)
    actions: list[Action] = []
    for member in members:
        held = there.get(member.id)
        if held is None or not member.intent_id:
            continue
        if member.intent_id == context.gate_fields.intent_id(held.source) or (
            member.changes and member.guard == held.guard
        ):
            actions.append(guard_revocation(held, context.gate_fields))
    written = (yield from context.register.withdraw(actions, ())) if actions else []
    if busy := [one.reason for one in written if one.status in BUSY]:
        raise not_deleted(busy[0])
    context.register.settle(member.intent_id for member in members)
    for member in members:
        member.retried = True
        member.reset()


def read_documents(ids: Iterable[str]) -> Steps[dict[str, VersionedDocument]]:
    """Read documents as they are now, by id; those that are gone are missing."""
    wanted = tuple(sorted(set(ids)))
    if not wanted:
        return {}
    there: list[VersionedDocument | None] = yield ReadDocuments(wanted)
    return {id_: held for id_, held in zip(wanted, there, strict=True) if held is not None}


def _intent(member: Member, context: DecisionContext) -> Intent:
    guard = member.guard if member.changes else None
    print_ = context.judge.print(member)
    return Intent(member.intent_id, member.id, guard, member.order, member.until, member.match_keys, print_)


def _turn_away(member: Member, context: DecisionContext) -> None:
    context.register.settle((member.intent_id,))
    member.intent_id = ""


def _take_over(members: Sequence[Member], now: int, context: DecisionContext) -> Steps[None]:
    """Reserve ids that exist: by the version of the stored document, or by an expired placeholder."""
    there = yield from read_documents(member.id for member in members)
    puts: list[Action] = []
    putting: list[Member] = []
    changing: list[Member] = []
    for member in members:
        held = there.get(member.id)
        if held is not None and context.gate_fields.intent_id(held.source) == member.intent_id:
            # The request was sent twice, because its connection broke.
            member.guard = held.guard
            continue
        _turn_away(member, context)
        if held is None:
            continue
        until = context.gate_fields.pending(held.source)
        if until is None:
            member.intent_id = context.new_intent_id()
            _change(member, held, context)
            changing.append(member)
        elif until < now:
            member.intent_id = context.new_intent_id()
            puts.append(
                Put(
                    "documents",
                    member.id,
                    context.gate_fields.placeholder(member.until, member.intent_id),
                    held.guard,
                )
            )
            putting.append(member)
    if not putting and not changing:
        return
    intents = [_intent(member, context) for member in (*putting, *changing)]
    answers: list[WriteResult] = yield from context.register.publish(puts, intents)
    for member, written in zip(putting, answers, strict=True):
        if written.status == DONE:
            member.guard = written.guard
        else:
            _turn_away(member, context)


def _change(member: Member, held: VersionedDocument, context: DecisionContext) -> None:
    member.guard, member.changes = held.guard, True
    group = context.gate_fields.group(held.source)
    same = context.gate_fields.same_text(member.document, held.source)
    if same and (group is not None or not context.groups):
        member.kept = group, context.gate_fields.leads(held.source)
