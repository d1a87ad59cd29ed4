"""Numbers of groups for documents as they are indexed: each joins the leader it resembles most, or leads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import monotonic
from typing import Any, NamedTuple

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON, Engine, GuardedWrites
from shinglefold.errors import InputError
from shinglefold.groups.candidate_search import Lookup
from shinglefold.groups.concurrent_runs import Beside
from shinglefold.groups.deciding import likeness_of
from shinglefold.groups.gate.protocol.placeholders import GROUP, LEADER, Forms
from shinglefold.groups.numbers import numbers_of
from shinglefold.groups.rules import Rules, note
from shinglefold.groups.scope_values import Values
from shinglefold.groups.similarity import Batch, Likeness
from shinglefold.ingest.index_mapping import taker
from shinglefold.model.recipe import Recipe
from shinglefold.model.seal import Seal
from shinglefold.rerank.similar import QueryDocument

Action = Mapping[str, Any]
#: Leaders kept that searches need not see yet, and characters of their texts; with more come refreshes.
_KEPT, _CHARACTERS = 3000, 20_000_000
#: Seconds after which is looked again which index takes new documents.
_LOOKED = 15.0
#: Batches that may be on their way to the engine when another is numbered, this one among them.
_TRAVELLING = 2


class _Name(NamedTuple):
    """What names a document: its index, its id and, where it has one, its routing."""

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
        """Take a leader where it is more alike than the best so far; of equal ones the first."""
        if self.group is None or likeness > self.likeness:
            self.likeness, self.group, self.leads = likeness, group, leads


@dataclass
class Numbering:
    """Numbers the groups of documents on their way into one index: leader linkage, in the order of the run.

    A document is held against the leaders that are stored, those of this run that searches do not see yet,
    and those before it in its batch. It is for one run at a time: what another run or a gate lets in at the
    same moment is not seen, and ``Gate`` with the policy ``tag`` is for that. ``beside`` knows whether there
    was another run.

    Args:
        index: which need not be there yet.
        rules: when documents are alike; what they don't say is as the recipe notes it, and what they say is
            noted, so that whoever numbers later agrees; all of it where the index is not there yet.
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
    beside: Beside = field(init=False)
    #: The leaders of batches that searches need not see yet, and what they are compared by, in that order.
    _batches: list[list[_Leader]] = field(default_factory=list)
    _recent: Batch | None = None
    _forms: Forms = field(init=False)
    _untold: bool = field(init=False)
    _taker: str = ""
    _looked: float = 0.0

    def __post_init__(self) -> None:
        given, self.rules = self.rules, self.rules.or_noted(self.recipe)
        beyond = self.rules.scope or self.recipe.grouping
        there = not beyond or self.engine.index_exists(self.index)
        self._untold = given != Rules() or (bool(self.recipe.grouping) and not there)
        self._forms = Forms(self.recipe.field)
        self.beside = Beside(self.engine, self.index)
        if self.rules.scope and there:
            # What can't be numbered is refused before anything is written.
            Values.of_all(self.engine, self.index, self.rules.scope)

    @cached_property
    def _likeness(self) -> Likeness:
        values = Values.of_all(self.engine, self.index, self.rules.scope)
        return likeness_of(self.recipe, self.rules, self.seal, values, self.canonicalizer)

    @cached_property
    def _lookup(self) -> Lookup:
        newest = self.engine.newest if isinstance(self.engine, GuardedWrites) else None
        beside = [f"{self.recipe.field}.{GROUP}"]
        return Lookup(self.engine, self.index, self._likeness, beside=beside, parameters=newest)

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
        """Return what names a document: behind an alias several indices may have one of its id."""
        index = str(action.get("_index", self.index))
        where = self._takes_new if index == self.index else index
        return _Name(where, str(action.get("_id", "")), action.get("routing"))

    @property
    def _takes_new(self) -> str:
        """The index that new documents go to: behind an alias one of another name, which may change."""
        now = monotonic()
        if not self._taker or now - self._looked > _LOOKED:
            self._taker, self._looked = taker(self.engine, self.index), now
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

    def _offer_recent(self, batch: Batch, names: Sequence[_Name], choices: Sequence[_Choice]) -> set[_Name]:
        """Offer the leaders of this run; return their names, as their stored versions count no more."""
        if self._recent is None:
            return set()
        recent = [leader for leaders in self._batches for leader in leaders]
        for pair in self._likeness.alike(batch, self._recent):
            leader = recent[pair.other]
            self._offer(choices[pair.one], pair.likeness, leader.group, names[pair.one] == leader.name)
        return {leader.name for leader in recent}

    def _offer_stored(
        self,
        batch: Batch,
        names: Sequence[_Name],
        choices: Sequence[_Choice],
        newer: set[_Name],
        numbers: Sequence[Sequence[int]],
    ) -> set[int]:
        """Offer the leaders that are stored; return which of the numbers documents may have are taken."""
        group = f"{self.recipe.field}.{GROUP}"
        leading: list[JSON] = [{"term": {f"{self.recipe.field}.{LEADER}": True}}]
        wanted = sorted({number for several in numbers for number in several})
        hits, taken = self._lookup.find(batch.asked, leading, group, wanted)
        for pair in self._likeness.likened(batch, hits, self._lookup.with_texts):
            hit = hits[pair.other]
            groups = (hit.get("fields") or {}).get(group)
            stored = _Name(hit["_index"], hit["_id"], hit.get("_routing"))
            if groups and stored not in newer:
                self._offer(choices[pair.one], pair.likeness, groups[0], names[pair.one] == stored)
        return taken

    def _offer(self, choice: _Choice, likeness: float, group: int, own: bool) -> None:
        """Offer a leader; a document that leads goes on leading with the same text, and not with another."""
        if not own:
            choice.offer(likeness, group)
        elif likeness == 1.0:
            choice.likeness, choice.group, choice.leads = 2.0, group, True

    def _scope(self, asked: QueryDocument) -> list[Sequence[Any]]:
        return [asked.values.get(name, ()) for name in self.rules.scope]

    def _tell(self) -> None:
        """Note in the index what rules were given."""
        if self._untold:
            note(self.engine, self.index, self.rules, self.recipe.grouping.get("linkage", "leader"))
            self._untold = False

    def _forget(self) -> None:
        """Make what was indexed visible once there is much of it, and forget it."""
        asked = self._recent.asked if self._recent else ()
        if len(asked) > _KEPT or sum(len(one.text) for one in asked) > _CHARACTERS:
            self.engine.refresh(self.index)
            del self._batches[:-_TRAVELLING]
            left = sum(map(len, self._batches))
            # By another reader, as one keeps a number for each text that it ever read.
            self._recent = self._likeness.batch(asked[-left:]) if left else None
