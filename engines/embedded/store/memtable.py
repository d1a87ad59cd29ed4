"""The memtable: documents accepted but not yet committed, by id and by the values of watched fields.

``freeze()`` separates what a running background commit is writing from what arrives meanwhile.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shinglefold.documents import values_at
from shinglefold.engines.embedded.store.source_codec import StoredSource
from shinglefold.engines.embedded.store.write_ahead_log import Changed

#: By field and value the ids of documents that have it, or had.
_Ids = dict[str, dict[object, list[str]]]


@dataclass(slots=True)
class Memtable:
    """Pending writes by id; None means delete. ``watched``: the fields whose values are kept as well."""

    watched: frozenset[str] = frozenset()
    _active: dict[str, StoredSource | None] = field(default_factory=dict)
    _frozen: dict[str, StoredSource | None] = field(default_factory=dict)
    _unlogged: dict[str, None] = field(default_factory=dict)
    _ids: _Ids = field(default_factory=dict)
    _frozen_ids: _Ids = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._active)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._active or id_ in self._frozen

    def __getitem__(self, id_: str) -> StoredSource | None:
        return self._active[id_] if id_ in self._active else self._frozen[id_]

    @property
    def unlogged(self) -> int:
        """The number of changes that are not in the journal."""
        return len(self._unlogged)

    def put(self, id_: str, source: StoredSource | None, values: Mapping[str, Any]) -> None:
        """Add a pending write.

        Args:
            values: the document as it was given; empty for a delete.
        """
        self._active[id_] = source
        self._unlogged[id_] = None
        for path in self.watched:
            known = self._ids.setdefault(path, {})
            for value in values_at(values, path):
                if isinstance(value, str | int | float):
                    known.setdefault(value, []).append(id_)

    def ids_by_value(self, path: str, values: Collection[object]) -> dict[object, list[str]]:
        """Return the ids of pending documents by their value in a watched field.

        Earlier versions of a document count too, until they are committed.
        """
        found: dict[object, dict[str, None]] = {}
        wanted = set(values)
        for ids in (self._frozen_ids, self._ids):
            # Callers ask for thousands of values, and few of them are pending.
            for value in (there := ids.get(path, {})).keys() & wanted:
                found.setdefault(value, {}).update(dict.fromkeys(there[value]))
        return {value: list(several) for value, several in found.items()}

    def unlogged_changes(self) -> Iterator[Changed]:
        """Yield the changes that are not in the journal."""
        for id_ in self._unlogged:
            yield Changed(id_, self._active[id_])

    def mark_logged(self) -> None:
        """Mark all changes as logged: the journal has them, or a commit will."""
        self._unlogged = {}

    def freeze(self) -> None:
        """Set all pending writes apart for a commit that begins now."""
        # Frozen writes of an interrupted commit still wait for the next one.
        self._frozen, self._active, self._unlogged = {**self._frozen, **self._active}, {}, {}
        for path, ids in self._ids.items():
            if before := self._frozen_ids.get(path):
                for value, several in ids.items():
                    before.setdefault(value, []).extend(several)
            else:
                self._frozen_ids[path] = ids
        self._ids = {}

    def discard_frozen(self) -> None:
        """Forget the frozen writes: they are committed."""
        self._frozen, self._frozen_ids = {}, {}

    def clear(self) -> None:
        """Forget everything."""
        self.freeze()
        self.discard_frozen()

    def sources(self, ids: Iterable[str]) -> dict[str, dict[str, Any] | None]:
        """Return the pending documents among some ids; None means deleted."""
        found = {id_: self[id_] for id_ in ids if id_ in self}
        return {id_: source.load() if source else None for id_, source in found.items()}
