"""Steps 1 and 2 of the protocol: reserve the id, publish the intent, then search. Also: withdraw."""

from collections.abc import Iterable, Mapping, Sequence
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
    EXISTS,
    Action,
    Delete,
    FindDocuments,
    Member,
    Now,
    Put,
    ReadDocuments,
    Steps,
    Verdict,
    guard_revocation,
)


def reserve(members: Sequence[Member], context: DecisionContext) -> Steps[None]:
    """Reserve ids and publish intents; a member whose id another writer has reserved has no guard."""
    outside = [member for member in members if member.guard is None]
    now = yield Now()
    for member in outside:
        member.until, member.intent_id = now + context.lease, context.new_intent_id()
    puts = [
        Put(
            "documents",
            member.id,
            context.gate_fields.placeholder(member.until, member.intent_id),
            create=True,
        )
        for member in outside
    ]
    intents = [_intent(member, context) for member in outside]
    results = yield from context.register.publish(puts, intents)
    taken: list[Member] = []
    for member, written in zip(outside, results, strict=True):
        member.busy_reason = ""
        if written.status in (DONE, CREATED):
            member.guard = written.guard
        elif written.status == CONFLICT:
            taken.append(member)
        else:
            _drop_intent(member, context)
            if written.status in BUSY:
                member.busy_reason = written.reason
            else:
                member.verdict = Verdict("failed", member.id, reason=written.reason)
    if taken:
        yield from _take_over(taken, now, context)


def look(members: Sequence[Member], context: DecisionContext) -> Steps[None]:
    """Read the intents of others, then search: a document stored in between is found as one of the two."""
    yield from context.register.look()
    hits = yield FindDocuments(tuple(members))
    own = {member.intent_id for member in members}
    nominated = [
        [one for one in context.register.known.sharing(member.match_keys) if one.intent_id not in own]
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
    busy = {id(member): result.reason for member, result in results if result.status in BUSY}
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

    Raises:
        EngineUnavailable: the store was too busy to revoke some guards.
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
    if busy := [result.reason for result in written if result.status in BUSY]:
        raise not_deleted(busy[0])
    context.register.settle(member.intent_id for member in members)
    for member in members:
        member.retried = True
        member.reset()


def read_documents(ids: Iterable[str]) -> Steps[dict[str, VersionedDocument]]:
    """Read the newest version of documents, by id; deleted ones are missing."""
    wanted = tuple(sorted(set(ids)))
    if not wanted:
        return {}
    documents: list[VersionedDocument | None] = yield ReadDocuments(wanted)
    return {id_: held for id_, held in zip(wanted, documents, strict=True) if held is not None}


def find_stale(documents: Mapping[str, VersionedDocument], context: DecisionContext) -> Steps[set[str]]:
    """Return the ids of those documents whose fingerprint is of another text than they have."""
    if documents and context.judge.needs_texts:
        whole: list[VersionedDocument | None] = yield ReadDocuments(tuple(sorted(documents)), whole=True)
        documents = {one.id: one for one in whole if one is not None}
    return context.judge.stale({id_: one.source for id_, one in documents.items()}) if documents else set()


def _intent(member: Member, context: DecisionContext) -> Intent:
    guard = member.guard if member.changes else None
    print_ = context.judge.print(member)
    return Intent(member.intent_id, member.id, guard, member.order, member.until, member.match_keys, print_)


def _drop_intent(member: Member, context: DecisionContext) -> None:
    context.register.settle((member.intent_id,))
    member.intent_id = ""


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
        until = context.gate_fields.pending(held.source)
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
