"""How members are decided whose intents all know of: each is let in, refused, or leaves to begin again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shinglefold.contracts.engine import VersionedDocument
from shinglefold.groups.gate.protocol.context import Terms
from shinglefold.groups.gate.protocol.decisions import Adopt, Choice, Found, Join, Keep, Refuse, Stay, choose
from shinglefold.groups.gate.protocol.group_capacity import claimed
from shinglefold.groups.gate.protocol.leases import closing, is_open
from shinglefold.groups.gate.protocol.member import Like, Member, Verdict
from shinglefold.groups.gate.protocol.placeholders import Forms
from shinglefold.groups.gate.protocol.requests import (
    BUSY,
    CONFLICT,
    CREATED,
    DONE,
    MISSING,
    Action,
    FindDocuments,
    FindGroups,
    Intent,
    Merge,
    Now,
    Pause,
    Put,
    Read,
    Refresh,
    Seen,
    Steps,
    Write,
)
from shinglefold.groups.gate.protocol.reserve import held_by, leave, not_taken_back


def settle(members: Sequence[Member], inside: list[Member], terms: Terms) -> Steps[None]:
    """Decide about members until each has a verdict or has withdrawn.

    No search is made again: whoever comes after the first one sees our intent, and waits for us.
    """
    entered = inside[0].until - terms.lease
    while inside:
        now = yield from _read(inside, terms)
        left = len(inside)
        # A clock that was set back must not have us wait until it is where it was.
        slow = abs(now - entered) > terms.lease // 2
        leaving: list[tuple[Member, Verdict | None]] = []
        accepted: list[tuple[Member, int | None, bool]] = []
        choices = yield from _chosen(inside, terms)
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
                case Join():
                    accepted.append((member, choice.group, False))
                case _:
                    accepted.append((member, member.number if terms.groups else None, True))
        yield from _let_in(accepted, leaving, terms)
        inside = [member for member in inside if member.guard is not None and member.verdict is None]
        _tell(members, inside)
        if inside and len(inside) == left:
            yield Pause(10)
            if any(one.guard is not None for member in inside for one in member.pending):
                # That a change was given up can't be seen in the document.
                yield from terms.register.look()


def _waits_outside(member: Member, members: Sequence[Member]) -> bool:
    """Tell whether a member waits for one of its batch that is not deciding now."""
    return any(members[place].verdict is None and members[place].guard is None for place in member.waits)


def _tell(members: Sequence[Member], inside: Sequence[Member]) -> None:
    """Let members know what became of the earlier ones that they resemble."""
    for member in inside:
        decided = {place for place in member.waits if members[place].verdict is not None}
        member.known |= {members[place].id for place in decided}
        member.waits -= decided


def _read(members: Sequence[Member], terms: Terms) -> Steps[int]:
    """Read what was found as it is now: which intents are open, and which documents match."""
    now: int = yield Now()
    parts = [list(member.known) + member.nominated[: terms.glance] for member in members]
    held = yield from held_by(id_ for part in parts for id_ in part)
    left = terms.register.known.left
    met = {one.attempt: one for member in members for one in member.intents if one.attempt not in left}
    if dead := [
        one for one in met.values() if one.until < now and is_open(one, held.get(one.document), terms.forms)
    ]:
        yield from clear(dead, held, terms.forms)
    for member in members:
        member.pending = [
            one
            for one in member.intents
            if one.attempt not in left and is_open(one, held.get(one.document), terms.forms)
        ]
        member.likes = []
    _compare(members, parts, held, terms)
    rest = [[id_ for id_ in one.nominated[terms.glance :] if id_ not in one.known] for one in members]
    yield from _read_on(members, rest, terms)
    if short := [member for member in members if member.seen.cut and _undecided(member, terms)]:
        yield from _read_on(short, (yield from _found_far(short)), terms)
    return now


def _read_on(members: Sequence[Member], rest: list[list[str]], terms: Terms) -> Steps[None]:
    """Read more of what was found for members, as it is now, until they can be decided or all is read."""
    while any(parts := [_further(member, more, terms) for member, more in zip(members, rest, strict=True)]):
        rest = [[one for one in more if one not in set(part)] for more, part in zip(rest, parts, strict=True)]
        _compare(members, parts, (yield from held_by(id_ for part in parts for id_ in part)), terms)


def _found_far(members: Sequence[Member]) -> Steps[list[list[str]]]:
    """Search beyond what shares most with members, and return what that finds of each."""
    found: list[Seen] = yield FindDocuments(tuple(members), far=True)
    more: list[list[str]] = []
    for member, seen in zip(members, found, strict=True):
        there = {*member.known, *member.nominated}
        more.append([id_ for id_ in seen.ids if id_ not in there])
        member.nominated += more[-1]
        member.seen = replace(member.seen, ids=seen.ids, numberless=seen.numberless, cut=False)
    return more


def _undecided(member: Member, terms: Terms) -> bool:
    """Tell whether what was read of a member's likes may not be all that decides."""
    policy = terms.policy
    if member.kept is not None:
        return False
    if policy.action == "refuse":
        return not member.likes
    if not any(one.leads for one in member.likes):
        return True
    return member.seen.uncounted and sum(like.group is None for like in member.likes) < policy.most


