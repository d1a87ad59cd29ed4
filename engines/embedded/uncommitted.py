"""What a writer has taken and not committed: documents by id, and by some of their values.

A commit may go on while more is taken: what it makes durable is apart from what came since.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shinglefold.engines.embedded.journal import Changed
from shinglefold.engines.embedded.sources import Source
from shinglefold.source_values import values_at

#: By field and value the ids of documents that have it, or had.
_Ids = dict[str, dict[object, list[str]]]


@dataclass(slots=True)
class Uncommitted:
    """Documents as they will be, None where one goes; ``watched`` are the fields that values are kept of."""

    watched: frozenset[str] = frozenset()
    _now: dict[str, Source | None] = field(default_factory=dict)
    _before: dict[str, Source | None] = field(default_factory=dict)
    _unnoted: dict[str, None] = field(default_factory=dict)
    _ids: _Ids = field(default_factory=dict)
    _ids_before: _Ids = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._now)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._now or id_ in self._before

    def __getitem__(self, id_: str) -> Source | None:
        return self._now[id_] if id_ in self._now else self._before[id_]

    @property
    def unnoted(self) -> int:
        """How many changes no journal has."""
        return len(self._unnoted)

    def take(self, id_: str, source: Source | None, values: Mapping[str, Any]) -> None:
        """Take a document as it will be.

        Args:
            values: the same as it was given; nothing of one that goes.
        """
        self._now[id_] = source
        self._unnoted[id_] = None
        for path in self.watched:
            known = self._ids.setdefault(path, {})
            for value in values_at(values, path):
                if isinstance(value, str | int | float):
                    known.setdefault(value, []).append(id_)

    def having(self, path: str, values: Collection[object]) -> dict[object, list[str]]:
        """Return by value the documents with one of some values in a watched field, now or until lately."""
        found: dict[object, dict[str, None]] = {}
        wanted = set(values)
        for ids in (self._ids_before, self._ids):
            # Of thousands few are there, if any.
            for value in (there := ids.get(path, {})).keys() & wanted:
                found.setdefault(value, {}).update(dict.fromkeys(there[value]))
        return {value: list(several) for value, several in found.items()}

    def to_note(self) -> Iterator[Changed]:
        """Yield the changes that no journal has."""
        for id_ in self._unnoted:
            yield Changed(id_, self._now[id_])

    def noted(self) -> None:
        """Take the changes for noted, as a journal has them or a commit will."""
        self._unnoted = {}

    def turn(self) -> None:
        """Put what was taken apart, as it is about to be committed."""
        # What is apart already waits for its commit, which was interrupted.
        self._before, self._now, self._unnoted = {**self._before, **self._now}, {}, {}
        for path, ids in self._ids.items():
            if before := self._ids_before.get(path):
                for value, several in ids.items():
                    before.setdefault(value, []).extend(several)
            else:
                self._ids_before[path] = ids
        self._ids = {}

    def committed(self) -> None:
        """Forget what was taken before the last turn."""
        self._before, self._ids_before = {}, {}

    def clear(self) -> None:
        """Forget everything."""
        self.turn()
        self.committed()

    def sources(self, ids: Iterable[str]) -> dict[str, dict[str, Any] | None]:
        """Return those documents that are not committed as they will be, None where one goes."""
        found = {id_: self[id_] for id_ in ids if id_ in self}
        return {id_: source.load() if source else None for id_, source in found.items()}
