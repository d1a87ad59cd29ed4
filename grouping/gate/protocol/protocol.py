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
from shinglefold.grouping.gate.protocol.pending_document import (
    CONFLICT,
    CREATED,
    DONE,
    EXISTS,
    MISSING,
    REROUTED,
    Action,
    Delete,
    FindDocuments,
    Now,
    Pause,
    PendingDocument,
    Put,
    Refresh,
    Steps,
    Verdict,
    guard_revocation,
    id_and_routing,
)


def decide(items: Sequence[PendingDocument], context: DecisionContext) -> Steps[list[Verdict]]:
    """Decide about the documents of a batch, whose ids differ; return the verdicts in order.

    If the store is unavailable for a moment, as when a node is lost, the undecided documents begin again.

    Raises:
        EngineUnavailable: others have kept a document waiting for too long, or the store does not come back.
            Placeholders are released as far as the store allows; documents that were stored stay.
    """
    begun = yield Now()
    for item in items:
        item.started = begun
    for earlier, later in context.judge.pairs(items):
        items[later].earlier_duplicates.add(earlier)
    for retry in itertools.count():
        try:
            yield from _decide_all(items, begun, context)
            break
        except GeneratorExit:
            raise
        except BaseException as error:
            with suppress(EngineError):
                yield from release(items, context)
            if retry >= context.retry.retries or not isinstance(error, EngineUnavailable):
                raise
            now = yield Now()
            if abs(now - begun) > context.max_wait:
                raise
        yield Pause(round(context.retry.delay(retry) * 1000))
    return [item.verdict for item in items if item.verdict is not None]


