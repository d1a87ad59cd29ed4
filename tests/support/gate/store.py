"""A store that behaves as badly as the protocol allows.

Writes are done at once and seen by reads; searches see them after a refresh only. What is sent as one request
is done one action after the other, so that others come between. A writer may die before any action, and time
may pass at any moment, so that every lease ends while its writer goes on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from shinglefold.contracts.engine import Guard, VersionedDocument, WriteResult
from shinglefold.grouping.gate.protocol.intents import WRITERS
from shinglefold.grouping.gate.protocol.pending_document import (
    CountGroups,
    Delete,
    FindDocuments,
    FindGroups,
    GateFields,
    Now,
    Pause,
    PendingDocument,
    Put,
    ReadDocuments,
    Refresh,
    Request,
    SearchHits,
    Similarity,
    Update,
    Write,
)

FORMS = GateFields("_dedup")
LATE = 100_000
WAKES = 12
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
    """Which texts, named by letters, match; each matches itself.

    ``doubtful``: pairs that are not, which only the texts themselves tell.
    """

    pairs: frozenset[frozenset[str]] = frozenset()
    doubtful: frozenset[frozenset[str]] = frozenset()

    def words(self, text: str) -> tuple[str, ...]:
        """Return the match keys of a text: matching texts have one in common."""
        near = self.pairs | self.doubtful
        return tuple(sorted({text, *(other for pair in near if text in pair for other in pair)}))

    def possible(self, item: PendingDocument, source: Mapping[str, Any]) -> bool:
        """Return whether a text may match a document, by their fingerprints."""
        text = source.get("_dedup", {}).get("digest")
        return text is not None and (
            self.alike(item.print, text) or frozenset((item.print, text)) in self.doubtful
        )

    def alike(self, one: str, other: str) -> bool:
        return one == other or frozenset((one, other)) in self.pairs

    def likeness(self, item: PendingDocument, source: Mapping[str, Any]) -> float | None:
        text = source.get("_dedup", {}).get("digest")
        return 1.0 if text is not None and self.alike(item.print, text) else None

    def pairs_of(self, items: Sequence[PendingDocument]) -> Iterator[tuple[int, int]]:
        for (one, a), (other, b) in combinations(enumerate(items), 2):
            if self.alike(a.print, b.print):
                yield one, other


@dataclass(frozen=True)
class Letters:
    """The judge of the model."""

    relation: Relation

    def likenesses(self, pairs: Sequence[tuple[PendingDocument, Any]]) -> list[Similarity | None]:
        found = [self.relation.likeness(item, source) for item, source in pairs]
        return [None if one is None else Similarity(one) for one in found]

    needs_texts = False

    def stale(self, _: Mapping[str, Any]) -> set[str]:
        return set()

    def possible(self, pairs: Sequence[tuple[PendingDocument, Any]]) -> list[bool]:
        return [self.relation.possible(item, source) for item, source in pairs]

    def pairs(self, items: Sequence[PendingDocument]) -> Iterator[tuple[int, int]]:
        return self.relation.pairs_of(items)

    def print(self, item: PendingDocument) -> dict[str, Any]:
        return {"_dedup": {"digest": item.print}}


@dataclass(frozen=True)
class Store:
    documents: Shelf = ()
    intents: Shelf = ()
    seen_documents: Shelf = ()
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

    def run(self, action: Put | Update | Delete) -> tuple["Store", WriteResult]:
        version, source = self.shelf(action.where).get(action.id, (0, None))
        guard = getattr(action, "guard", None)
        if (guard is not None and (source is None or guard.seq_no != version)) or (
            isinstance(action, Put) and action.create and source is not None
        ):
            return self, WriteResult(409)
        if isinstance(action, Delete):
            if source is None:
                return self, WriteResult(404)
            return self.put(action.where, action.id, version + 1, None), WriteResult(200)
        new = Source(action.source if isinstance(action, Put) else _merged(source, action.parts))
        return self.put(action.where, action.id, version + 1, new), WriteResult(200, Guard(version + 1, 1))

    def refreshed(self) -> "Store":
        return replace(self, seen_documents=self.documents)

    def answered(self, request: Request, relation: Relation) -> tuple["Store", Any]:
        """Return the store after a request of a writer that is alone, and the answer."""
        if isinstance(request, Refresh):
            return self.refreshed(), None
        if isinstance(request, Pause):
            return self, None
        if not isinstance(request, Write):
            return self, self.answer(request, relation)
        store, written = self, []
        for action in request.actions:
            store, one = store.run(action)
            written.append(one)
        return store, written

    def answer(self, request: Request, relation: Relation) -> Any:
        if isinstance(request, Now):
            return self.late
        if isinstance(request, ReadDocuments):
            there = self.there(request.where)
            return [
                VersionedDocument(id_, there[id_][1], Guard(there[id_][0], 1)) if id_ in there else None
                for id_ in request.ids
            ]
        documents = self.there("seen_documents")
        if isinstance(request, FindDocuments):
            taken = {FORMS.group(source) for _, source in documents.values()}
            return [
                SearchHits(
                    tuple(id_ for id_, (_, source) in documents.items() if relation.possible(item, source)),
                    frozenset(number for number in item.numbers if number in taken),
                    frozenset(id_ for id_, (_, source) in documents.items() if FORMS.group(source) is None),
                )
                for item in request.documents
            ]
        groups = [FORMS.group(source) for _, source in documents.values()]
        if isinstance(request, CountGroups):
            return [min(request.limit, groups.count(group)) for group in request.groups]
        assert isinstance(request, FindGroups)
        return [
            tuple(
                id_
                for id_, (_, source) in documents.items()
                if FORMS.group(source) == group and (FORMS.leads(source) or not request.leaders)
            )[: request.limit]
            for group in request.groups
        ]

    def private(self, action: Put | Update | Delete) -> bool:
        """Return whether no other writer can notice an action: it stores a record that is not listed yet."""
        fresh = action.where == "intents" and action.id not in self.shelf("intents")
        return fresh and isinstance(action, Put) and action.id != WRITERS


def napped_on(store: Store) -> Store:
    """Advance the time while writers wait for one that died, until its lease expires."""
    if store.naps < _NAPS:
        return replace(store, naps=store.naps + 1)
    return replace(store, naps=0, late=store.late + LATE)


def woke(parked: tuple[Store, tuple[int, ...], int], now: Store, far: tuple[int, ...]) -> bool:
    """Return whether a parked writer may go on: all others did a step, and a document has changed.

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
