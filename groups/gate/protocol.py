"""The protocol by which many writers decide at once, without locks: pure steps that yield requests.

1. A writer keeps the place of its document: an empty placeholder, or the document that it changes. Its
   version is the guard: only a write under it lets the new text in.
2. It writes its intent into the index of intents and makes it visible.
3. It searches the intents, and after them the documents, and reads again what it found, as it is now.
4. A document that matches decides. Else nobody goes on who sees an open intent that matches: of two the later
   withdraws, the earlier waits and looks again.
5. It lets its document in under the guard. Its intent goes once searches see the document.

A writer that dies leaves an open intent with a lease. When that has ended, whoever meets it takes the guard
away, and removes the intent after that; so a writer that was only slow can't let anything in any more. Clocks
decide about nothing else. docs/gate.md has the argument, tests/groups/test_every_interleaving.py the proof.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from shinglefold.contracts import JSON, Held, Written
from shinglefold.errors import EngineUnavailable
from shinglefold.groups.gate.decisions import Adopt, Choice, Found, Join, Refuse, Stay, choose, place_in_group
from shinglefold.groups.gate.forms import Forms
from shinglefold.groups.gate.leases import clear, is_open
from shinglefold.groups.gate.member import Like, Member, Verdict
from shinglefold.groups.gate.policy import Policy
from shinglefold.groups.gate.requests import (
    CONFLICT,
    DONE,
    MISSING,
    Action,
    Drop,
    FindDocuments,
    FindGroup,
    FindIntents,
    Intent,
    Merge,
    Now,
    Pause,
    Put,
    Read,
    Refresh,
    Steps,
    Write,
)

_BUSY = (429, 503)
_CREATED = 201


class Judge(Protocol):
    """Compares documents."""

    def likeness(self, member: Member, source: Any) -> float | None:  # noqa: ANN401 - JSON
        """Return how alike a member and a stored document are; None where they do not match."""
        ...

    def pairs(self, members: Sequence[Member]) -> Iterable[tuple[int, int]]:
        """Yield the pairs of members that match, by their places, the earlier one first."""
        ...

    def intent(self, member: Member, /) -> JSON:
        """Return what stands in the index of intents for a member."""
        ...


@dataclass(frozen=True, slots=True)
class Terms:
    """What a decision is made by.

    ``groups``: whether documents are given the number of their group. ``lease``: milliseconds after which
    others may clear an intent; ``patience``: after which a member gives up. ``attempts``: makes ids.
    """

    policy: Policy
    judge: Judge
    forms: Forms
    attempts: Callable[[], str]
    groups: bool = True
    lease: int = 30_000
    patience: int = 90_000
    #: Intents that are decided, to be removed once searches see their documents.
    done: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Places:
    """Places in groups that are given to members of a batch at once, which decides about its own by itself.

    ``own``: the attempts of the batch.
    """

    own: frozenset[str]
    given: Counter[int] = field(default_factory=Counter)


def decide(members: Sequence[Member], terms: Terms) -> Steps[list[Verdict]]:
    """Decide about the documents of a batch, whose ids differ; verdicts are in order.

    Raises:
        EngineUnavailable: others have kept a member waiting for too long.
    """
    begun = yield Now()
    for member in members:
        member.started = begun
    for earlier, later in terms.judge.pairs(members):
        members[later].waits.add(earlier)
    undecided = list(members)
    while undecided:
        yield from _enter(undecided, terms)
        inside = [member for member in undecided if member.guard is not None]
        if inside:
            yield from _look(inside)
            yield from _settle(members, inside, terms)
        undecided = [member for member in members if member.verdict is None]
        if undecided:
            now = yield Now()
            if now - begun > terms.patience:
                yield from _leave(undecided)
                raise EngineUnavailable(
                    f"others have been deciding about documents like {undecided[0].id!r} for "
                    f"{terms.patience // 1000} s; try again"
                )
            yield Pause(15)
    return [member.verdict for member in members if member.verdict is not None]


def tidy(terms: Terms) -> Steps[None]:
    """Remove the intents that are decided, after making their documents visible."""
    if terms.done:
        gone = tuple(terms.done)
        yield Refresh()
        yield Write(tuple(Drop("intents", attempt) for attempt in gone))
        del terms.done[: len(gone)]


def _enter(members: Sequence[Member], terms: Terms) -> Steps[None]:
    """Keep places, then make intents visible; a member whose place is somebody else's stays outside."""
    outside = [member for member in members if member.guard is None]
    now = yield Now()
    until = now + terms.lease
    placeholder = terms.forms.placeholder(until)
    kept = yield Write(tuple(Put("documents", member.id, placeholder, create=True) for member in outside))
    for member, written in zip(outside, kept, strict=True):
        member.until = until
        if written.status in (DONE, _CREATED):
            member.guard = written.guard
        elif written.status not in (CONFLICT, *_BUSY):
            member.verdict = Verdict("failed", member.id, reason=written.reason)
    taken = [m for m, written in zip(outside, kept, strict=True) if written.status == CONFLICT]
    yield from _take_over(taken, now, terms)
    entered = [member for member in outside if member.guard is not None]
    for member in entered:
        member.attempt = terms.attempts()
    if entered:
        yield Write(
            tuple(Put("intents", m.attempt, terms.judge.intent(m)) for m in entered),
            refresh=True,
        )


