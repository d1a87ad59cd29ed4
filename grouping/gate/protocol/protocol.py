"""The protocol by which many writers decide at once, without locks: pure steps that yield requests.

1. Reserve: a writer reserves the id of its document, by an empty placeholder or by the
   version of the document that it changes. It publishes its intent in the same request. That version is the
   guard: only a write under it stores the new text.
2. Look: it reads the intents of the others, and searches the documents after that.
3. Decide (``decide.py``): it reads again what it found. A stored document that matches decides. Without one,
   a writer that sees a matching open intent does not store its document: of two writers the later withdraws,
   the earlier waits and looks again.
4. Commit: it stores its document under the guard. Its intent goes once searches see the document.

A writer that dies leaves an open intent with a lease. After the lease has expired, any other writer takes the
guard away, so that a writer that was only slow can't store anything any more. Clocks decide nothing else.
ARCHITECTURE.md has the argument, tests/grouping/test_every_interleaving.py the proof.
"""

import itertools
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from shinglefold.contracts.engine import NOT_RUN, VersionedDocument, WriteResult
from shinglefold.errors import EngineError, EngineUnavailable
from shinglefold.grouping.gate.protocol.decide import (
    Choice,
    DecisionContext,
    JoinGroup,
    Keep,
    Refuse,
    Stay,
    choices_of,
    read_again,
    read_documents,
)
from shinglefold.grouping.gate.protocol.group_limit import limit_groups
from shinglefold.grouping.gate.protocol.intent_register import SharedRegister
from shinglefold.grouping.gate.protocol.intents import Intent
from shinglefold.grouping.gate.protocol.member import (
    CONFLICT,
    CREATED,
    DONE,
    EXISTS,
    MISSING,
    REROUTED,
    Action,
    Delete,
    FindDocuments,
    Member,
    Now,
    Pause,
    Put,
    Refresh,
    Steps,
    Verdict,
    guard_revocation,
    id_and_routing,
)


def decide(members: Sequence[Member], context: DecisionContext) -> Steps[list[Verdict]]:
    """Decide about the documents of a batch, whose ids differ; return the verdicts in order.

    If the store is unavailable for a moment, as when a node is lost, the undecided members begin again.

    Raises:
        EngineUnavailable: others have kept a member waiting for too long, or the store does not come back.
            Placeholders are released as far as the store allows; documents that were stored stay.
    """
    begun = yield Now()
    for member in members:
        member.started = begun
    for earlier, later in context.judge.pairs(members):
        members[later].earlier_duplicates.add(earlier)
    for retry in itertools.count():
        try:
            yield from _decide_all(members, begun, context)
            break
        except GeneratorExit:
            raise
        except BaseException as error:
            with suppress(EngineError):
                yield from release(members, context)
            if retry >= context.retry.retries or not isinstance(error, EngineUnavailable):
                raise
            now = yield Now()
            if abs(now - begun) > context.max_wait:
                raise
        yield Pause(round(context.retry.delay(retry) * 1000))
    return [member.verdict for member in members if member.verdict is not None]


