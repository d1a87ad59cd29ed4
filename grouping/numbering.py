"""Group numbers of documents on their way into an index: each joins its most similar leader, or leads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from time import monotonic
from typing import Any, NamedTuple

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON, Engine
from shinglefold.errors import InputError
from shinglefold.grouping.candidate_search import CandidateLookup
from shinglefold.grouping.gate.protocol.placeholders import GROUP, LEADER, GateFields
from shinglefold.grouping.intent_index import ConcurrentRunMarker
from shinglefold.grouping.rules import Rules, note
from shinglefold.grouping.scope_values import Values
from shinglefold.grouping.similarity import (
    ComparedBatch,
    SimilarityModel,
    similarity_model,
)
from shinglefold.ingest.index_mapping import write_index_of
from shinglefold.model.recipe import Recipe
from shinglefold.model.seal import Seal
from shinglefold.model.values import Fingerprint
from shinglefold.rerank.similar import QueryDocument

Action = Mapping[str, Any]
#: Leaders kept in memory while searches can't see them, and characters of their texts; beyond, a refresh
#: comes.
_KEPT, _CHARACTERS = 3000, 20_000_000
#: Seconds between two looks at which index new documents go to.
_LOOKED = 15.0
#: Batches that may be on their way to the engine when one is numbered, including that one.
_TRAVELLING = 2
#: How many numbers a text may have; the second is for when another group has the first, and so on.
CHOICES = 4
_BITS = 63


class _Name(NamedTuple):
    """The name of a document: its index, its id and, where it has one, its routing."""

    where: str
    id: str
    routing: str | None = None


class _Leader(NamedTuple):
    """A document that leads a group and that searches may not see yet."""

    name: _Name
    group: int


@dataclass(slots=True)
class _Choice:
    """The best leader found for a document so far."""

    likeness: float = 0.0
    group: int | None = None
    leads: bool = False

    def offer(self, likeness: float, group: int, leads: bool = False) -> None:
        """Keep a leader that is more similar than the best so far; of equal ones the first."""
        if self.group is None or likeness > self.likeness:
            self.likeness, self.group, self.leads = likeness, group, leads


@dataclass
class Numbering:
    """Gives documents on their way into one index group numbers, by leader linkage in the order of the run.

    It compares a document with the stored leaders, with leaders of this run that searches don't see yet, and
    with those before it in its batch. Only one run may number at a time: it does not see documents of
    another run or of a gate. ``Gate`` with the policy ``tag`` does. ``beside`` knows whether there was
    another run.

    Args:
        index: may be missing still.
        rules: when documents are alike. Options that are None follow the recipe; the others are noted in it,
            so
            that later runs agree.
        canonicalizer: of the index's scheme, for texts that decide; None makes one.

    Raises:
        ConfigError: values of the scope can't be compared before they are stored.
    """

    engine: Engine
    index: str
    recipe: Recipe
    seal: Seal | None = None
    rules: Rules = field(default_factory=Rules)
    canonicalizer: Canonicalizer | None = None
    beside: ConcurrentRunMarker = field(init=False)
    #: The leaders of batches that searches need not see yet, and what they are compared by, in that order.
    _batches: list[list[_Leader]] = field(default_factory=list)
    _recent: ComparedBatch | None = None
    _forms: GateFields = field(init=False)
    _untold: bool = field(init=False)
    _taker: str = ""
    _looked: float = 0.0

    def __post_init__(self) -> None:
        given, self.rules = self.rules, self.rules.or_noted(self.recipe)
        beyond = self.rules.scope or self.recipe.grouping
        there = not beyond or self.engine.index_exists(self.index)
        self._untold = given != Rules() or (bool(self.recipe.grouping) and not there)
        self._forms = GateFields(self.recipe.field)
        self.beside = ConcurrentRunMarker(self.engine, self.index)
        if self.rules.scope and there:
            # A scope that can't be compared is refused before anything is written.
            Values.of_all(self.engine, self.index, self.rules.scope)

    @cached_property
    def _likeness(self) -> SimilarityModel:
        values = Values.of_all(self.engine, self.index, self.rules.scope)
        return similarity_model(self.recipe, self.rules, self.seal, values, self.canonicalizer)

    @cached_property
    def _lookup(self) -> CandidateLookup:
        beside = [f"{self.recipe.field}.{GROUP}"]
        return CandidateLookup(
            self.engine, self.index, self._likeness, beside=beside, parameters=self.engine.can.newest
        )

    def number(self, actions: Sequence[Action]) -> list[Action]:
        """Return index actions whose documents have the number of their group; others as they are.

        Raises:
            EngineError: the engine can't be asked.
        """
        self._tell()
        self._forget()
        self.beside.look()
        if self._taker != self.index:
            # Behind an alias new documents may go to another index from one batch to the next.
            self._taker = ""
        asked: dict[int, QueryDocument] = {}
        for place, action in enumerate(actions):
            try:
                asked[place] = self._likeness.asked(action["_source"])
            except InputError:
                # A document without a fingerprint is in no group.
                continue
        names = [self._name(actions[place]) for place in asked]
        numbered = dict(zip(asked, self._numbered(list(asked.values()), names), strict=True))
        return [
            {**action, "_source": self._forms.stamped(action["_source"], *numbered[place])}
            if place in numbered
            else action
            for place, action in enumerate(actions)
        ]

    def _name(self, action: Action) -> _Name:
        """Return the name of a document: several indices of an alias may have its id."""
        index = str(action.get("_index", self.index))
        where = self._takes_new if index == self.index else index
        return _Name(where, str(action.get("_id", "")), action.get("routing"))

    @property
    def _takes_new(self) -> str:
        """The index that new documents go to; an alias may change it."""
        now = monotonic()
        if not self._taker or now - self._looked > _LOOKED:
            self._taker, self._looked = write_index_of(self.engine, self.index), now
        return self._taker

    def _numbered(self, asked: Sequence[QueryDocument], names: Sequence[_Name]) -> list[tuple[int, bool]]:
        if not asked:
            return []
        choices = [_Choice() for _ in asked]
        numbers = [
            numbers_of(one.print, self._scope(one), *name) for one, name in zip(asked, names, strict=True)
        ]
        batch = self._likeness.batch(asked, self._recent.reader if self._recent else None)
        kept = self._offer_recent(batch, names, choices)
        taken = self._offer_stored(batch, names, choices, kept, numbers)
        taken |= {leader.group for leaders in self._batches for leader in leaders}
        earlier: dict[int, list[tuple[int, float]]] = {}
        for pair in self._likeness.among(batch):
            earlier.setdefault(pair.other, []).append((pair.one, pair.likeness))
        led: list[int] = []
        for place, choice in enumerate(choices):
            for other, likeness in earlier.get(place, ()):
                group = choices[other].group
                if choices[other].leads and group is not None:
                    choice.offer(likeness, group)
            if choice.group is None:
                choice.group = next((one for one in numbers[place] if one not in taken), numbers[place][-1])
                choice.leads = True
                taken.add(choice.group)
            if choice.leads:
                led.append(place)
        self._batches.append([_Leader(names[place], choices[place].group or 0) for place in led])
        leaders = batch.take(led)
        self._recent = self._recent.join(leaders) if self._recent else leaders
        return [(choice.group or 0, choice.leads) for choice in choices]

    def _offer_recent(
        self, batch: ComparedBatch, names: Sequence[_Name], choices: Sequence[_Choice]
    ) -> set[_Name]:
        """Offer the leaders of this run; return their names, because their stored versions are outdated."""
        if self._recent is None:
            return set()
        recent = [leader for leaders in self._batches for leader in leaders]
        for pair in self._likeness.alike(batch, self._recent):
            leader = recent[pair.other]
            self._offer(choices[pair.one], pair.likeness, leader.group, names[pair.one] == leader.name)
        return {leader.name for leader in recent}

    def _offer_stored(
        self,
        batch: ComparedBatch,
        names: Sequence[_Name],
        choices: Sequence[_Choice],
        newer: set[_Name],
        numbers: Sequence[Sequence[int]],
    ) -> set[int]:
        """Offer the stored leaders; return which of the possible numbers are taken."""
        group = f"{self.recipe.field}.{GROUP}"
        leading: list[JSON] = [{"term": {f"{self.recipe.field}.{LEADER}": True}}]
        wanted = sorted({number for several in numbers for number in several})
        hits, taken = self._lookup.find(batch.asked, leading, group, wanted)
        for pair in self._likeness.similar_pairs(batch, hits, self._lookup.with_texts):
            hit = hits[pair.other]
            groups = (hit.get("fields") or {}).get(group)
            stored = _Name(hit["_index"], hit["_id"], hit.get("_routing"))
            if groups and stored not in newer:
                self._offer(choices[pair.one], pair.likeness, groups[0], names[pair.one] == stored)
        return taken

    def _offer(self, choice: _Choice, likeness: float, group: int, own: bool) -> None:
        """Offer a leader; a stored leader goes on leading only with the same text."""
        if not own:
            choice.offer(likeness, group)
        elif likeness == 1.0:
            choice.likeness, choice.group, choice.leads = 2.0, group, True

    def _scope(self, asked: QueryDocument) -> list[Sequence[Any]]:
        return [asked.values.get(name, ()) for name in self.rules.scope]

    def _tell(self) -> None:
        """Note the given rules in the index."""
        if self._untold:
            note(self.engine, self.index, self.rules, self.recipe.grouping.get("linkage", "leader"))
            self._untold = False

    def _forget(self) -> None:
        """Refresh the index and forget its leaders once there are many of them."""
        asked = self._recent.asked if self._recent else ()
        if len(asked) > _KEPT or sum(len(one.text) for one in asked) > _CHARACTERS:
            self.engine.refresh(self.index)
            del self._batches[:-_TRAVELLING]
            left = sum(map(len, self._batches))
            # By another reader, as one keeps a number for each text that it ever read.
            self._recent = self._likeness.batch(asked[-left:]) if left else None


def numbers_of(
    made: Fingerprint,
    scope: Sequence[Sequence[Any]],
    index: str,
    id_: str,
    routing: str | None = None,
) -> tuple[int, ...]:
    """Return the numbers with which a document may found a group, in the order to try them.

    Equal texts of equal scope have equal numbers, so that indexing again changes none. A document without a
    text or without a value in the scope matches no other: it has one number, made of its index, id and
    routing.

    Args:
        scope: the values of each scope field, an empty list for none.
    """
    scoped = all(scope)
    shared = made.digest if scoped else ""
    values = [str(value) for value in scope] if scoped else []
    own = f"\0{index}\0{id_}" if routing is None else f"\0{index}\0{id_}\0{routing}"
    told = repr((made.scheme, shared or own, values))
    return tuple(_number(told, choice) for choice in range(CHOICES if shared else 1))


def _number(told: str, choice: int) -> int:
    made = blake2b(told.encode("utf-8", "surrogatepass"), digest_size=8, salt=choice.to_bytes(1, "big"))
    return int.from_bytes(made.digest(), "big") >> (64 - _BITS)
