"""A store as the protocol may meet it at worst, and every order in which writers may use it.

Writes are done at once and seen by reads; searches see them after a refresh only. What is sent as one request
is done one action after the other, so that others come between. A writer may die before any action, and time
may pass at any moment, so that every lease ends while its writer goes on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from shinglefold.contracts import Guard, Held, Written
from shinglefold.groups.gate.forms import Forms
from shinglefold.groups.gate.member import Member, Verdict
from shinglefold.groups.gate.policy import Policy
from shinglefold.groups.gate.protocol import Terms, decide, tidy
from shinglefold.groups.gate.requests import (
    Drop,
    FindDocuments,
    FindGroup,
    FindIntents,
    Group,
    Intent,
    Merge,
    Now,
    Pause,
    Put,
    Read,
    Refresh,
    Request,
    Seen,
    Steps,
    Write,
)

FORMS = Forms("dedup")
LATE = 100_000
_WAKES = 12
#: Pauses while a lease lasts.
_NAPS = 3


class Source(dict[str, Any]):
    """A document that never changes."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._hash = hash(repr(values))

    def __hash__(self) -> int:  # type: ignore[override]
        return self._hash


#: Documents by id: the version (counted on after deletions) and the source, None where it is deleted.
Shelf = tuple[tuple[str, int, Source | None], ...]


@dataclass(frozen=True)
class Relation:
    """Which texts, told by letters, are alike; each is like itself."""

    pairs: frozenset[frozenset[str]] = frozenset()

    def alike(self, one: str, other: str) -> bool:
        return one == other or frozenset((one, other)) in self.pairs

    def likeness(self, member: Member, source: Mapping[str, Any]) -> float | None:
        text = source.get("dedup", {}).get("digest")
        return 1.0 if text is not None and self.alike(member.print, text) else None

    def pairs_of(self, members: Sequence[Member]) -> Iterator[tuple[int, int]]:
        for (one, a), (other, b) in combinations(enumerate(members), 2):
            if self.alike(a.print, b.print):
                yield one, other


@dataclass(frozen=True)
class Letters:
    """The judge of the model."""

    relation: Relation

    def likeness(self, member: Member, source: Any) -> float | None:
        return self.relation.likeness(member, source)

    def pairs(self, members: Sequence[Member]) -> Iterator[tuple[int, int]]:
        return self.relation.pairs_of(members)

    def intent(self, member: Member) -> dict[str, Any]:
        assert member.guard is not None
        return {
            "print": member.print,
            "document": member.id,
            "guard": member.guard.seq_no,
            "order": member.order,
            "until": member.until,
            "claim": member.claim,
        }


