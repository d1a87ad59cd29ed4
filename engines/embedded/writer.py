"""The one writer of an index: takes actions in order, and knows what it has not committed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import tantivy

from shinglefold.engines.embedded.actions import Action, Refused, merged
from shinglefold.engines.embedded.analysis import Analysis
from shinglefold.engines.embedded.catalog import Catalog, NoColumnLeft
from shinglefold.engines.embedded.documents import Prepared, Source, analyse, prepare
from shinglefold.engines.embedded.heads import ADDRESS, FOLDER, add_columns
from shinglefold.engines.embedded.integrity import read_meta
from shinglefold.engines.embedded.schema import TANTIVY, translated
from shinglefold.engines.embedded.volumes import Appender
from shinglefold.errors import EngineError

#: One indexing thread: documents keep their order, and the canonicalizer, not tantivy, takes the time.
_THREADS = 1
#: Changes that wait to be written together, and characters of their texts: so many are analysed at a time.
_WAITING, _CHARACTERS = 256, 1 << 18
_NO_WORDS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Portion:
    """After how much a writer commits by itself, and how much memory tantivy may take meanwhile.

    ``actions`` and ``size`` (bytes of sources) also bound what a crash can lose.
    """

    actions: int = 20_000
    size: int = 64_000_000
    memory: int = 64_000_000


class _Change(NamedTuple):
    """A document to write, or None where it goes, and whether there may be one with its id."""

    id: str
    ready: Prepared | None
    replaces: bool


class Committed(NamedTuple):
    """What is committed: ``source`` of a document or None, and ``holds``, which tells it faster.

    ``heads_end``: behind the last head, where this process knows; see ``Appender``.
    """

    source: Callable[[str], dict[str, Any] | None]
    holds: Callable[[str], bool]
    heads_end: int = 0


@dataclass(slots=True)
class Writer:
    """Writes to one index until closed; while it lives no other process can."""

    folder: Path
    analysis: Analysis
    portion: Portion
    catalog: Catalog
    committed: Committed
    _tantivy: tantivy.IndexWriter
    #: What is not committed, by id; of this what tantivy has not got yet, in order, None where it goes.
    _pending: dict[str, Source | None] = field(default_factory=dict)
    _waiting: list[_Change] = field(default_factory=list)
    _characters: int = 0
    _actions: int = 0
    _size: int = 0
    _grown: bool = False
    #: Where heads go; None where they go into columns, as in indices of earlier versions.
    _heads: Appender | None = None
    _begun: int = 0
    #: Whether more may be committed than is known here, as a commit failed; whether it has to be mended.
    _uncertain: bool = False
    _broken: bool = False

    @classmethod
    def open(
        cls,
        folder: Path,
        index: tantivy.Index,
        analysis: Analysis,
        portion: Portion,
        committed: Committed,
    ) -> "Writer":
        """Take the index's write lock, then read the catalog: another process may have written until now.

        Raises:
            EngineUnavailable: another process has it.
        """
        with translated(f"writing to {folder.name}"):
            lock = index.writer(portion.memory, _THREADS)
            names = [field["name"] for field in read_meta(folder / TANTIVY)["schema"]]
            catalog = Catalog.load(folder).fitted(names)
            heads = Appender(folder / FOLDER, committed.heads_end) if catalog.filed else None
        return cls(folder, analysis, portion, catalog, committed, lock, _heads=heads)

    @property
    def dirty(self) -> bool:
        """Whether there is anything to commit."""
        return self._actions > 0 or self._grown

    @property
    def full(self) -> bool:
        """Whether it is time to commit."""
        return self._actions >= self.portion.actions or self._size >= self.portion.size

    @property
    def heads_end(self) -> int:
        """The address behind the last head; see ``Appender``."""
        return self._heads.end if self._heads else 0

    @property
    def filled(self) -> bool:
        """Tell once whether a volume of heads has been filled."""
        begun, self._begun = self._begun, self._heads.begun if self._heads else 0
        return begun < self._begun

    def source(self, id: str) -> dict[str, Any] | None:  # noqa: A002
        """Return a document as it is now, committed or not."""
        if id in self._pending:
            written = self._pending[id]
            return written.load() if written else None
        return self.committed.source(id)

    def pending(self, ids: Iterable[str]) -> dict[str, dict[str, Any] | None]:
        """Return those documents that are not committed as they are, None where they go."""
        found = {id_: self._pending[id_] for id_ in ids if id_ in self._pending}
        return {id_: written.load() if written else None for id_, written in found.items()}

    def run(self, action: Action) -> bool:
        """Do one action, and tell whether it has written over a document.

        Raises:
            Refused: it can't be done; nothing was changed.
            NoColumnLeft: the index has to be widened first; nothing was changed.
        """
        if action.verb == "delete":
            if self.source(action.id) is None:
                raise Refused(404, f"[{action.id}]: document missing")
            self._add(action.id, None, replaces=True)
        elif action.verb == "update":
            old = self.source(action.id)
            if old is None and action.otherwise is None:
                raise Refused(404, f"[{action.id}]: document missing")
            source = action.otherwise or {} if old is None else merged(old, action.source)
            self._put(action.id, source, replaces=old is not None)
        else:
            there = (
                self._pending[action.id] is not None
                if action.id in self._pending
                else self.committed.holds(action.id)
            )
            if action.verb == "create" and there:
                raise Refused(409, f"[{action.id}]: version conflict, document already exists")
            self._put(action.id, action.source, action.words, replaces=there)
            return there
        return False

    def put_again(self, id: str, source: Mapping[str, Any]) -> None:  # noqa: A002
        """Write a committed document anew as it is."""
        self._put(id, source, replaces=True)

    def delete(self, query: tantivy.Query) -> None:
        """Delete what a query finds among what is committed."""
        self._write()
        self._mend()
        with translated(f"writing to {self.folder.name}"):
            self._tantivy.delete_documents_by_query(query)
        self._actions += 1

    def adopt(self, catalog: Catalog) -> None:
        """Take over a catalog with more fields; it is written with the next commit."""
        self.catalog = catalog
        self._grown = True

    def commit(self) -> None:
        """Make everything written durable.

        The catalog goes first: one that knows more fields than the documents do is harmless.
        """
        self._write()
        with self._writing():
            if self._grown:
                self.catalog.save(self.folder)
                self._grown = False
            if self._heads:
                self._heads.flush()
            self._tantivy.commit()
        self._pending.clear()
        self._actions = self._size = 0
        self._uncertain = False

    def close(self) -> None:
        """Let merges finish and give the lock back; what is not committed is lost."""
        if self._heads:
            self._heads.close()
        with translated(f"closing {self.folder.name}", self.folder):
            self._tantivy.wait_merging_threads()

    def _put(
        self,
        id: str,  # noqa: A002
        source: Mapping[str, Any],
        words: Mapping[str, str] = _NO_WORDS,
        *,
        replaces: bool,
    ) -> None:
        try:
            ready = prepare(self.catalog, id, source, words)
        except NoColumnLeft as error:
            if not error.too_many:
                raise
            raise Refused(400, f"illegal_argument_exception: {error}") from error
        except ValueError as error:
            raise Refused(400, f"mapper_parsing_exception: {error}") from error
        self._grown = self._grown or ready.catalog is not self.catalog
        self.catalog = ready.catalog
        self._add(id, ready, replaces=replaces)

    def _add(self, id: str, ready: Prepared | None, *, replaces: bool) -> None:  # noqa: A002
        """Take a change that can be done."""
        # Deleting what is not there would have tantivy look for it in every segment.
        self._waiting.append(_Change(id, ready, replaces or self._uncertain))
        self._pending[id] = ready.source if ready else None
        self._actions += 1
        if ready:
            self._size += len(ready.source.main) + len(ready.source.head)
            self._characters += ready.characters
        if len(self._waiting) >= _WAITING or self._characters >= _CHARACTERS:
            self._write()

    def _write(self) -> None:
        """Give tantivy what waits."""
        waiting, self._waiting, self._characters = self._waiting[::-1], [], 0
        analyse((change.ready for change in reversed(waiting) if change.ready), self.analysis)
        with self._writing():
            self._mend()
            while waiting:
                # Let go of at once: tantivy has a copy of what may be long.
                change = waiting.pop()
                if change.replaces:
                    self._tantivy.delete_documents_by_term("_id", change.id)
                if change.ready:
                    self._add_head(change.ready)
                    self._tantivy.add_document(change.ready.document)

    def _add_head(self, ready: Prepared) -> None:
        if self._heads:
            ready.document.add_unsigned(ADDRESS, self._heads.add(ready.source.head))
        else:
            add_columns(ready.document, ready.source.head)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Write; an error says how many changes are lost, which are not tried again."""
        try:
            with translated(f"writing to {self.folder.name}", self.folder):
                yield
        except EngineError as error:
            error.lost, self._actions, self._size = self._actions, 0, 0
            self._pending.clear()
            self._uncertain = self._broken = True
            raise

    def _mend(self) -> None:
        """Have tantivy forget what it got since the last commit: the heads of this may not be there."""
        if not self._broken:
            return
        with translated(f"writing to {self.folder.name}", self.folder):
            self._tantivy.rollback()
            if self._heads:
                self._heads.close()
                self._heads = Appender(self.folder / FOLDER)
        self._broken = False