def _decide_all(items: Sequence[PendingDocument], begun: int, context: DecisionContext) -> Steps[None]:
    if any(item.intent_id for item in items):
        # A request that was sent before the store failed may still be done as long as the guards hold.
        yield from release(items, context)
    # A document with a verdict is left alone: its caller may have changed or deleted it since.
    undecided = [item for item in items if item.verdict is None]
    while undecided:
        yield from reserve(undecided, context)
        inside = [item for item in undecided if item.guard is not None]
        if inside:
            yield from look(inside, context)
            yield from commit(items, inside, context)
        undecided = [item for item in items if item.verdict is None]
        if undecided:
            now = yield Now()
            if abs(now - begun) > context.max_wait:
                raise EngineUnavailable(_undecided_reason(undecided[0], context.max_wait // 1000))
            yield Pause(15)


def _undecided_reason(item: PendingDocument, seconds: int) -> str:
    id_, _ = id_and_routing(item.id)
    if item.busy_reason:
        return f"the server did not take {id_!r} for {seconds} s ({item.busy_reason}); try again"
    return f"other writers have been deciding about documents like {id_!r} for {seconds} s; try again"


def publish_settled(register: SharedRegister) -> Steps[None]:
    """Make decided documents visible to searches, so that their intents can go."""
    if batches := register.settled_batches():
        yield Refresh()
        register.forget(batches)


def reserve(items: Sequence[PendingDocument], context: DecisionContext) -> Steps[None]:
    """Reserve ids and publish intents; a document whose id another writer has reserved has no guard."""
    now = yield Now()
    for item in items:
        item.until, item.intent_id = now + context.lease, context.new_intent_id()
    puts = [
        Put(
            "documents",
            item.id,
            context.gate_fields.placeholder(item.until, item.intent_id),
            create=True,
        )
        for item in items
    ]
    intents = [_intent(item, context) for item in items]
    results = yield from context.register.publish(puts, intents)
    taken: list[PendingDocument] = []
    for item, written in zip(items, results, strict=True):
        item.busy_reason = ""
        if written.status in (DONE, CREATED):
            item.guard = written.guard
        elif written.status == CONFLICT:
            taken.append(item)
        else:
            _drop_intent(item, context)
            if written.status in NOT_RUN:
                item.busy_reason = written.reason
            else:
                item.verdict = Verdict("failed", item.id, reason=written.reason)
    if taken:
        yield from _take_over(taken, now, context)


def _take_over(items: Sequence[PendingDocument], now: int, context: DecisionContext) -> Steps[None]:
    """Reserve ids that exist: guard the version of a stored document, or replace an expired placeholder."""
    stored = yield from read_documents(item.id for item in items)
    puts: list[Action] = []
    expired: list[PendingDocument] = []
    changing: list[PendingDocument] = []
    for item in items:
        held = stored.get(item.id)
        if held is not None and context.gate_fields.intent_id(held.source) == item.intent_id:
            # The connection broke, and the client sent the request twice.
            item.guard = held.guard
            continue
        _drop_intent(item, context)
        if held is None:
            continue
        until = context.gate_fields.expiry_of(held.source)
        # The document itself may have been stored before the store failed.
        own = item.retried and context.gate_fields.same_text(item.document, held.source)
        if until is None and item.create and not own:
            item.verdict = Verdict("failed", item.id, reason=EXISTS)
        elif until is None:
            item.intent_id = context.new_intent_id()
            _change(item, held, context)
            changing.append(item)
        elif until < now:
            item.intent_id = context.new_intent_id()
            placeholder = context.gate_fields.placeholder(item.until, item.intent_id)
            puts.append(Put("documents", item.id, placeholder, held.guard))
            expired.append(item)
    if not expired and not changing:
        return
    intents = [_intent(item, context) for item in (*expired, *changing)]
    results: list[WriteResult] = yield from context.register.publish(puts, intents)
    for item, written in zip(expired, results, strict=True):
        if written.status == DONE:
            item.guard = written.guard
        else:
            _drop_intent(item, context)


def _change(item: PendingDocument, held: VersionedDocument, context: DecisionContext) -> None:
    item.guard, item.changes = held.guard, True
    group = context.gate_fields.group(held.source)
    same_text = context.gate_fields.same_text(item.document, held.source)
    if same_text and (group is not None or not context.groups):
        item.kept = group, context.gate_fields.leads(held.source)


def _intent(item: PendingDocument, context: DecisionContext) -> Intent:
    guard = item.guard if item.changes else None
    print_ = context.judge.print(item)
    return Intent(item.intent_id, item.id, guard, item.order, item.until, item.match_keys, print_)


def _drop_intent(item: PendingDocument, context: DecisionContext) -> None:
    context.register.settle((item.intent_id,))
    item.intent_id = ""


def look(items: Sequence[PendingDocument], context: DecisionContext) -> Steps[None]:
    """Read the intents of others, then search: a document stored in between is found as one of the two."""
    yield from context.register.look()
    hits = yield FindDocuments(tuple(items))
    own = {item.intent_id for item in items}
    nominated = [
        [one for one in context.register.known.with_match_keys(item.match_keys) if one.intent_id not in own]
        for item in items
    ]
    pairs = [
        (item, intent.print) for item, intents in zip(items, nominated, strict=True) for intent in intents
    ]
    possible = iter(context.judge.possible(pairs))
    for item, intents, found in zip(items, nominated, hits, strict=True):
        item.intents = [intent for intent in intents if next(possible)]
        item.search_hits = found
        item.related_ids |= {intent.document for intent in item.intents}
        item.nominated = list(dict.fromkeys((*found.ids, *item.nominated)))


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
    items: Sequence[PendingDocument], context: DecisionContext, first: Sequence[Action] = ()
) -> Steps[Withdrawal]:
    """Delete placeholders and give up intents, so that documents have no guard any more.

    Args:
        first: actions to run in the same request.
    """
    reserved = [item for item in items if item.guard is not None and not item.changes]
    deletions = [Delete("documents", item.id, item.guard) for item in reserved]
    # A missing placeholder shows that its intent is over. An unchanged document does not show it.
    given_up = [item.intent_id for item in items if item.changes and item.intent_id]
    context.register.settle(item.intent_id for item in items)
    written = yield from context.register.withdraw([*first, *deletions], given_up)
    results = list(zip(reserved, written[len(first) :], strict=False))
    busy = {id(item): result.reason for item, result in results if result.status in NOT_RUN}
    deleted = frozenset(item.id for item, result in results if result.status == DONE)
    for item in items:
        if id(item) not in busy:
            item.reset()
    return Withdrawal(written[: len(first)], next(iter(busy.values()), ""), deleted)


def not_deleted(reason: str) -> EngineUnavailable:
    """Return the error of a store that was too busy to delete placeholders."""
    return EngineUnavailable(
        f"the server did not delete the gate's placeholders ({reason}): they expire by themselves; try again"
    )


def release(items: Sequence[PendingDocument], context: DecisionContext) -> Steps[None]:
    """Revoke guards after a failure, when it is unknown which actions of the last request were done.

    If that fails, too, the intents stay open: a write that was sent may still be done under their guards.
    """
    stored = yield from read_documents(item.id for item in items if item.intent_id)
    actions: list[Action] = []
    for item in items:
        held = stored.get(item.id)
        if held is None or not item.intent_id:
            continue
        if item.intent_id == context.gate_fields.intent_id(held.source) or (
            item.changes and item.guard == held.guard
        ):
            actions.append(guard_revocation(held, context.gate_fields))
    written = (yield from context.register.withdraw(actions, ())) if actions else []
    if busy := [result.reason for result in written if result.status in NOT_RUN]:
        raise not_deleted(busy[0])
    context.register.settle(item.intent_id for item in items)
    for item in items:
        item.retried = True
        item.reset()


def commit(
    items: Sequence[PendingDocument], inside: list[PendingDocument], context: DecisionContext
) -> Steps[None]:
    """Decide about documents until each has a verdict or has withdrawn.

    The search is not repeated: a writer that comes after it sees our intent, and waits for us.

    Args:
        items: all documents of the batch.
        inside: the documents with a guard.
    """
    entered = inside[0].until - context.lease
    while inside:
        now = yield from read_again(inside, context)
        count = len(inside)
        # The absolute difference: if a clock was set back, we must not wait until it has caught up.
        slow = abs(now - entered) > context.lease // 2
        leaving: list[tuple[PendingDocument, Verdict | None]] = []
        accepted: list[tuple[PendingDocument, int | None, bool]] = []
        choices = yield from _choices(inside, context)
        for item, choice in zip(inside, choices, strict=True):
            match choice:
                case Keep():
                    accepted.append((item, choice.group, choice.leads))
                case Stay():
                    # The document may wait for another of its batch that has lost its guard.
                    earlier = [items[position] for position in item.earlier_duplicates]
                    outside = any(one.verdict is None and one.guard is None for one in earlier)
                    if choice is Stay.WITHDRAW or slow or outside:
                        leaving.append((item, None))
                case Refuse(like):
                    stale = frozenset(item.stale)
                    refused = Verdict("refused", item.id, like.group, like=like, stale=stale)
                    leaving.append((item, refused))
                case JoinGroup():
                    accepted.append((item, choice.group, False))
                case _:
                    accepted.append((item, item.number if context.groups else None, True))
        yield from _store(accepted, leaving, context)
        inside = [item for item in inside if item.guard is not None and item.verdict is None]
        _resolve_duplicates(items, inside)
        if inside and len(inside) == count:
            yield Pause(10)
            if any(intent.guard is not None for item in inside for intent in item.open_intents):
                # A stored document does not show whether its change was withdrawn.
                yield from context.register.look()


def _choices(items: Sequence[PendingDocument], context: DecisionContext) -> Steps[list[Choice]]:
    choices = yield from choices_of(items, context)
    if context.policy.action == "cap":
        return (yield from limit_groups(items, choices, context))
    return choices


def _resolve_duplicates(items: Sequence[PendingDocument], inside: Sequence[PendingDocument]) -> None:
    """Turn decided earlier duplicates into related documents."""
    for item in inside:
        decided = {position for position in item.earlier_duplicates if items[position].verdict is not None}
        item.related_ids |= {items[position].id for position in decided}
        item.earlier_duplicates -= decided


def _store(
    accepted: Sequence[tuple[PendingDocument, int | None, bool]],
    leaving: Sequence[tuple[PendingDocument, Verdict | None]],
    context: DecisionContext,
) -> Steps[None]:
    """Store accepted documents under their guards, and withdraw the others.

    A document whose guard is gone begins again. A verdict is given only once the placeholder is deleted,
    because the protocol does nothing more for a caller that has its verdict.
    """
    writes = [
        Put("documents", item.id, context.gate_fields.add_group(item.document, group, leads), item.guard)
        for item, group, leads in accepted
    ]
    first = yield from withdraw([item for item, _ in leaving], context, writes)
    context.register.settle(item.intent_id for item, _, _ in accepted)
    _set_verdicts(leaving)
    failed: list[tuple[PendingDocument, Verdict | None]] = []
    conflicting: set[str] = set()
    for (item, group, leads), written in zip(accepted, first.written, strict=True):
        if written.status in (DONE, CREATED):
            item.stored = written.guard
            item.verdict = Verdict(
                "accepted",
                item.id,
                group,
                leads and group is not None,
                replaced=item.replaces,
                stale=frozenset(item.stale),
            )
            continue
        again = written.status in (CONFLICT, MISSING, *NOT_RUN)
        item.busy_reason = written.reason if written.status in NOT_RUN else ""
        conflicting |= {item.id} if written.status == CONFLICT else set()
        failed.append((item, None if again else Verdict("failed", item.id, reason=written.reason)))
    second = yield from withdraw([item for item, _ in failed], context)
    # The guard held, so that no other writer was faster: the write went to another shard.
    rerouted = conflicting & second.deleted
    _set_verdicts(
        [
            (item, Verdict("failed", item.id, reason=REROUTED) if item.id in rerouted else verdict)
            for item, verdict in failed
        ]
    )
    if busy := first.busy or second.busy:
        raise not_deleted(busy)


def _set_verdicts(leaving: Sequence[tuple[PendingDocument, Verdict | None]]) -> None:
    for item, verdict in leaving:
        if item.guard is None:
            item.verdict = verdict