def _compare(
    members: Sequence[Member],
    parts: Sequence[Sequence[str]],
    held: Mapping[str, VersionedDocument],
    terms: Terms,
) -> None:
    """Note which of some documents match each member, as they are now."""
    asked = [
        (member, held[id_])
        for member, part in zip(members, parts, strict=True)
        for id_ in sorted(set(part))
        if id_ in held and id_ != member.id
    ]
    likenesses = terms.judge.likenesses([(member, one.source) for member, one in asked])
    for (member, one), alike in zip(asked, likenesses, strict=True):
        if alike is not None:
            group, leads = terms.forms.group(one.source), terms.forms.leads(one.source)
            member.likes.append(Like(one.id, alike.likeness, one.guard, group, leads, alike.similarity))


def _further(member: Member, rest: list[str], terms: Terms) -> list[str]:
    """Return what is to be read, too, before a member can be decided; mostly nothing.

    Beside thousands of copies a few decide. What a search found may be another text now, or gone: then more
    are read, until one decides or all were.
    """
    policy = terms.policy
    if member.kept is not None or not rest:
        return []
    if not (member.likes if policy.action == "refuse" else any(one.leads for one in member.likes)):
        return rest[: max(terms.glance, 3 * (len(member.nominated) - len(rest)))]
    if policy.action != "cap":
        return []
    # They count for places, too, as far as there are any.
    missing = policy.most - sum(like.group is None for like in member.likes)
    numbered = set(member.seen.ids) - member.seen.numberless
    return [one for one in rest if one not in numbered][: max(0, missing)]


def clear(dead: Sequence[Intent], held: dict[str, VersionedDocument], forms: Forms) -> Steps[None]:
    """Take the guards of open intents away, and note what their documents are after that."""
    ids = sorted({one.document for one in dead})
    yield Write(tuple(closing(held[id_], forms) for id_ in ids))
    for id_ in ids:
        del held[id_]
    held |= yield from held_by(ids)


def _chosen(members: Sequence[Member], terms: Terms) -> Steps[list[Choice]]:
    """Return what is to be done with members, their groups looked at where that depends on them."""
    choices: list[Choice] = []
    for member in members:
        choice = choose(member, terms.policy)
        if isinstance(choice, Adopt):
            choice = yield from _adopted(member, choice, terms)
        choices.append(choice)
    if terms.policy.action == "cap":
        return (yield from claimed(members, choices, terms))
    return choices


def _adopted(member: Member, choice: Adopt, terms: Terms) -> Steps[Choice]:
    """Join the first group that has lost its leader, led by the document of it that is the most alike.

    Where there is none, that has a number yet, the most alike of those without leads a group from now on.
    """
    yield Refresh()
    groups = dict.fromkeys(like.group for like in choice.likes if like.group is not None)
    for group in groups:
        (found,) = yield FindGroups((group,), 10, leaders=True)
        # A document that is changed leads its old group no more.
        held = yield from held_by(set(found) - {member.id})
        if any(_leads(one, group, terms.forms) for one in held.values()):
            continue
        heir = next(like for like in choice.likes if like.group == group)
        return (yield from _led(heir, group, terms))
    for heir in choice.likes:
        if heir.group is None:
            return (yield from _led(heir, member.number, terms))
    return Found()


def _led(heir: Like, group: int, terms: Terms) -> Steps[Choice]:
    """Join a group that a stored document leads from now on, or look again where that is another by now."""
    held: VersionedDocument | None
    (held,) = yield Read((heir.id,), whole=True)
    if held is None or held.guard != heir.guard:
        return Stay.HOLD
    (written,) = yield Write((_leading(held, group, terms.forms),))
    return Join(group, heir) if written.status == DONE else Stay.HOLD


def _leading(held: VersionedDocument, group: int, forms: Forms) -> Action:
    if forms.stands_elsewhere(held.source):
        whole = forms.stamped(held.source, group, leads=True)
        return Put("documents", held.id, whole, held.guard, again=True)
    return Merge("documents", held.id, forms.leader(group), held.guard)


def _leads(held: VersionedDocument, group: int, forms: Forms) -> bool:
    return forms.leads(held.source) and forms.group(held.source) == group


def _let_in(
    accepted: Sequence[tuple[Member, int | None, bool]],
    leaving: Sequence[tuple[Member, Verdict | None]],
    terms: Terms,
) -> Steps[None]:
    """Let documents in under their guards, and others leave; one whose guard is gone begins again.

    Who has a verdict keeps no place, as nobody goes on for a caller that was told.

    Raises:
        EngineUnavailable: the store has not taken back all places.
    """
    writes = [
        Put("documents", member.id, terms.forms.stamped(member.document, group, leads), member.guard)
        for member, group, leads in accepted
    ]
    left = yield from leave([member for member, _ in leaving], terms, writes)
    terms.register.settle(member.attempt for member, _, _ in accepted)
    _tell_left(leaving)
    failed: list[tuple[Member, Verdict | None]] = []
    for (member, group, leads), written in zip(accepted, left.written, strict=True):
        if written.status in (DONE, CREATED):
            member.verdict = Verdict(
                "accepted", member.id, group, leads and group is not None, replaced=member.replaces
            )
            continue
        again = written.status in (CONFLICT, MISSING, *BUSY)
        failed.append((member, None if again else Verdict("failed", member.id, reason=written.reason)))
    after = yield from leave([member for member, _ in failed], terms)
    _tell_left(failed)
    if busy := left.busy or after.busy:
        raise not_taken_back(busy)


def _tell_left(leaving: Sequence[tuple[Member, Verdict | None]]) -> None:
    for member, verdict in leaving:
        if member.guard is None:
            member.verdict = verdict