@dataclass(frozen=True)
class Store:
    documents: Shelf = ()
    intents: Shelf = ()
    seen_documents: Shelf = ()
    seen_intents: Shelf = ()
    late: int = 0
    woken: int = 0
    naps: int = 0

    def shelf(self, where: str) -> dict[str, tuple[int, Any]]:
        return {id_: (version, source) for id_, version, source in getattr(self, where)}

    def there(self, where: str) -> dict[str, tuple[int, Any]]:
        return {id_: held for id_, held in self.shelf(where).items() if held[1] is not None}

    def put(self, where: str, id_: str, version: int, source: Any) -> "Store":
        shelf = self.shelf(where) | {id_: (version, source)}
        return replace(self, **{where: tuple((name, *held) for name, held in sorted(shelf.items()))})

    def run(self, action: Put | Merge | Drop) -> tuple["Store", Written]:
        version, source = self.shelf(action.where).get(action.id, (0, None))
        guard = getattr(action, "guard", None)
        if (guard is not None and (source is None or guard.seq_no != version)) or (
            isinstance(action, Put) and action.create and source is not None
        ):
            return self, Written(409)
        if isinstance(action, Drop):
            if source is None:
                return self, Written(404)
            return self.put(action.where, action.id, version + 1, None), Written(200)
        new = Source(action.source if isinstance(action, Put) else _merged(source, action.parts))
        return self.put(action.where, action.id, version + 1, new), Written(200, Guard(version + 1, 1))

    def refreshed(self, where: str) -> "Store":
        return replace(self, **{f"seen_{where}": getattr(self, where)})

    def answer(self, request: Request, relation: Relation) -> Any:
        if isinstance(request, Now):
            return self.late
        if isinstance(request, Read):
            there = self.there("documents")
            return [
                Held(id_, there[id_][1], Guard(there[id_][0], 1)) if id_ in there else None
                for id_ in request.ids
            ]
        if isinstance(request, FindIntents):
            return [
                [one for text, _, one in self._intents() if relation.alike(text, member.print)]
                for member in request.members
            ]
        documents = self.there("seen_documents")
        if isinstance(request, FindDocuments):
            taken = {FORMS.group(source) for _, source in documents.values()}
            return [
                Seen(
                    tuple(
                        id_
                        for id_, (_, source) in documents.items()
                        if relation.likeness(member, source) is not None
                    ),
                    frozenset(number for number in member.numbers if number in taken),
                )
                for member in request.members
            ]
        assert isinstance(request, FindGroup)
        ids = (
            id_
            for id_, (_, source) in documents.items()
            if FORMS.group(source) == request.group and (FORMS.leads(source) or not request.leaders)
        )
        claims = (one for _, claim, one in self._intents() if claim == request.group)
        return Group(tuple(claims), tuple(ids)[: request.most])

    def _intents(self) -> Iterator[tuple[str, int | None, Intent]]:
        for attempt, (_, made) in self.there("seen_intents").items():
            order = (made["order"][0], made["order"][1])
            intent = Intent(attempt, made["document"], Guard(made["guard"], 1), order, made["until"])
            yield made["print"], made["claim"], intent


def _napped(store: Store) -> Store:
    """Let time go on while writers wait for one that died, until its lease ends."""
    if store.naps < _NAPS:
        return replace(store, naps=store.naps + 1)
    return replace(store, naps=0, late=store.late + LATE)


def _moved(parked: tuple[Store, tuple[int, ...], int], now: Store, far: tuple[int, ...]) -> bool:
    """Tell whether who waits may look again: all others went on, and something happened to a document.

    A pause is long beside a step.
    """
    before, then, _ = parked
    if (before.late, before.woken) != (now.late, now.woken):
        return True
    went_on = all(here < 0 or here != there for here, there in zip(far, then, strict=True))
    return went_on and before.documents != now.documents


def _merged(source: Any, parts: Mapping[str, Any]) -> Any:
    return {name: source.get(name) for name in source} | {
        name: source.get(name, {}) | value for name, value in parts.items()
    }


@dataclass(frozen=True)
class Newcomer:
    """A writer: its documents by id and text, and its number."""

    name: str
    texts: tuple[tuple[str, str], ...]

    def steps(self, policy: Policy, relation: Relation, done: list[str]) -> Steps[list[Verdict]]:
        members = [
            Member(id_, {"dedup": {"digest": text}}, text, (_number(text), _number(text) + 1))
            for id_, text in self.texts
        ]
        counted = iter(range(1000))
        terms = Terms(
            policy,
            Letters(relation),
            FORMS,
            lambda: f"{self.name}-{next(counted):03}",
            patience=10**9,
            done=done,
        )
        verdicts = yield from decide(members, terms)
        yield from tidy(terms)
        return verdicts


def _number(text: str) -> int:
    return 10 * ord(text[0])


@dataclass(frozen=True)
class Place:
    """How far a writer is: what it was answered, what of a request is done, and whether it died.

    ``key``: tells the state of its steps, however it came to it; ``request``: what it asks, or its verdicts.

    ``parked``: the store at the moment it began to wait, how far the others were, and whose
    turn it is among those that wait.
    """

    answers: tuple[Any, ...] = ()
    key: int = 0
    request: Any = None
    parts: tuple[Written, ...] = ()
    dead: bool = False
    parked: tuple[Store, tuple[int, ...], int] | None = None