def _decide_all(members: Sequence[Member], begun: int, context: DecisionContext) -> Steps[None]:
    if any(member.intent_id for member in members):
        # A request that was sent before the store failed may still be done as long as the guards hold.
        yield from release(members, context)
    # A member with a verdict is left alone: its caller may have changed or deleted the document since.
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
                raise EngineUnavailable(_undecided_reason(undecided[0], context.max_wait // 1000))
            yield Pause(15)


def _undecided_reason(member: Member, seconds: int) -> str:
    id_, _ = id_and_routing(member.id)
    if member.busy_reason:
        return f"the server did not take {id_!r} for {seconds} s ({member.busy_reason}); try again"
    return f"other writers have been deciding about documents like {id_!r} for {seconds} s; try again"


def publish_settled(register: SharedRegister) -> Steps[None]:
    """Make decided documents visible to searches, so that their intents can go."""
    if batches := register.settled_batches():
        yield Refresh()
        register.forget(batches)


def reserve(members: Sequence[Member], context: DecisionContext) -> Steps[None]:
    """Reserve ids and publish intents; a member whose id another writer has reserved has no guard."""
    now = yield Now()
    for member in members:
        member.until, member.intent_id = now + context.lease, context.new_intent_id()
    puts = [
        Put(
            "documents",
            member.id,
            context.gate_fields.placeholder(member.until, member.intent_id),
            create=True,
        )
        for member in members
    ]
    intents = [_intent(member, context) for member in members]
    results = yield from context.register.publish(puts, intents)
    taken: list[Member] = []
    for member, written in zip(members, results, strict=True):
        member.busy_reason = ""
        if written.status in (DONE, CREATED):
            member.guard = written.guard
        elif written.status == CONFLICT:
            taken.append(member)
        else:
            _drop_intent(member, context)
            if written.status in NOT_RUN:
                member.busy_reason = written.reason
            else:
                member.verdict = Verdict("failed", member.id, reason=written.reason)
    if taken:
        yield from _take_over(taken, now, context)


def _take_over(members: Sequence[Member], now: int, context: DecisionContext) -> Steps[None]:
    """Reserve ids that exist: guard the version of a stored document, or replace an expired placeholder."""
    stored = yield from read_documents(member.id for member in members)
    puts: list[Action] = []
    expired: list[Member] = []
    changing: list[Member] = []
    for member in members:
        held = stored.get(member.id)
        if held is not None and context.gate_fields.intent_id(held.source) == member.intent_id:
            # The connection broke, and the client sent the request twice.
            member.guard = held.guard
            continue
        _drop_intent(member, context)
        if held is None:
            continue
        until = context.gate_fields.expiry_of(held.source)
        # The member itself may have been stored before the store failed.
        own = member.retried and context.gate_fields.same_text(member.document, held.source)
        if until is None and member.create and not own:
            member.verdict = Verdict("failed", member.id, reason=EXISTS)
        elif until is None:
            member.intent_id = context.new_intent_id()
            _change(member, held, context)
            changing.append(member)
        elif until < now:
            member.intent_id = context.new_intent_id()
            placeholder = context.gate_fields.placeholder(member.until, member.intent_id)
            puts.append(Put("documents", member.id, placeholder, held.guard))
            expired.append(member)
    if not expired and not changing:
        return
    intents = [_intent(member, context) for member in (*expired, *changing)]
    results: list[WriteResult] = yield from context.register.publish(puts, intents)
    for member, written in zip(expired, results, strict=True):
        if written.status == DONE:
            member.guard = written.guard
        else:
            _drop_intent(member, context)


def _change(member: Member, held: VersionedDocument, context: DecisionContext) -> None:
    member.guard, member.changes = held.guard, True
    group = context.gate_fields.group(held.source)
    same_text = context.gate_fields.same_text(member.document, held.source)
    if same_text and (group is not None or not context.groups):
        member.kept = group, context.gate_fields.leads(held.source)


def _intent(member: Member, context: DecisionContext) -> Intent:
    guard = member.guard if member.changes else None
    print_ = context.judge.print(member)
    return Intent(member.intent_id, member.id, guard, member.order, member.until, member.match_keys, print_)


def _drop_intent(member: Member, context: DecisionContext) -> None:
    context.register.settle((member.intent_id,))
    member.intent_id = ""


def look(members: Sequence[Member], context: DecisionContext) -> Steps[None]:
    """Read the intents of others, then search: a document stored in between is found as one of the two."""
    yield from context.register.look()
    hits = yield FindDocuments(tuple(members))
    own = {member.intent_id for member in members}
    nominated = [
        [one for one in context.register.known.with_match_keys(member.match_keys) if one.intent_id not in own]
        for member in members
    ]
    pairs = [
        (member, intent.print)
        for member, intents in zip(members, nominated, strict=True)
        for intent in intents
    ]
    possible = iter(context.judge.possible(pairs))
    for member, intents, found in zip(members, nominated, hits, strict=True):
        member.intents = [intent for intent in intents if next(possible)]
        member.search_hits = found
        member.related_ids |= {intent.document for intent in member.intents}
        member.nominated = list(dict.fromkeys((*found.ids, *member.nominated)))


class Withdrawal(NamedTuple):
    """The results of a withdrawal.

    Attributes:
        written: those of the first actions.
        busy: why the store kept some placeholders; "" if it deleted all.
        deleted: the documents whose placeholders it deleted; others were gone already.
    """

    written: list[WriteResult]
    busy: str
    deleted: frozenset[str]


def withdraw(
    members: Sequence[Member], context: DecisionContext, first: Sequence[Action] = ()
) -> Steps[Withdrawal]:
    """Delete placeholders and give up intents, so that members have no guard any more.

    Args:
        first: actions to run in the same request.
    """
    reserved = [member for member in members if member.guard is not None and not member.changes]
    deletions = [Delete("documents", member.id, member.guard) for member in reserved]
    # A missing placeholder shows that its intent is over. An unchanged document does not show it.
    given_up = [member.intent_id for member in members if member.changes and member.intent_id]
    context.register.settle(member.intent_id for member in members)
    written = yield from context.register.withdraw([*first, *deletions], given_up)
    results = list(zip(reserved, written[len(first) :], strict=False))
    busy = {id(member): result.reason for member, result in results if result.status in NOT_RUN}
    deleted = frozenset(member.id for member, result in results if result.status == DONE)
    for member in members:
        if id(member) not in busy:
            member.reset()
    return Withdrawal(written[: len(first)], next(iter(busy.values()), ""), deleted)


def not_deleted(reason: str) -> EngineUnavailable:
    """Return the error of a store that was too busy to delete placeholders."""
    return EngineUnavailable(
        f"the server did not delete the gate's placeholders ({reason}): they expire by themselves; try again"
    )


def release(members: Sequence[Member], context: DecisionContext) -> Steps[None]:
    """Revoke guards after a failure, when it is unknown which actions of the last request were done.

    If that fails, too, the intents stay open: a write that was sent may still be done under their guards.
    """
    stored = yield from read_documents(member.id for member in members if member.intent_id)
    actions: list[Action] = []
    for member in members:
        held = stored.get(member.id)
        if held is None or not member.intent_id:
            continue
        if member.intent_id == context.gate_fields.intent_id(held.source) or (
            member.changes and member.guard == held.guard
        ):
            actions.append(guard_revocation(held, context.gate_fields))
    written = (yield from context.register.withdraw(actions, ())) if actions else []
    if busy := [result.reason for result in written if result.status in NOT_RUN]:
        raise not_deleted(busy[0])
    context.register.settle(member.intent_id for member in members)
    for member in members:
        member.retried = True
        member.reset()


def commit(members: Sequence[Member], inside: list[Member], context: DecisionContext) -> Steps[None]:
    """Decide about members until each has a verdict or has withdrawn.

    The search is not repeated: a writer that comes after it sees our intent, and waits for us.

    Args:
        members: all members of the batch.
        inside: the members with a guard.
    """
    entered = inside[0].until - context.lease
    while inside:
        now = yield from read_again(inside, context)
        count = len(inside)
        # The absolute difference: if a clock was set back, we must not wait until it has caught up.
        slow = abs(now - entered) > context.lease // 2
        leaving: list[tuple[Member, Verdict | None]] = []
        accepted: list[tuple[Member, int | None, bool]] = []
        choices = yield from _choices(inside, context)
        for member, choice in zip(inside, choices, strict=True):
            match choice:
                case Keep():
                    accepted.append((member, choice.group, choice.leads))
                case Stay():
                    # The member may wait for another of its batch that has lost its guard.
                    earlier = [members[position] for position in member.earlier_duplicates]
                    outside = any(one.verdict is None and one.guard is None for one in earlier)
                    if choice is Stay.WITHDRAW or slow or outside:
                        leaving.append((member, None))
                case Refuse(like):
                    stale = frozenset(member.stale)
                    refused = Verdict("refused", member.id, like.group, like=like, stale=stale)
                    leaving.append((member, refused))
                case JoinGroup():
                    accepted.append((member, choice.group, False))
                case _:
                    accepted.append((member, member.number if context.groups else None, True))
        yield from _store(accepted, leaving, context)
        inside = [member for member in inside if member.guard is not None and member.verdict is None]
        _resolve_duplicates(members, inside)
        if inside and len(inside) == count:
            yield Pause(10)
            if any(intent.guard is not None for member in inside for intent in member.pending):
                # A stored document does not show whether its change was withdrawn.
                yield from context.register.look()


def _choices(members: Sequence[Member], context: DecisionContext) -> Steps[list[Choice]]:
    choices = yield from choices_of(members, context)
    if context.policy.action == "cap":
        return (yield from limit_groups(members, choices, context))
    return choices


def _resolve_duplicates(members: Sequence[Member], inside: Sequence[Member]) -> None:
    """Turn decided earlier duplicates into related documents."""
    for member in inside:
        decided = {
            position for position in member.earlier_duplicates if members[position].verdict is not None
        }
        member.related_ids |= {members[position].id for position in decided}
        member.earlier_duplicates -= decided


def _store(
    accepted: Sequence[tuple[Member, int | None, bool]],
    leaving: Sequence[tuple[Member, Verdict | None]],
    context: DecisionContext,
) -> Steps[None]:
    """Store accepted documents under their guards, and withdraw the others.

    A member whose guard is gone begins again. A verdict is given only once the placeholder is deleted,
    because the protocol does nothing more for a caller that has its verdict.
    """
    writes = [
        Put(
            "documents", member.id, context.gate_fields.add_group(member.document, group, leads), member.guard
        )
        for member, group, leads in accepted
    ]
    first = yield from withdraw([member for member, _ in leaving], context, writes)
    context.register.settle(member.intent_id for member, _, _ in accepted)
    _set_verdicts(leaving)
    failed: list[tuple[Member, Verdict | None]] = []
    conflicting: set[str] = set()
    for (member, group, leads), written in zip(accepted, first.written, strict=True):
        if written.status in (DONE, CREATED):
            member.stored = written.guard
            member.verdict = Verdict(
                "accepted",
                member.id,
                group,
                leads and group is not None,
                replaced=member.replaces,
                stale=frozenset(member.stale),
            )
            continue
        again = written.status in (CONFLICT, MISSING, *NOT_RUN)
        member.busy_reason = written.reason if written.status in NOT_RUN else ""
        conflicting |= {member.id} if written.status == CONFLICT else set()
        failed.append((member, None if again else Verdict("failed", member.id, reason=written.reason)))
    second = yield from withdraw([member for member, _ in failed], context)
    # The guard held, so that no other writer was faster: the write went to another shard.
    rerouted = conflicting & second.deleted
    _set_verdicts(
        [
            (member, Verdict("failed", member.id, reason=REROUTED) if member.id in rerouted else verdict)
            for member, verdict in failed
        ]
    )
    if busy := first.busy or second.busy:
        raise not_deleted(busy)


def _set_verdicts(leaving: Sequence[tuple[Member, Verdict | None]]) -> None:
    for member, verdict in leaving:
        if member.guard is None:
            member.verdict = verdict