def _take_over(members: Sequence[Member], now: int, terms: Terms) -> Steps[None]:
    """Take the version of a document that is there as the guard, or the place that a dead writer kept."""
    if not members:
        return
    there = yield Read(tuple(member.id for member in members))
    for member, held in zip(members, there, strict=True):
        if held is None:
            continue
        until = terms.forms.pending(held.source)
        if until is None:
            member.guard, member.changes = held.guard, True
            group = terms.forms.group(held.source)
            same = terms.forms.same_text(member.document, held.source)
            if same and (group is not None or not terms.groups):
                member.kept = group, terms.forms.leads(held.source)
        elif until < now:
            again = Put("documents", member.id, terms.forms.placeholder(member.until), held.guard)
            (written,) = yield Write((again,))
            member.guard = written.guard if written.status == DONE else None


def _look(members: Sequence[Member]) -> Steps[None]:
    """Search intents and, after them, documents: what is let in between the two is found as one of both."""
    asked = tuple(members)
    own = {member.attempt for member in members}
    intents = yield FindIntents(asked)
    seen = yield FindDocuments(asked)
    for member, found, documents in zip(members, intents, seen, strict=True):
        member.intents = [one for one in found if one.attempt not in own]
        member.seen = documents
        member.known = {*member.known, *documents.ids, *(one.document for one in member.intents)}


def _settle(members: Sequence[Member], inside: list[Member], terms: Terms) -> Steps[None]:
    """Decide about members until each has a verdict or has withdrawn.

    No search is made again: whoever comes after the first one sees our intent, and waits for us.
    """
    entered = inside[0].until - terms.lease
    while inside:
        now = yield from _read(inside, terms)
        left = len(inside)
        slow = now - entered > terms.lease // 2
        leaving: list[Member] = []
        places = _Places(frozenset(member.attempt for member in members))
        accepted: list[tuple[Member, int | None, bool]] = []
        for member in inside:
            if member.kept is not None:
                # It is in already, and others may have joined it.
                accepted.append((member, *member.kept))
                continue
            choice = yield from _chosen(member, terms, places)
            if isinstance(choice, Stay):
                if choice is Stay.WITHDRAW or slow or _waits_outside(member, members):
                    leaving.append(member)
            elif isinstance(choice, Refuse):
                leaving.append(member)
                like = choice.like
                member.verdict = Verdict("refused", member.id, like.group, like=like, full=choice.full)
            elif isinstance(choice, Join):
                accepted.append((member, choice.group, False))
            else:
                accepted.append((member, member.number if terms.groups else None, True))
        yield from _leave(leaving)
        yield from _let_in(accepted, terms)
        inside = [member for member in inside if member.guard is not None and member.verdict is None]
        _tell(members, inside)
        if inside and len(inside) == left:
            yield Pause(10)


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
    wanted = {id_ for member in members for id_ in member.known}
    held: dict[str, Held] = yield from _held(wanted)
    met = {one.attempt: one for member in members for one in member.intents}
    for one in met.values():
        if is_open(one, held.get(one.document)) and one.until < now:
            yield from clear(one, held[one.document], terms.forms)
            held |= yield from _held({one.document})
    for member in members:
        member.pending = [one for one in member.intents if is_open(one, held.get(one.document))]
        member.likes = [
            like for id_ in sorted(member.known) if (like := _like(member, held.get(id_), terms)) is not None
        ]
    return now


def _held(ids: Iterable[str]) -> Steps[dict[str, Held]]:
    wanted = tuple(sorted(ids))
    if not wanted:
        return {}
    there = yield Read(wanted)
    return {id_: held for id_, held in zip(wanted, there, strict=True) if held is not None}