@dataclass
class Explorer:
    """Walks through every state that writers can bring a store into."""

    writers: Sequence[Newcomer]
    policy: Policy
    relation: Relation
    crashes: int = 1
    late: bool = True
    switches: int | None = None
    start: Store = Store()
    states: int = 0
    _next: dict[tuple[int, int, str], Place] = field(default_factory=dict)

    def walk(self, check: Callable[[Store, list[list[Verdict] | None]], None]) -> int:
        """Call ``check`` with every end: the store, and each writer's verdicts, None where it died."""
        places = tuple(self._replayed(number, ()) for number in range(len(self.writers)))
        begin = (self.start, places, self.crashes, (-1, 0))
        known, todo, ends = {self._key(begin)}, [begin], 0
        while todo:
            node = todo.pop()
            self.states += 1
            following = list(self._after(node))
            if not following:
                self._check_ended(node)
                ends += 1
                check(node[0], [self._verdicts(number, place) for number, place in enumerate(node[1])])
            for one in following:
                if (key := self._key(one)) not in known:
                    known.add(key)
                    todo.append(one)
        return ends

    def _key(self, node: Any) -> int:
        store, places, crashes, turn = node
        told = tuple(
            (place.key, len(place.parts), place.dead, place.parked and place.parked[1:]) for place in places
        )
        return hash((store, told, crashes, turn if self.switches is not None else 0))

    def _after(self, node: Any) -> Iterator[Any]:  # noqa: C901 - one way after the other
        store, places, crashes, turn = node
        running = False
        moves: dict[int, list[tuple[Store, Place]]] = {}
        for number, place in enumerate(places):
            request = place.request
            if place.dead or isinstance(request, list):
                continue
            running = True
            if isinstance(request, Now):
                # Nobody else notices: no other order needs to be looked at.
                moved = self._asleep(self._answered(number, place, store.late), store, places)
                yield store, _with(places, number, moved), crashes, turn
                return
            if found := list(self._step(number, store, place, self._far(places))):
                moves[number] = found
        ranks = {number: place.parked[2] for number in moves if (place := places[number]).parked}
        for number, found in moves.items():
            if ranks.get(number, 0) > min(ranks.values(), default=0):
                # Who has slept longest wakes first, or two would go round each other while a third sleeps on.
                continue
            moved_on = self._turn(turn, number, moves)
            if moved_on is None:
                continue
            napped = isinstance(places[number].request, Pause) and any(place.dead for place in places)
            for after, moved in found:
                changed = _napped(after) if napped else after
                asleep = self._asleep(moved, changed, places)
                yield changed, _with(places, number, asleep), crashes, moved_on
            if crashes:
                dead = replace(places[number], dead=True)
                yield store, _with(places, number, dead), crashes - 1, (-1, moved_on[1])
        if self.late and moves and not store.late:
            # At any moment, once.
            yield replace(store, late=LATE), places, crashes, turn
        elif running and not moves and store.woken < _WAKES:
            # All wait, and look again, though nothing has changed; if that does not help leases end.
            passed = LATE if store.woken % 3 == 2 else 0
            yield (
                replace(store, woken=store.woken + 1, late=store.late + passed),
                places,
                crashes,
                (-1, turn[1]),
            )

    def _turn(self, turn: tuple[int, int], number: int, moves: Mapping[int, Any]) -> tuple[int, int] | None:
        """Return whose turn it is after a move, and how often others were interrupted; None for too often."""
        last, switches = turn
        if self.switches is None:
            return turn
        if last != number and last in moves:
            switches += 1
        return (number, switches) if switches <= self.switches else None

    def _asleep(self, place: Place, store: Store, places: Sequence[Place]) -> Place:
        """Note when a writer went to sleep: with its last answer, so that what others do at once wakes it."""
        if not isinstance(place.request, Pause):
            return place
        rank = max((other.parked[2] for other in places if other.parked), default=0) + 1
        return replace(place, parked=(store, self._far(places), rank))

    def _far(self, places: Sequence[Place]) -> tuple[int, ...]:
        """Return how far each writer is; −1 where it waits itself, or goes on no more."""
        return tuple(
            -1
            if place.dead or place.parked is not None or isinstance(place.request, list)
            else len(place.answers) + len(place.parts)
            for number, place in enumerate(places)
        )

    def _step(
        self, number: int, store: Store, place: Place, far: tuple[int, ...] = ()
    ) -> Iterator[tuple[Store, Place]]:
        request = place.request
        if isinstance(request, Now):
            yield store, self._answered(number, place, store.late)
        elif isinstance(request, Pause):
            if place.parked and _moved(place.parked, store, far):
                yield store, self._answered(number, place, None)
        elif isinstance(request, Refresh):
            yield store.refreshed("documents"), self._answered(number, place, None)
        elif isinstance(request, Write):
            done = len(place.parts)
            if done < len(request.actions):
                changed, written = store.run(request.actions[done])
                moved = replace(place, parts=(*place.parts, written))
                last = done + 1 == len(request.actions) and not request.refresh
                yield changed, self._answered(number, place, list(moved.parts)) if last else moved
            else:
                wheres = {action.where for action in request.actions}
                for where in wheres:
                    store = store.refreshed(where)
                yield store, self._answered(number, place, list(place.parts))
        else:
            yield store, self._answered(number, place, store.answer(request, self.relation))

    def _replayed(self, number: int, answers: tuple[Any, ...]) -> Place:
        """Return a writer that was given some answers."""
        done: list[str] = []
        steps = self.writers[number].steps(self.policy, self.relation, done)
        try:
            request: Any = next(steps)
            for answer in answers:
                request = steps.send(answer)
        except StopIteration as end:
            return Place(answers, hash(repr(end.value)), end.value)
        return Place(answers, hash((_local(steps), tuple(done))), request)

    def _answered(self, number: int, place: Place, answer: Any) -> Place:
        key = (number, place.key, repr(answer))
        if key not in self._next:
            self._next[key] = self._replayed(number, (*place.answers, answer))
        return self._next[key]

    def _verdicts(self, number: int, place: Place) -> list[Verdict] | None:
        ended = place.request
        return ended if isinstance(ended, list) and not place.dead else None

    def _check_ended(self, node: Any) -> None:
        for number, place in enumerate(node[1]):
            ended = isinstance(place.request, list)
            assert place.dead or ended, f"writer {number} waits for ever: {node}"


