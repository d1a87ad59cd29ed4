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


def _moved(before: Store, now: Store) -> bool:
    """Tell whether something happened that who waits may wait for."""
    return (before.documents, before.late, before.woken) != (now.documents, now.late, now.woken)


def _merged(source: Any, parts: Mapping[str, Any]) -> Any:
    return {name: source.get(name) for name in source} | {
        name: source.get(name, {}) | value for name, value in parts.items()
    }


@dataclass(frozen=True)
class Newcomer:
    """A writer: its documents by id and text, and its number."""

    name: str
    texts: tuple[tuple[str, str], ...]

    def steps(self, policy: Policy, relation: Relation) -> Steps[list[Verdict]]:
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
        )
        verdicts = yield from decide(members, terms)
        yield from tidy(terms)
        return verdicts


def _number(text: str) -> int:
    return 10 * ord(text[0])


@dataclass(frozen=True)
class Place:
    """How far a writer is: what it was answered, what of a request is done, and whether it died.

    ``parked``: the store at the moment it began to wait.
    """

    answers: tuple[Any, ...] = ()
    key: int = 0
    parts: tuple[Written, ...] = ()
    dead: bool = False
    parked: Store | None = None


@dataclass
class Explorer:
    """Walks through every state that writers can bring a store into."""

    writers: Sequence[Newcomer]
    policy: Policy
    relation: Relation
    crashes: int = 1
    late: bool = True
    start: Store = Store()
    states: int = 0
    _next: dict[tuple[int, int], Any] = field(default_factory=dict)

    def walk(self, check: Callable[[Store, list[list[Verdict] | None]], None]) -> int:
        """Call ``check`` with every end: the store, and each writer's verdicts, None where it died."""
        begin = (self.start, tuple(Place() for _ in self.writers), self.crashes)
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
        store, places, crashes = node
        told = tuple((place.key, len(place.parts), place.dead, place.parked is None) for place in places)
        return hash((store, told, crashes))

    def _after(self, node: Any) -> Iterator[Any]:
        store, places, crashes = node
        running = moving = False
        for number, place in enumerate(places):
            request = self._request(number, place)
            if place.dead or isinstance(request, list):
                continue
            running = True
            if isinstance(request, Now):
                # Nobody else notices: no other order needs to be looked at.
                yield store, _with(places, number, _answered(place, store.late)), crashes
                return
            for changed, moved in self._step(store, place, request):
                moving = True
                yield changed, _with(places, number, moved), crashes
            if crashes:
                yield store, _with(places, number, replace(place, dead=True)), crashes - 1
        if self.late and running and moving and not store.late:
            # At any moment, once.
            yield replace(store, late=LATE), places, crashes
        elif running and not moving and store.woken < _WAKES:
            # All wait, and look again, though nothing has changed; if that does not help leases end.
            passed = LATE if store.woken % 3 == 2 else 0
            yield replace(store, woken=store.woken + 1, late=store.late + passed), places, crashes

    def _step(self, store: Store, place: Place, request: Request) -> Iterator[tuple[Store, Place]]:
        if isinstance(request, Pause):
            if place.parked is None:
                yield store, replace(place, parked=store)
            elif _moved(place.parked, store):
                yield store, _answered(place, None)
        elif isinstance(request, Refresh):
            yield store.refreshed("documents"), _answered(place, None)
        elif isinstance(request, Write):
            done = len(place.parts)
            if done < len(request.actions):
                changed, written = store.run(request.actions[done])
                moved = replace(place, parts=(*place.parts, written))
                last = done + 1 == len(request.actions) and not request.refresh
                yield changed, _answered(moved, list(moved.parts)) if last else moved
            else:
                wheres = {action.where for action in request.actions}
                for where in wheres:
                    store = store.refreshed(where)
                yield store, _answered(place, list(place.parts))
        else:
            yield store, _answered(place, store.answer(request, self.relation))

    def _request(self, number: int, place: Place) -> Request | list[Verdict]:
        key = (number, place.key)
        if key not in self._next:
            steps = self.writers[number].steps(self.policy, self.relation)
            self._next[key] = _replayed(steps, place.answers)
        return self._next[key]

    def _verdicts(self, number: int, place: Place) -> list[Verdict] | None:
        ended = self._request(number, place)
        return ended if isinstance(ended, list) and not place.dead else None

    def _check_ended(self, node: Any) -> None:
        for number, place in enumerate(node[1]):
            ended = isinstance(self._request(number, place), list)
            assert place.dead or ended, f"writer {number} waits for ever: {node}"


def run_alone(store: Store, writer: Newcomer, policy: Policy, relation: Relation) -> tuple[Store, list[Verdict]]:
    """Let one writer go on to its end, long after all leases."""
    store = replace(store, late=20 * LATE)
    explorer = Explorer([writer], policy, relation)
    place = Place()
    while not isinstance(request := explorer._request(0, place), list):
        if isinstance(request, Pause):
            place = _answered(place, None)
            continue
        ((store, place),) = explorer._step(store, place, request)
    return store, request


def accepted(store: Store) -> dict[str, Any]:
    """Return the documents that were let in."""
    return {
        id_: source for id_, (_, source) in store.there("documents").items() if FORMS.pending(source) is None
    }


def _replayed(steps: Steps[list[Verdict]], answers: Sequence[Any]) -> Request | list[Verdict]:
    try:
        request = next(steps)
        for answer in answers:
            request = steps.send(answer)
    except StopIteration as end:
        return end.value
    return request


def _answered(place: Place, answer: Any) -> Place:
    return Place((*place.answers, answer), hash((place.key, repr(answer))))


def _with(places: tuple[Place, ...], number: int, place: Place) -> tuple[Place, ...]:
    return (*places[:number], place, *places[number + 1 :])
