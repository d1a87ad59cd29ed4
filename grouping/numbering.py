"""Group numbers of documents that are being indexed: each joins its most similar leader, or leads a group."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from time import monotonic
from typing import Any, NamedTuple

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.documents import with_id
from shinglefold.errors import InputError
from shinglefold.grouping.candidate_search import CandidateLookup
from shinglefold.grouping.field_values import Values
from shinglefold.grouping.gate.protocol.pending_document import GROUP, LEADER, GateFields, numbers_of
from shinglefold.grouping.intent_index import ConcurrentRunMarker
from shinglefold.grouping.rules import Rules, note
from shinglefold.grouping.similarity import ComparedBatch, Pair, SimilarityModel, similarity_model
from shinglefold.ingest.index_mapping import write_index_of
from shinglefold.ingest.writing.batch import Action
from shinglefold.maintenance.reconcile import DocumentKey, key_of
from shinglefold.model.linkage import noted_linkage
from shinglefold.model.recipe import Recipe
from shinglefold.model.seal import Seal
from shinglefold.rerank.similar import QueryDocument

#: The most leaders in memory that searches can't see yet, characters of their texts, and keys of documents,
#: before a refresh.
_RECENT, _CHARACTERS, _KEYS = 3000, 20_000_000, 50_000
#: Seconds between two checks of which index new documents go to.
_ALIAS_CHECK = 15.0
#: The most batches in flight while a batch is numbered, including that batch.
_IN_FLIGHT = 2


class _Leader(NamedTuple):
    """A leader of a group that searches may not see yet."""

    key: DocumentKey
    group: int


class _NumberedBatch(NamedTuple):
    """The keys and the leaders of a batch that searches may not see yet."""

    keys: Sequence[DocumentKey]
    leaders: Sequence[_Leader]


@dataclass(slots=True)
class _Choice:
    """The best leader found for a document so far."""

    likeness: float = 0.0
    group: int | None = None
    leads: bool = False

    def offer(self, likeness: float, group: int) -> None:
        """Keep a leader that is more similar than the best so far; of equally similar ones the first."""
        if self.group is None or likeness > self.likeness:
            self.likeness, self.group, self.leads = likeness, group, False


@dataclass
class Numbering:
    """Gives documents that are being indexed group numbers, by leader linkage in the order of the run.

    It compares a document with the stored leaders, and with leaders that searches don't see yet: those of
    earlier batches, and those before it in its batch. Only one run may number at a time, because it does not
    see documents of another run or of a gate. ``Gate`` with the policy ``tag`` sees them.

    Args:
        index: an index, or one that is still to be created.
        rules: when documents match. Options that are None follow the recipe; the others are noted in it, so
            that later runs agree.

    Attributes:
        marker: shows whether another run numbered the index at the same time.

    Raises:
        ConfigError: values of the scope can't be compared before they are stored.
    """

    engine: Engine
    index: str
    recipe: Recipe
    seal: Seal | None = None
    rules: Rules = field(default_factory=Rules)
    marker: ConcurrentRunMarker = field(init=False)
    #: Batches that searches may not see yet; ``_recent`` has their leaders in the same order.
    _batches: list[_NumberedBatch] = field(default_factory=list)
    _recent: ComparedBatch | None = None
    #: The keys of their documents: what searches find of these is outdated.
    _rewritten: set[DocumentKey] = field(default_factory=set)
    _gate_fields: GateFields = field(init=False)
    _must_note: bool = field(init=False)
    _write_index: tuple[str, str | None] = ("", None)
    _alias_checked: float = 0.0

    def __post_init__(self) -> None:
        given, self.rules = self.rules, self.rules.or_noted(self.recipe)
        must_know = self.rules.scope or self.recipe.grouping
        exists = not must_know or self.engine.index_exists(self.index)
        self._must_note = given != Rules() or (bool(self.recipe.grouping) and not exists)
        self._gate_fields = GateFields(self.recipe.field)
        self.marker = ConcurrentRunMarker(self.engine, self.index)
        if self.rules.scope and exists:
            # Raises before anything is written.
            Values.of_all(self.engine, self.index, self.rules.scope)

    @cached_property
    def _model(self) -> SimilarityModel:
        values = Values.of_all(self.engine, self.index, self.rules.scope)
        return similarity_model(self.recipe, self.rules, self.seal, values)

    @cached_property
    def _lookup(self) -> CandidateLookup:
        newest = self.engine.can.newest
        group = [f"{self.recipe.field}.{GROUP}"]
        return CandidateLookup(self.engine, self.index, self._model, doc_values=group, parameters=newest)

    def number(self, actions: Sequence[Action]) -> list[Action]:
        """Return index actions; add the group number to each document with a fingerprint."""
        if self._must_note:
            note(self.engine, self.index, self.rules, noted_linkage(self.recipe.grouping))
            self._must_note = False
        self._refresh_if_many()
        self.marker.renew()
        if self._write_index[0] != self.index:
            # Behind an alias new documents may go to another index from one batch to the next.
            self._write_index = ("", None)
        # Without an id a document could not be told from others.
        actions = [with_id(action) for action in actions]
        documents: dict[int, QueryDocument] = {}
        for place, action in enumerate(actions):
            # A document without a fingerprint is in no group.
            with suppress(InputError):
                documents[place] = self._model.query_document(action["_source"])
        keys = [self._key_of(actions[place]) for place in documents]
        numbered = dict(zip(documents, self._assign_numbers(list(documents.values()), keys), strict=True))
        return [
            {**action, "_source": self._gate_fields.add_group(action["_source"], *numbered[place])}
            if place in numbered
            else action
            for place, action in enumerate(actions)
        ]

    def _key_of(self, action: Action) -> DocumentKey:
        """Return the key of a document: several indices of an alias may have its id."""
        index = str(action.get("_index", self.index))
        where, routing = self._current_write_index() if index == self.index else (index, None)
        return DocumentKey(where, str(action["_id"]), action.get("routing", routing))

    def _current_write_index(self) -> tuple[str, str | None]:
        """Return the index that new documents go to, and its routing; an alias may change both."""
        now = monotonic()
        if not self._write_index[0] or now - self._alias_checked > _ALIAS_CHECK:
            self._write_index, self._alias_checked = write_index_of(self.engine, self.index), now
        return self._write_index

    def _assign_numbers(
        self, documents: Sequence[QueryDocument], keys: Sequence[DocumentKey]
    ) -> list[tuple[int, bool]]:
        """Return the number of each document, and whether it leads its group."""
        if not documents:
            return []
        choices = [_Choice() for _ in documents]
        numbers = [
            numbers_of(document.print, self._scope_of(document), key.index, key.id, key.routing)
            for document, key in zip(documents, keys, strict=True)
        ]
        batch = self._model.batch(documents, self._recent.reader if self._recent else None)
        # A document that comes twice in a batch is replaced by its last version.
        places = {key: place for place, key in enumerate(keys)}
        stored = set(places.values())
        self._offer_recent(batch, places, choices)
        taken = self._offer_stored(batch, places, choices, numbers)
        taken |= {leader.group for numbered in self._batches for leader in numbered.leaders}
        earlier: dict[int, list[tuple[int, float]]] = {}
        for pair in self._model.similar_within(batch):
            earlier.setdefault(pair.other, []).append((pair.one, pair.likeness))
        leading: list[int] = []
        for place, choice in enumerate(choices):
            for other, likeness in earlier.get(place, ()):
                group = choices[other].group
                if other in stored and choices[other].leads and group is not None:
                    choice.offer(likeness, group)
            if choice.group is None:
                choice.group = next((one for one in numbers[place] if one not in taken), numbers[place][-1])
                choice.leads = True
            if choice.leads and place in stored:
                taken.add(choice.group)
                leading.append(place)
        self._forget({*keys})
        own = [_Leader(keys[place], choices[place].group or 0) for place in leading]
        self._batches.append(_NumberedBatch(keys, own))
        self._rewritten.update(keys)
        leaders = batch.take(leading)
        self._recent = self._recent.join(leaders) if self._recent else leaders
        return [(choice.group or 0, choice.leads) for choice in choices]

    def _forget(self, keys: set[DocumentKey]) -> None:
        """Forget recent leaders that were written again, and so have another text or role."""
        recent = [leader for numbered in self._batches for leader in numbered.leaders]
        kept = [place for place, leader in enumerate(recent) if leader.key not in keys]
        if self._recent is None or len(kept) == len(recent):
            return
        self._recent = self._recent.take(kept)
        self._batches = [
            numbered._replace(leaders=[leader for leader in numbered.leaders if leader.key not in keys])
            for numbered in self._batches
        ]

    def _scope_of(self, document: QueryDocument) -> list[Sequence[Any]]:
        return [document.values.get(one, ()) for one in self.rules.scope]

    def _offer_recent(
        self, batch: ComparedBatch, places: Mapping[DocumentKey, int], choices: Sequence[_Choice]
    ) -> None:
        """Offer the recent leaders of this run."""
        if self._recent is None:
            return
        recent = [leader for numbered in self._batches for leader in numbered.leaders]
        pairs = self._model.similar_between(batch, self._recent)
        self._offer(choices, [(pair, recent[pair.other]) for pair in pairs], places)

    def _offer_stored(
        self,
        batch: ComparedBatch,
        places: Mapping[DocumentKey, int],
        choices: Sequence[_Choice],
        numbers: Sequence[Sequence[int]],
    ) -> set[int]:
        """Offer the stored leaders that this run has not replaced; return which numbers are taken."""
        group = f"{self.recipe.field}.{GROUP}"
        leading: list[JSON] = [{"term": {f"{self.recipe.field}.{LEADER}": True}}]
        wanted = sorted({number for several in numbers for number in several})
        hits, taken = self._lookup.find(batch.documents, leading, group, wanted)
        offers: list[tuple[Pair, _Leader]] = []
        for pair in self._model.similar_pairs(batch, hits, self._lookup.with_texts):
            hit = hits[pair.other]
            groups = (hit.get("fields") or {}).get(group)
            stored = key_of(hit)
            if groups and stored not in self._rewritten:
                offers.append((pair, _Leader(stored, groups[0])))
        self._offer(choices, offers, places)
        return taken

    def _offer(
        self,
        choices: Sequence[_Choice],
        offers: Sequence[tuple[Pair, _Leader]],
        places: Mapping[DocumentKey, int],
    ) -> None:
        """Offer leaders to the documents that match them.

        A leader that the batch writes again still leads if its text is the same. After its place in the
        batch, documents are compared with what is written.
        """
        staying = {
            leader.key
            for pair, leader in offers
            if places.get(leader.key) == pair.one and pair.likeness == 1.0
        }
        for pair, leader in offers:
            choice, place = choices[pair.one], places.get(leader.key, len(choices))
            if place > pair.one and (leader.key not in places or leader.key in staying):
                choice.offer(pair.likeness, leader.group)
            elif place == pair.one and leader.key in staying:
                choice.likeness, choice.group, choice.leads = 2.0, leader.group, True

    def _refresh_if_many(self) -> None:
        """Refresh the index and forget recent batches once they have many documents or leaders."""
        recent = self._recent.documents if self._recent else ()
        characters = sum(len(document.text) for document in recent)
        if len(recent) > _RECENT or len(self._rewritten) > _KEYS or characters > _CHARACTERS:
            self.engine.refresh(self.index)
            del self._batches[:-_IN_FLIGHT]
            self._rewritten = {key for numbered in self._batches for key in numbered.keys}
            in_flight = sum(len(numbered.leaders) for numbered in self._batches)
            # A new reader, because a reader keeps a number for each text that it ever read.
            self._recent = self._model.batch(recent[-in_flight:]) if in_flight else None