def run_alone(
    store: Store, writer: Newcomer, policy: Policy, relation: Relation
) -> tuple[Store, list[Verdict]]:
    """Let one writer go on to its end, long after all leases."""
    store = replace(store, late=20 * LATE)
    explorer = Explorer([writer], policy, relation)
    place = explorer._replayed(0, ())
    while not isinstance(request := place.request, list):
        if isinstance(request, Pause):
            place = explorer._answered(0, place, None)
            continue
        ((store, place),) = explorer._step(0, store, place)
    return store, request


def accepted(store: Store) -> dict[str, Any]:
    """Return the documents that were let in."""
    return {
        id_: source for id_, (_, source) in store.there("documents").items() if FORMS.pending(source) is None
    }


def _local(steps: Any) -> int:
    """Return what tells the state of steps: where each stands that waits for another, and what it knows."""
    told = []
    while (frame := getattr(steps, "gi_frame", None)) is not None:
        known = {name: value for name, value in frame.f_locals.items() if name not in ("terms", "self")}
        told.append((frame.f_code.co_name, frame.f_lasti, repr(known)))
        steps = steps.gi_yieldfrom
    return hash(tuple(told))


def _with(places: tuple[Place, ...], number: int, place: Place) -> tuple[Place, ...]:
    return (*places[:number], place, *places[number + 1 :])