def _like(member: Member, held: Held | None, terms: Terms) -> Like | None:
    if held is None or held.id == member.id:
        return None
    likeness = terms.judge.likeness(member, held.source)
    if likeness is None:
        return None
    forms = terms.forms
    return Like(held.id, likeness, held.guard, forms.group(held.source), forms.leads(held.source))


def _chosen(member: Member, terms: Terms, places: _Places) -> Steps[Choice]:
    """Return what is to be done with a member, its group looked at where that depends on it."""
    choice = choose(member, terms.policy)
    if isinstance(choice, Adopt):
        choice = yield from _adopted(member, choice, terms)
    if isinstance(choice, Join) and terms.policy.action == "cap" and choice.like is not None:
        choice = yield from _claimed(member, choice.group, choice.like, terms, places)
    return choice


def _adopted(member: Member, choice: Adopt, terms: Terms) -> Steps[Choice]:
    """Hand the first group that has lost its leader over to the document of it that is the most alike."""
    yield Refresh()
    for group in dict.fromkeys(like.group for like in choice.likes):
        assert group is not None
        found = yield FindGroup(group, 10, leaders=True)
        # A document that is changed leads its old group no more.
        held = yield from _held(set(found.ids) - {member.id})
        if any(_leads(one, group, terms.forms) for one in held.values()):
            continue
        heir = next(like for like in choice.likes if like.group == group)
        (written,) = yield Write((Merge("documents", heir.id, terms.forms.leader(), heir.guard),))
        return Join(group, heir) if written.status == DONE else Stay.HOLD
    return Found()


def _leads(held: Held, group: int, forms: Forms) -> bool:
    return forms.leads(held.source) and forms.group(held.source) == group


def _claimed(member: Member, group: int, like: Like, terms: Terms, places: _Places) -> Steps[Choice]:
    """Claim a place in a group where all may see it, then count who is there and who else claims one."""
    if member.claim != group:
        member.claim = group
        yield Write((Put("intents", member.attempt, terms.judge.intent(member)),), refresh=True)
    most = terms.policy.most
    found = yield FindGroup(group, most + 1)
    claims = [one for one in found.claims if one.attempt not in places.own]
    held = yield from _held({*found.ids, like.id, *(one.document for one in claims)} - {member.id})
    now = yield Now()
    open_ = [one for one in claims if is_open(one, held.get(one.document))]
    for one in open_:
        if one.until < now:
            yield from clear(one, held[one.document], terms.forms)
            return Stay.HOLD
    there = sum(terms.forms.group(one.source) == group for one in held.values()) + places.given[group]
    place = place_in_group(member, there, open_, most)
    if isinstance(place, Stay):
        return place
    places.given[group] += place
    return Join(group) if place else Refuse(like, full=True)


def _let_in(accepted: Sequence[tuple[Member, int | None, bool]], terms: Terms) -> Steps[None]:
    """Let documents in under their guards; one whose guard is gone begins again."""
    if not accepted:
        return
    writes = tuple(
        Put("documents", member.id, terms.forms.stamped(member.document, group, leads), member.guard)
        for member, group, leads in accepted
    )
    answers: list[Written] = yield Write(writes)
    failed: list[Member] = []
    for (member, group, leads), written in zip(accepted, answers, strict=True):
        if written.status in (DONE, _CREATED):
            terms.done.append(member.attempt)
            member.verdict = Verdict(
                "accepted", member.id, group, leads and group is not None, replaced=member.changes
            )
            continue
        failed.append(member)
        if written.status not in (CONFLICT, MISSING, *_BUSY):
            member.verdict = Verdict("failed", member.id, reason=written.reason)
    for member in failed:
        # A request sent twice, as its connection broke, may have been done: its intent stays until then.
        terms.done.append(member.attempt)
        member.attempt = ""
    yield from _leave(failed)


def _leave(members: Sequence[Member]) -> Steps[None]:
    """Give places back and take intents away; whoever left can't let anything in."""
    actions: list[Action] = []
    for member in members:
        if member.guard is not None and not member.changes:
            actions.append(Drop("documents", member.id, member.guard))
        if member.attempt:
            actions.append(Drop("intents", member.attempt))
    if actions:
        yield Write(tuple(actions))
    for member in members:
        member.reset()


__all__ = ["Intent", "Judge", "Terms", "decide", "tidy"]
