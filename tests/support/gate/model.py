"""Explore every interleaving of writers on a store that behaves as badly as allowed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from support.gate.store import FORMS, LATE, WAKES, Letters, Relation, Store, napped_on, woke

from shinglefold.contracts.engine import WriteResult
from shinglefold.grouping.gate.group_commit import DecisionJob, WaitingCaller
from shinglefold.grouping.gate.protocol.decide import DecisionContext
from shinglefold.grouping.gate.protocol.intent_register import SharedRegister
from shinglefold.grouping.gate.protocol.intents import WRITERS
from shinglefold.grouping.gate.protocol.pending_document import (
    Now,
    Pause,
    PendingDocument,
    Refresh,
    Steps,
    Verdict,
    Write,
)
from shinglefold.grouping.gate.protocol.protocol import decide, publish_settled
from shinglefold.grouping.rules import Policy
from shinglefold.ingest.writing.batch import ReadBack
from shinglefold.runtime.backoff import Backoff

#: Variables of a writer's steps that are the same in each of its states, or told by ``_state``.
_CONSTANT = {"context", "self", "register", "policy", "relation"}


@dataclass(frozen=True)
class Newcomer:
    """A writer: its documents by id and text.

    Attributes:
        cleans: whether it clears the records of crashed writers.
        apart: whether it decides about its documents one by one.
        retry: how often it begins again where the store fails.
        creates: whether its documents fail where their ids are stored.
    """

    name: str
    texts: tuple[tuple[str, str], ...]
    cleans: bool = False
    apart: bool = False
    retry: Backoff = field(default_factory=Backoff)
    creates: bool = False

    def steps(self, policy: Policy, relation: Relation, register: SharedRegister) -> Steps[list[Verdict]]:
        items = self.documents(relation)
        context = self.context(policy, relation, register)
        verdicts: list[Verdict] = []
        for batch in [[one] for one in items] if self.apart else [items]:
            verdicts += yield from decide(batch, context)
            yield from publish_settled(register)
            if self.cleans:
                yield from register.clean(FORMS)
        return verdicts

    def documents(self, relation: Relation) -> list[PendingDocument]:
        return [
            PendingDocument(
                id_,
                {"_dedup": {"digest": text}},
                text,
                (_number(text), _number(text) + 1),
                relation.words(text),
                self.creates,
            )
            for id_, text in self.texts
        ]

    def context(self, policy: Policy, relation: Relation, register: SharedRegister) -> DecisionContext:
        return DecisionContext(
            policy,
            Letters(relation),
            FORMS,
            register.new_id,
            register,
            max_wait=10**9,
            first_reads=1,
            retry=self.retry,
        )

    def job(self, policy: Policy, relation: Relation, callers: list[WaitingCaller]) -> DecisionJob:
        return DecisionJob(
            callers,
            self.context(policy, relation, self.register()),
            batches=lambda documents: [list(documents)],
            pending_document=lambda document: document,
            describe=lambda verdict: verdict,
            # The index has no pipelines, so that nothing is read back.
            read_back=ReadBack(None, "i", None),
            shared=True,
        )

    def register(self) -> SharedRegister:
        """Return a register that knows no other gate yet."""
        counted = iter(range(1000))
        return SharedRegister(lambda: f"{self.name}-{next(counted):03}")


def _number(text: str) -> int:
    return 10 * ord(text[0])


@dataclass(frozen=True)
class Place:
    """The state of a writer.

    Attributes:
        answers: to its requests so far.
        key: a hash of the state of its steps, which several sequences of answers may lead to.
        request: its open request, or its verdicts at the end.
        parts: the actions of the request that are done, with their results.
        parked: while it waits: the store and the progress of the others when that began, and its rank.
    """

    answers: tuple[Any, ...] = ()
    key: int = 0
    request: Any = None
    parts: tuple[tuple[int, WriteResult], ...] = ()
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
    start: Store = field(default_factory=Store)
    _next: dict[tuple[Any, ...], Place] = field(default_factory=dict)
    #: Steps that stand at a place, with their register. The first answer goes to them; those of any other are
    #: made anew, as a generator can't be copied.
    _standing: dict[tuple[int, int], tuple[Steps[list[Verdict]], SharedRegister]] = field(
        default_factory=dict
    )

    def walk(self, check: Callable[[Store, list[list[Verdict] | None]], None]) -> int:
        """Call ``check`` with every end: the store, and each writer's verdicts, None where it died."""
        places = tuple(self._replayed(number, ()) for number in range(len(self.writers)))
        begin = (self.start, places, self.crashes, (-1, 0))
        known, todo, ends = {self._key(begin)}, [begin], 0
        while todo:
            node = todo.pop()
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
            (place.key, place.parts, place.dead, place.parked and place.parked[1:]) for place in places
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
            if isinstance(request, Write) and (at := _alone(request, place.parts, store)) is not None:
                # Nor here.
                store, written = store.run(request.actions[at])
                moved = self._done(number, place, at, written)
                yield store, _with(places, number, self._asleep(moved, store, places)), crashes, turn
                return
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
                changed = napped_on(after) if napped else after
                asleep = self._asleep(moved, changed, places)
                yield changed, _with(places, number, asleep), crashes, moved_on
            if crashes:
                dead = replace(places[number], dead=True)
                yield store, _with(places, number, dead), crashes - 1, (-1, moved_on[1])
        if self.late and moves and not store.late:
            # At any moment, once.
            yield replace(store, late=LATE), places, crashes, turn
        elif running and not moves and store.woken < WAKES:
            # All wait, and look again, though nothing has changed; if that does not help leases end.
            passed = LATE if store.woken % 3 == 2 else 0
            yield (
                replace(store, woken=store.woken + 1, late=store.late + passed),
                places,
                crashes,
                (-1, turn[1]),
            )

    def _turn(self, turn: tuple[int, int], number: int, moves: Mapping[int, Any]) -> tuple[int, int] | None:
        """Return the last writer and the number of switches after a move; None where there are too many."""
        last, switches = turn
        if self.switches is None:
            return turn
        if last != number and last in moves:
            switches += 1
        return (number, switches) if switches <= self.switches else None

    def _asleep(self, place: Place, store: Store, places: Sequence[Place]) -> Place:
        """Park a writer that pauses, at its last answer, so that any later step of others may wake it."""
        if not isinstance(place.request, Pause):
            return place
        rank = max((other.parked[2] for other in places if other.parked), default=0) + 1
        return replace(place, parked=(store, self._far(places), rank))

    def _far(self, places: Sequence[Place]) -> tuple[int, ...]:
        """Return how many steps each writer has done; −1 where it waits or has ended."""
        return tuple(
            -1
            if place.dead or place.parked is not None or isinstance(place.request, list)
            else len(place.answers) + len(place.parts)
            for number, place in enumerate(places)
        )

    def _step(
        self, number: int, store: Store, place: Place, far: tuple[int, ...]
    ) -> Iterator[tuple[Store, Place]]:
        request = place.request
        if isinstance(request, Pause):
            if place.parked and woke(place.parked, store, far):
                yield store, self._answered(number, place, None)
        elif isinstance(request, Refresh):
            yield store.refreshed(), self._answered(number, place, None)
        elif isinstance(request, Write):
            for at in _next_of(request, place.parts):
                changed, written = store.run(request.actions[at])
                yield changed, self._done(number, place, at, written)
        else:
            yield store, self._answered(number, place, store.answer(request, self.relation))

    def _done(self, number: int, place: Place, at: int, written: WriteResult) -> Place:
        """Return a writer with one more action of its request done."""
        parts = tuple(sorted((*place.parts, (at, written)), key=itemgetter(0)))
        if len(parts) < len(place.request.actions):
            return replace(place, parts=parts)
        return self._answered(number, place, [one for _, one in parts])

    def _replayed(self, number: int, answers: tuple[Any, ...]) -> Place:
        """Return a writer after some answers."""
        register = self.writers[number].register()
        steps = self.writers[number].steps(self.policy, self.relation, register)
        return self._sent(number, answers, steps, register, (None, *answers))

    def _sent(
        self,
        number: int,
        answers: tuple[Any, ...],
        steps: Steps[list[Verdict]],
        register: SharedRegister,
        sent: tuple[Any, ...],
    ) -> Place:
        request: Any = None
        try:
            for answer in sent:
                request = steps.send(answer)
        except StopIteration as end:
            return Place(answers, hash(repr(end.value)), end.value)
        place = Place(answers, hash((_local(steps), _state(register))), request)
        self._standing[number, place.key] = steps, register
        return place

    def _answered(self, number: int, place: Place, answer: Any) -> Place:
        key = (number, place.key, tuple(answer) if isinstance(answer, list) else answer)
        if key not in self._next:
            answers = (*place.answers, answer)
            if standing := self._standing.pop((number, place.key), None):
                self._next[key] = self._sent(number, answers, *standing, (answer,))
            else:
                self._next[key] = self._replayed(number, answers)
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
    """Run one writer to its end, long after all leases have expired."""
    store = replace(store, late=20 * LATE)
    # Not by an explorer, which would spell out the state of each step.
    steps, answer = writer.steps(policy, relation, writer.register()), None
    while True:
        try:
            request = steps.send(answer)
        except StopIteration as end:
            return store, end.value
        store, answer = store.answered(request, relation)


