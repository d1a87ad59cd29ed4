"""Steps 3 and 4 of the protocol: read again what was found, decide, and store accepted documents."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shinglefold.contracts.engine import VersionedDocument
from shinglefold.grouping.gate.protocol.context import DecisionContext
from shinglefold.grouping.gate.protocol.decisions import (
    Adopt,
    Choice,
    FoundGroup,
    JoinGroup,
    Keep,
    Refuse,
    Stay,
    choose,
)
from shinglefold.grouping.gate.protocol.group_capacity import claim_places
from shinglefold.grouping.gate.protocol.member import Intent, Like, Member, SearchHits, Verdict
from shinglefold.grouping.gate.protocol.placeholders import GateFields, closing, is_open
from shinglefold.grouping.gate.protocol.requests import (
    BUSY,
    CONFLICT,
    CREATED,
    DONE,
    MISSING,
    Action,
    FindDocuments,
    FindGroups,
    Merge,
    Now,
    Pause,
    Put,
    ReadDocuments,
    Refresh,
    Steps,
    Write,
)
from shinglefold.grouping.gate.protocol.reserve import not_deleted, read_documents, withdraw


def commit(members: Sequence[Member], inside: list[Member], context: DecisionContext) -> Steps[None]:
    """Decide about members until each has a verdict or has withdrawn.

    The search is not repeated: a writer that comes after it sees our intent, and waits for us.
    """
    entered = inside[0].until - context.lease
    while inside:
        now = yield from _read(inside, context)
        left = len(inside)
        # A clock that was set back must not make us wait until it is where it was.
        slow = abs(now - entered) > context.lease // 2
        leaving: list[tuple[Member, Verdict | None]] = []
        accepted: list[tuple[Member, int | None, bool]] = []
        choices = yield from _chosen(inside, context)
        for member, choice in zip(inside, choices, strict=True):
            match choice:
                case Keep():
                    accepted.append((member, choice.group, choice.leads))
                case Stay():
                    if choice is Stay.WITHDRAW or slow or _waits_outside(member, members):
                        leaving.append((member, None))
                case Refuse(like, full):
                    refused = Verdict("refused", member.id, like.group, like=like, full=full)
                    leaving.append((member, refused))
                case JoinGroup():
                    accepted.append((member, choice.group, False))
                case _:
                    accepted.append((member, member.number if context.groups else None, True))
        yield from _store(accepted, leaving, context)
        inside = [member for member in inside if member.guard is not None and member.verdict is None]
        _resolve_duplicates(members, inside)
        if inside and len(inside) == left:
            yield Pause(10)
            if any(one.guard is not None for member in inside for one in member.pending):
                # The document does not show that a change was given up.
                yield from context.register.look()


def _waits_outside(member: Member, members: Sequence[Member]) -> bool:
    """Return whether a member waits for one of its batch that has no guard now."""
    return any(
        members[place].verdict is None and members[place].guard is None for place in member.earlier_duplicates
    )


def _resolve_duplicates(members: Sequence[Member], inside: Sequence[Member]) -> None:
    """Turn decided earlier duplicates into related documents."""
    for member in inside:
        decided = {place for place in member.earlier_duplicates if members[place].verdict is not None}
        member.related_ids |= {members[place].id for place in decided}
        member.earlier_duplicates -= decided


def _read(members: Sequence[Member], context: DecisionContext) -> Steps[int]:
    """Read again what was found: which intents are open, and which documents match."""
    now: int = yield Now()
    parts = [list(member.related_ids) + member.nominated[: context.first_reads] for member in members]
    held = yield from read_documents(id_ for part in parts for id_ in part)
    left = context.register.known.withdrawn
    met = {one.intent_id: one for member in members for one in member.intents if one.intent_id not in left}
    if dead := [
        one
        for one in met.values()
        if one.until < now and is_open(one, held.get(one.document), context.gate_fields)
    ]:
        yield from clear(dead, held, context.gate_fields)
    for member in members:
        member.pending = [
            one
            for one in member.intents
            if one.intent_id not in left and is_open(one, held.get(one.document), context.gate_fields)
        ]
        member.likes = []
    _compare(members, parts, held, context)
    rest = [
        [id_ for id_ in one.nominated[context.first_reads :] if id_ not in one.related_ids] for one in members
    ]
    yield from _read_on(members, rest, context)
    if short := [member for member in members if member.search_hits.cut and _undecided(member, context)]:
        yield from _read_on(short, (yield from _found_far(short)), context)
    return now


def _read_on(members: Sequence[Member], rest: list[list[str]], context: DecisionContext) -> Steps[None]:
    """Read more of what was found for members, until they can be decided or all is read."""
    while any(parts := [_further(member, more, context) for member, more in zip(members, rest, strict=True)]):
        rest = [[one for one in more if one not in set(part)] for more, part in zip(rest, parts, strict=True)]
        _compare(members, parts, (yield from read_documents(id_ for part in parts for id_ in part)), context)


def _found_far(members: Sequence[Member]) -> Steps[list[list[str]]]:
    """Search beyond the documents that share most with members; return the new ids for each."""
    found: list[SearchHits] = yield FindDocuments(tuple(members), far=True)
    more: list[list[str]] = []
    for member, seen in zip(members, found, strict=True):
        there = {*member.related_ids, *member.nominated}
        more.append([id_ for id_ in seen.ids if id_ not in there])
        member.nominated += more[-1]
        member.search_hits = replace(member.search_hits, ids=seen.ids, numberless=seen.numberless, cut=False)
    return more


def _undecided(member: Member, context: DecisionContext) -> bool:
    """Return whether further documents may decide about a member."""
    policy = context.policy
    if member.kept is not None:
        return False
    if policy.action == "refuse":
        return not member.likes
    if not any(one.leads for one in member.likes):
        return True
    return member.search_hits.uncounted and sum(like.group is None for like in member.likes) < policy.most


def _compare(
    members: Sequence[Member],
    parts: Sequence[Sequence[str]],
    held: Mapping[str, VersionedDocument],
    context: DecisionContext,
) -> None:
    """Add the documents that match each member to its likes."""
    asked = [
        (member, held[id_])
        for member, part in zip(members, parts, strict=True)
        for id_ in sorted(set(part))
        if id_ in held and id_ != member.id
    ]
    likenesses = context.judge.likenesses([(member, one.source) for member, one in asked])
    for (member, one), alike in zip(asked, likenesses, strict=True):
        if alike is not None:
            group, leads = context.gate_fields.group(one.source), context.gate_fields.leads(one.source)
            member.likes.append(Like(one.id, alike.likeness, one.guard, group, leads, alike.similarity))


def _further(member: Member, rest: list[str], context: DecisionContext) -> list[str]:
    """Return the ids to read before a member can be decided; mostly none.

    Of thousands of copies a few decide. A found document may have another text now, or be gone: then more are
    read, until one decides or all were read.
    """
    policy = context.policy
    if member.kept is not None or not rest:
        return []
    if not (member.likes if policy.action == "refuse" else any(one.leads for one in member.likes)):
        return rest[: max(context.first_reads, 3 * (len(member.nominated) - len(rest)))]
    if policy.action != "cap":
        return []
    # Documents without a number take places, too.
    missing = policy.most - sum(like.group is None for like in member.likes)
    numbered = set(member.search_hits.ids) - member.search_hits.numberless
    return [one for one in rest if one not in numbered][: max(0, missing)]


def clear(dead: Sequence[Intent], held: dict[str, VersionedDocument], gate_fields: GateFields) -> Steps[None]:
    """Take the guards of open intents away, and read their documents again."""
    ids = sorted({one.document for one in dead})
    yield Write(tuple(closing(held[id_], gate_fields) for id_ in ids))
    for id_ in ids:
        del held[id_]
    held |= yield from read_documents(ids)


def _chosen(members: Sequence[Member], context: DecisionContext) -> Steps[list[Choice]]:
    """Return what to do with members, reading their groups where the choice depends on them."""
    choices: list[Choice] = []
    for member in members:
        choice = choose(member, context.policy)
        if isinstance(choice, Adopt):
            choice = yield from _adopted(member, choice, context)
        choices.append(choice)
    if context.policy.action == "cap":
        return (yield from claim_places(members, choices, context))
    return choices


def _adopted(member: Member, choice: Adopt, context: DecisionContext) -> Steps[Choice]:
    """Join the first group without a leader; its most similar document leads it from now on.

    Where no group has lost its leader, the most similar document without a number leads a new group.
    """
    yield Refresh()
    groups = dict.fromkeys(like.group for like in choice.likes if like.group is not None)
    for group in groups:
        (found,) = yield FindGroups((group,), 10, leaders=True)
        # A document that is being changed does not lead its old group any more.
        held = yield from read_documents(set(found) - {member.id})
        if any(_is_leader(one, group, context.gate_fields) for one in held.values()):
            continue
        heir = next(like for like in choice.likes if like.group == group)
        return (yield from _make_leader(heir, group, context))
    for heir in choice.likes:
        if heir.group is None:
            return (yield from _make_leader(heir, member.number, context))
    return FoundGroup()


def _make_leader(heir: Like, group: int, context: DecisionContext) -> Steps[Choice]:
    """Make a stored document the leader and join its group; wait where the document has changed since."""
    held: VersionedDocument | None
    (held,) = yield ReadDocuments((heir.id,), whole=True)
    if held is None or held.guard != heir.guard:
        return Stay.WAIT
    (written,) = yield Write((_leading(held, group, context.gate_fields),))
    return JoinGroup(group, heir) if written.status == DONE else Stay.WAIT


def _leading(held: VersionedDocument, group: int, gate_fields: GateFields) -> Action:
    if gate_fields.stands_elsewhere(held.source):
        whole = gate_fields.stamped(held.source, group, leads=True)
        return Put("documents", held.id, whole, held.guard, skip_pipeline=True)
    return Merge("documents", held.id, gate_fields.leader(group), held.guard)


def _is_leader(held: VersionedDocument, group: int, gate_fields: GateFields) -> bool:
    return gate_fields.leads(held.source) and gate_fields.group(held.source) == group


def _store(
    accepted: Sequence[tuple[Member, int | None, bool]],
    leaving: Sequence[tuple[Member, Verdict | None]],
    context: DecisionContext,
) -> Steps[None]:
    """Store accepted documents under their guards, and withdraw the others.

    A member whose guard is gone begins again. A verdict is given only once the placeholder is deleted,
    because nobody goes on for a caller that has its verdict.

    Raises:
        EngineUnavailable: the store was too busy to delete some placeholders.
    """
    writes = [
        Put("documents", member.id, context.gate_fields.stamped(member.document, group, leads), member.guard)
        for member, group, leads in accepted
    ]
    left = yield from withdraw([member for member, _ in leaving], context, writes)
    context.register.settle(member.intent_id for member, _, _ in accepted)
    _set_verdicts(leaving)
    failed: list[tuple[Member, Verdict | None]] = []
    for (member, group, leads), written in zip(accepted, left.written, strict=True):
        if written.status in (DONE, CREATED):
            member.verdict = Verdict(
                "accepted", member.id, group, leads and group is not None, replaced=member.replaces
            )
            continue
        again = written.status in (CONFLICT, MISSING, *BUSY)
        failed.append((member, None if again else Verdict("failed", member.id, reason=written.reason)))
    after = yield from withdraw([member for member, _ in failed], context)
    _set_verdicts(failed)
    if busy := left.busy or after.busy:
        raise not_deleted(busy)


def _set_verdicts(leaving: Sequence[tuple[Member, Verdict | None]]) -> None:
    for member, verdict in leaving:
        if member.guard is None:
            member.verdict = verdict
