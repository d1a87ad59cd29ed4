"""The protocol by which many writers decide at once, without locks: pure steps that yield requests.

1. Reserve (``reserve.py``): a writer reserves the id of its document, by an empty placeholder or by the
   version of the document that it changes. It publishes its intent in the same request. That version is the
   guard: only a write under it stores the new text.
2. Look (``reserve.py``): it reads the intents of the others, and searches the documents after that.
3. Decide (``decide.py``): it reads again what it found. A stored document that matches decides. Without one,
   a writer that sees a matching open intent does not store its document: of two writers the later withdraws,
   the earlier waits and looks again.
4. Commit: it stores its document under the guard. Its intent goes once searches see the document.

A writer that dies leaves an open intent with a lease. After the lease has expired, any other writer takes the
guard away, so that a writer that was only slow can't store anything any more. Clocks decide nothing else.
ARCHITECTURE.md has the argument, tests/grouping/test_every_interleaving.py the proof.
"""

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from shinglefold.contracts.engine import VersionedDocument
from shinglefold.errors import EngineError, EngineUnavailable
from shinglefold.grouping.gate.protocol.context import DecisionContext
from shinglefold.grouping.gate.protocol.decide import JoinGroup, Keep, Refuse, Stay, choices_of
from shinglefold.grouping.gate.protocol.intent_register import SharedRegister
from shinglefold.grouping.gate.protocol.intents import Intent
from shinglefold.grouping.gate.protocol.member import (
    BUSY,
    CONFLICT,
    CREATED,
    DONE,
    MISSING,
    REROUTED,
    FindDocuments,
    GateFields,
    Member,
    Now,
    Pause,
    Put,
    Refresh,
    SearchHits,
    SimilarDocument,
    Steps,
    Verdict,
    Write,
    guard_revocation,
    id_and_routing,
    is_open,
)
from shinglefold.grouping.gate.protocol.reserve import (
    find_stale,
    look,
    not_deleted,
    read_documents,
    release,
    reserve,
    withdraw,
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
        return f"the server refused to reserve {id_!r} for {seconds} s ({member.busy_reason}); try again"
    return f"other writers have been deciding about documents like {id_!r} for {seconds} s; try again"


def publish_settled(register: SharedRegister) -> Steps[None]:
    """Make decided documents visible to searches, so that their intents can go."""
    if batches := register.settled():
        yield Refresh()
        register.forget(batches)


def commit(members: Sequence[Member], inside: list[Member], context: DecisionContext) -> Steps[None]:
    """Decide about members until each has a verdict or has withdrawn.

    The search is not repeated: a writer that comes after it sees our intent, and waits for us.

    Args:
        members: all members of the batch.
        inside: the members with a guard.
    """
    entered = inside[0].until - context.lease
    while inside:
        now = yield from _read_again(inside, context)
        count = len(inside)
        # The absolute difference: if a clock was set back, we must not wait until it has caught up.
        slow = abs(now - entered) > context.lease // 2
        leaving: list[tuple[Member, Verdict | None]] = []
        accepted: list[tuple[Member, int | None, bool]] = []
        choices = yield from choices_of(inside, context)
        for member, choice in zip(inside, choices, strict=True):
            match choice:
                case Keep():
                    accepted.append((member, choice.group, choice.leads))
                case Stay():
                    # It may wait for one of its batch that has no guard now.
                    earlier = [members[position] for position in member.earlier_duplicates]
                    outside = any(one.verdict is None and one.guard is None for one in earlier)
                    if choice is Stay.WITHDRAW or slow or outside:
                        leaving.append((member, None))
                case Refuse(like, full):
                    stale = frozenset(member.stale)
                    refused = Verdict("refused", member.id, like.group, like=like, full=full, stale=stale)
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


def _resolve_duplicates(members: Sequence[Member], inside: Sequence[Member]) -> None:
    """Turn decided earlier duplicates into related documents."""
    for member in inside:
        decided = {
            position for position in member.earlier_duplicates if members[position].verdict is not None
        }
        member.related_ids |= {members[position].id for position in decided}
        member.earlier_duplicates -= decided


def _read_again(members: Sequence[Member], context: DecisionContext) -> Steps[int]:
    """Read again which intents are open and which found documents match; return the time before that."""
    now: int = yield Now()
    parts = [list(member.related_ids) + member.nominated[: context.first_reads] for member in members]
    held = yield from read_documents(id_ for part in parts for id_ in part)
    withdrawn = context.register.known.withdrawn
    intents = {
        intent.intent_id: intent
        for member in members
        for intent in member.intents
        if intent.intent_id not in withdrawn
    }
    if dead := [
        intent
        for intent in intents.values()
        if intent.until < now and is_open(intent, held.get(intent.document), context.gate_fields)
    ]:
        yield from _revoke_guards(dead, held, context.gate_fields)
    for member in members:
        member.pending = [
            intent
            for intent in member.intents
            if intent.intent_id not in withdrawn
            and is_open(intent, held.get(intent.document), context.gate_fields)
        ]
        member.likes, member.stale = [], set()
    yield from _compare(members, parts, held, context)
    rest = [
        [id_ for id_ in member.nominated[context.first_reads :] if id_ not in member.related_ids]
        for member in members
    ]
    yield from _read_on(members, rest, context)
    undecided = [
        member for member in members if member.search_hits.truncated and _is_undecided(member, context)
    ]
    if undecided:
        yield from _read_on(undecided, (yield from _search_deep(undecided)), context)
    return now


def _read_on(members: Sequence[Member], rest: list[list[str]], context: DecisionContext) -> Steps[None]:
    """Read more of the found documents, until members can be decided or all documents were read."""
    while any(parts := [_further(member, ids, context) for member, ids in zip(members, rest, strict=True)]):
        rest = [[id_ for id_ in ids if id_ not in set(part)] for ids, part in zip(rest, parts, strict=True)]
        held = yield from read_documents(id_ for part in parts for id_ in part)
        yield from _compare(members, parts, held, context)


def _search_deep(members: Sequence[Member]) -> Steps[list[list[str]]]:
    """Search more candidates than the first search returned; return the new ids for each member."""
    found: list[SearchHits] = yield FindDocuments(tuple(members), deep=True)
    new: list[list[str]] = []
    for member, hits in zip(members, found, strict=True):
        known = {*member.related_ids, *member.nominated}
        new.append([id_ for id_ in hits.ids if id_ not in known])
        member.nominated += new[-1]
        member.search_hits = replace(
            member.search_hits, ids=hits.ids, ungrouped=hits.ungrouped, truncated=False
        )
    return new


def _is_undecided(member: Member, context: DecisionContext) -> bool:
    """Return whether further documents may decide about a member."""
    policy = context.policy
    if member.kept is not None:
        return False
    if policy.action == "refuse":
        return not member.likes
    if not any(like.leads for like in member.likes):
        return True
    ungrouped = sum(like.group is None for like in member.likes)
    return member.search_hits.ungrouped_beyond and ungrouped < policy.most


def _compare(
    members: Sequence[Member],
    parts: Sequence[Sequence[str]],
    held: Mapping[str, VersionedDocument],
    context: DecisionContext,
) -> Steps[None]:
    """Add the documents that match each member to its ``likes``, stale ones to ``stale``.

    Args:
        parts: for each member, the ids of the documents to compare.
    """
    pairs = [
        (member, held[id_])
        for member, part in zip(members, parts, strict=True)
        for id_ in sorted(set(part))
        if id_ in held and id_ != member.id
    ]
    similarities = context.judge.likenesses([(member, stored.source) for member, stored in pairs])
    alike = {stored.id for (_, stored), found in zip(pairs, similarities, strict=True) if found is not None}
    stale = yield from find_stale({id_: held[id_] for id_ in alike}, context)
    for (member, stored), found in zip(pairs, similarities, strict=True):
        if found is not None and stored.id in stale:
            member.stale.add(stored.id)
        elif found is not None:
            group = context.gate_fields.group(stored.source)
            leads = context.gate_fields.leads(stored.source)
            member.likes.append(
                SimilarDocument(stored.id, found.likeness, stored.guard, group, leads, found.similarity)
            )


def _further(member: Member, rest: list[str], context: DecisionContext) -> list[str]:
    """Return the ids to read before a member can be decided; mostly none.

    A few of thousands of copies are enough to decide. If a document was changed or deleted since the search,
    more are read, until one decides or all were read.
    """
    policy = context.policy
    if member.kept is not None or not rest:
        return []
    if not (member.likes if policy.action == "refuse" else any(like.leads for like in member.likes)):
        return rest[: max(context.first_reads, 3 * (len(member.nominated) - len(rest)))]
    if policy.action != "cap":
        return []
    # Documents without a number count towards the limit, too.
    missing = policy.most - sum(like.group is None for like in member.likes)
    grouped = set(member.search_hits.ids) - member.search_hits.ungrouped
    return [id_ for id_ in rest if id_ not in grouped][: max(0, missing)]


def _revoke_guards(
    dead: Sequence[Intent], held: dict[str, VersionedDocument], gate_fields: GateFields
) -> Steps[None]:
    """Revoke the guards of open intents, and read their documents again into ``held``."""
    ids = sorted({intent.document for intent in dead})
    yield Write(tuple(guard_revocation(held[id_], gate_fields) for id_ in ids))
    for id_ in ids:
        del held[id_]
    held |= yield from read_documents(ids)


def _store(
    accepted: Sequence[tuple[Member, int | None, bool]],
    leaving: Sequence[tuple[Member, Verdict | None]],
    context: DecisionContext,
) -> Steps[None]:
    """Store accepted documents under their guards, and withdraw the others.

    A member whose guard is gone begins again. A verdict is given only once the placeholder is deleted,
    because the protocol does nothing more for a caller that has its verdict.

    Raises:
        EngineUnavailable: the store was too busy to delete some placeholders.
    """
    writes = [
        Put("documents", member.id, context.gate_fields.stamped(member.document, group, leads), member.guard)
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
        again = written.status in (CONFLICT, MISSING, *BUSY)
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