def accepted(store: Store) -> dict[str, Any]:
    return {
        id_: source
        for id_, (_, source) in store.there("documents").items()
        if FORMS.expiry_of(source) is None
    }


def named(store: Store) -> set[str]:
    """Return the ids of published intents."""
    there = {id_: source for id_, (_, source) in store.there("intents").items()}
    heads = [there[name] for name in there.get(WRITERS, {"names": ()})["names"] if name in there]
    rounds = [there[name] for head in heads for name in head["rounds"] if name in there]
    return {intent["attempt"] for round_ in rounds for intent in round_["intents"]}


def _next_of(request: Write, parts: tuple[tuple[int, WriteResult], ...]) -> list[int]:
    """Return the positions of actions that may be done next: any on documents, the first one on intents.

    A server runs the actions of a request shard by shard, and keeps their order on one shard only.
    """
    done = {at for at, _ in parts}
    left = [at for at in range(len(request.actions)) if at not in done]
    intents = [at for at in left if request.actions[at].where == "intents"]
    return [at for at in left if request.actions[at].where == "documents"] + intents[:1]


def _alone(request: Write, parts: tuple[tuple[int, WriteResult], ...], store: Store) -> int | None:
    """Return the position of an action that no other writer can notice."""
    private = (at for at in _next_of(request, parts) if store.private(request.actions[at]))
    return next(private, None)


