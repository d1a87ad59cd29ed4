"""Numbers of groups for documents as they are indexed: each joins the leader it resembles most, or leads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from shinglefold.canon import Canonicalizer
from shinglefold.contracts import Engine, GuardedWrites
from shinglefold.errors import InputError
from shinglefold.groups.beside import Beside
from shinglefold.groups.deciding import likeness_of
from shinglefold.groups.gate.forms import GROUP, LEADER, Forms
from shinglefold.groups.likeness import Likeness
from shinglefold.groups.lookup import Lookup
from shinglefold.groups.numbers import numbers_of
from shinglefold.groups.rules import Rules, note
from shinglefold.groups.values import Values
from shinglefold.recipe import Recipe
from shinglefold.rerank.similar import Asked
from shinglefold.seal import Seal

Action = Mapping[str, Any]
#: Leaders kept that searches need not see yet, and characters of their texts; with more come refreshes.
_KEPT, _CHARACTERS = 3000, 20_000_000
#: Batches that may be on their way to the engine when another is numbered, this one among them.
_TRAVELLING = 2


class _Leader(NamedTuple):
    """A document that leads a group and that searches may not see yet."""

    asked: Asked
    id: str
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
        rules: when documents are alike; what they don't say is as the index notes it, and what they say is
            noted, so that whoever numbers later agrees.
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
    _batches: list[list[_Leader]] = field(default_factory=list)
    _forms: Forms = field(init=False)
    _untold: bool = field(init=False)

    def __post_init__(self) -> None:
        self._untold = self.rules != Rules()
        self.rules = self.rules.or_noted(self.recipe)
        self._forms = Forms(self.recipe.field)
        self.beside = Beside(self.engine, self.index)
        if self.rules.scope and self.engine.index_exists(self.index):
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
        asked: dict[int, Asked] = {}
        for place, action in enumerate(actions):
            try:
                asked[place] = self._likeness.asked(action["_source"])
            except InputError:
                # A document without a fingerprint is in no group.
                continue
        ids = [str(actions[place].get("_id", "")) for place in asked]
        numbered = dict(zip(asked, self._numbered(list(asked.values()), ids), strict=True))
        return [
            {**action, "_source": self._forms.stamped(action["_source"], *numbered[place])}
            if place in numbered
            else action
            for place, action in enumerate(actions)
        ]

    def _numbered(self, asked: Sequence[Asked], ids: Sequence[str]) -> list[tuple[int, bool]]:
        choices = [_Choice() for _ in asked]
        kept = self._offer_recent(asked, ids, choices)
        self._offer_stored(asked, ids, choices, kept)
        earlier: dict[int, list[tuple[int, float]]] = {}
        for pair in self._likeness.among(asked):
            earlier.setdefault(pair.other, []).append((pair.one, pair.likeness))
        numbers = [
            numbers_of(one.print, self._scope(one), self.index, id_)
            for one, id_ in zip(asked, ids, strict=True)
        ]
        free = [
            number
            for several, one in zip(numbers, choices, strict=True)
            if one.group is None
            for number in several
        ]
        taken = self._lookup.numbers(f"{self.recipe.field}.{GROUP}", free)
        taken |= {leader.group for batch in self._batches for leader in batch}
        led: list[_Leader] = []
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
                led.append(_Leader(asked[place], ids[place], choice.group))
        self._batches.append(led)
        return [(choice.group or 0, choice.leads) for choice in choices]

    def _offer_recent(
        self, asked: Sequence[Asked], ids: Sequence[str], choices: Sequence[_Choice]
    ) -> set[str]:
        """Offer the leaders of this run; return the ids of those, whose stored versions count no more."""
        recent = [leader for batch in self._batches for leader in batch]
        for pair in self._likeness.alike(asked, [leader.asked for leader in recent]):
            leader = recent[pair.other]
            self._offer(choices[pair.one], pair.likeness, leader.group, ids[pair.one] == leader.id)
        return {leader.id for leader in recent}

    def _offer_stored(
        self, asked: Sequence[Asked], ids: Sequence[str], choices: Sequence[_Choice], newer: set[str]
    ) -> None:
        found = self._lookup.find(asked, [{"term": {f"{self.recipe.field}.{LEADER}": True}}])
        hits = self._lookup.with_texts(found.hits, self._likeness.in_doubt(asked, found.hits))
        for pair in self._likeness.likened(asked, hits):
            hit = hits[pair.other]
            groups = (hit.get("fields") or {}).get(f"{self.recipe.field}.{GROUP}")
            if groups and hit["_id"] not in newer:
                self._offer(choices[pair.one], pair.likeness, groups[0], ids[pair.one] == hit["_id"])

    def _offer(self, choice: _Choice, likeness: float, group: int, own: bool) -> None:
        """Offer a leader; a document that leads goes on leading with the same text, and not with another."""
        if not own:
            choice.offer(likeness, group)
        elif likeness == 1.0:
            choice.likeness, choice.group, choice.leads = 2.0, group, True

    def _scope(self, asked: Asked) -> list[object]:
        return [asked.values.get(name, ()) for name in self.rules.scope]

    def _tell(self) -> None:
        """Note in the index what rules were given."""
        if self._untold:
            note(self.engine, self.index, self.rules, self.recipe.grouping.get("linkage", "leader"))
            self._untold = False

    def _forget(self) -> None:
        """Make what was indexed visible once there is much of it, and forget it."""
        kept = [leader for batch in self._batches for leader in batch]
        if len(kept) > _KEPT or sum(len(leader.asked.text) for leader in kept) > _CHARACTERS:
            self.engine.refresh(self.index)
            del self._batches[:-_TRAVELLING]