def _state(register: SharedRegister) -> str:
    """Return the state of a register, with sets in order."""
    own = (getattr(register, name) for name in register.__slots__ if name not in ("new_id", "known"))
    known = (getattr(register.known, name) for name in register.known.__slots__)
    return repr([sorted(one) if isinstance(one, set) else one for one in (*own, *known)])


def _local(steps: Any) -> int:
    """Return a hash of the state of nested generators: their positions and local variables."""
    told: list[Any] = []
    met: dict[int, int] = {}
    while (frame := getattr(steps, "gi_frame", None)) is not None:
        known = [
            (name, _spelled(value, met)) for name, value in frame.f_locals.items() if name not in _CONSTANT
        ]
        told.append((frame.f_code.co_name, frame.f_lasti, *known))
        steps = steps.gi_yieldfrom
    return hash(tuple(told))


def _spelled(value: Any, met: dict[int, int]) -> str:
    """Return the text of a value, in which each pending document occurs once: it is in a dozen variables."""
    if isinstance(value, PendingDocument):
        if id(value) in met:
            return f"#{met[id(value)]}"
        met[id(value)] = len(met)
        return repr(value)
    if type(value) in (list, tuple):
        return f"[{','.join(_spelled(one, met) for one in value)}]"
    if type(value) is dict:
        return f"{{{','.join(f'{_spelled(k, met)}:{_spelled(v, met)}' for k, v in value.items())}}}"
    return repr(value)


def _with(places: tuple[Place, ...], number: int, place: Place) -> tuple[Place, ...]:
    return (*places[:number], place, *places[number + 1 :])
