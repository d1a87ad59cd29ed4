"""The one writer of an index: takes actions in order, and knows what it has not committed."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import tantivy

from shinglefold.engines.embedded.actions import Action, Refused, merged
from shinglefold.engines.embedded.analysis import Analysis
from shinglefold.engines.embedded.catalog import Catalog, NoColumnLeft
from shinglefold.engines.embedded.documents import Prepared, analyse, prepare
from shinglefold.engines.embedded.integrity import read_meta
from shinglefold.engines.embedded.journal import Damaged, Journal, damaged, files, read, remove
from shinglefold.engines.embedded.schema import ADDRESS, TANTIVY, Portion, translated
from shinglefold.engines.embedded.uncommitted import Uncommitted
from shinglefold.engines.embedded.volumes import FOLDER, Appender
from shinglefold.errors import EngineError
from shinglefold.local_engines import Ready

#: One indexing thread: documents keep their order, and the canonicalizer, not tantivy, takes the time.
_THREADS = 1
#: Changes that wait to be written together, and characters of their texts: so many are analysed at a time.
_WAITING, _CHARACTERS = 256, 1 << 18
#: When what the journal has is committed: seconds, bytes, documents.
_AGE, _JOURNAL, _DOCUMENTS = 1.0, 8_000_000, 2_000


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
    journal: Journal
    _tantivy: tantivy.IndexWriter
    _heads: Appender
    #: What is not committed; of this what tantivy has not got yet, in order.
    uncommitted: Uncommitted = field(default_factory=Uncommitted)
    _waiting: deque[_Change] = field(default_factory=deque)
    _characters: int = 0
    #: Actions since the last commit, and those of one that goes on.
    _actions: int = 0
    _under_way: int = 0
    _size: int = 0
    #: Whether the catalog is another than is saved, and the one that a commit saves.
    _grown: bool = False
    _saving: Catalog | None = None
    _begun: int = 0
    #: Whether more may be committed than is known here, as a commit failed; whether it has to be mended.
    _uncertain: bool = False
    _broken: bool = False
    #: A commit that goes on beside.
    _beside: Future[None] | None = None

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
            heads = Appender(folder / FOLDER, committed.heads_end)
        return cls(folder, analysis, portion, catalog, committed, Journal(folder), lock, heads)

    @property
    def dirty(self) -> bool:
        """Whether there is anything to commit."""
        return self._actions + self._under_way > 0 or self._grown

    @property
    def full(self) -> bool:
        """Whether it is time to commit."""
        return self._actions >= self.portion.actions or self._size >= self.portion.size

    @property
    def due(self) -> bool:
        """Whether it is time to commit what the journal has."""
        journal = self.journal
        return journal.age > _AGE or journal.size > _JOURNAL or len(self.uncommitted) > _DOCUMENTS

    @property
    def committing(self) -> bool:
        """Whether a commit goes on beside."""
        return self._beside is not None

    @property
    def heads_end(self) -> int:
        """The address behind the last head; see ``Appender``."""
        return self._heads.end

    @property
    def filled(self) -> bool:
        """Tell once whether a volume of heads has been filled."""
        begun, self._begun = self._begun, self._heads.begun
        return begun < self._begun

    def source(self, id: str) -> dict[str, Any] | None:  # noqa: A002
        """Return a document as it is now, committed or not."""
        if id in self.uncommitted:
            written = self.uncommitted[id]
            return written.load() if written else None
        return self.committed.source(id)

    def run(self, action: Action) -> bool:
        """Do one action, and tell whether it has written over a document.

        Raises:
            Refused: it can't be done; nothing was changed.
            NoColumnLeft: the index has to be widened first; nothing was changed.
        """
        if action.verb == "delete":
            if self.source(action.id) is None:
                raise Refused(404, f"[{action.id}]: document missing")
            self._add(action.id, None, {}, replaces=True)
        elif action.verb == "update":
            if (old := self.source(action.id)) is None and action.otherwise is None:
                raise Refused(404, f"[{action.id}]: document missing")
            source = action.otherwise or {} if old is None else merged(old, action.source)
            self._put(action.id, source, replaces=old is not None)
        else:
            there = (
                self.uncommitted[action.id] is not None
                if action.id in self.uncommitted
                else self.committed.holds(action.id)
            )
            if action.verb == "create" and there:
                raise Refused(409, f"[{action.id}]: version conflict, document already exists")
            self._put(action.id, action.source, action.ready, replaces=there)
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

    def recover(self) -> bool:
        """Commit what the journal of a writer has that was killed, and tell whether there was any.

        Raises:
            EngineUnavailable: the journal is damaged.
        """
        if not (there := files(self.folder)):
            return False
        try:
            changes = read(self.folder)
        except Damaged as error:
            raise damaged(self.folder, str(error)) from error
        except OSError as error:
            raise damaged(self.folder, f"it can not be read ({error.strerror})") from error
        try:
            for change in changes:
                if change.source is None:
                    self._add(change.id, None, {}, replaces=True)
                else:
                    self._put(change.id, change.source.load(), replaces=True)
        except (Refused, NoColumnLeft) as error:
            # It was taken once, with the same mappings.
            raise damaged(self.folder, f"a document in it does not fit ({error})") from error
        if self.dirty:
            self.commit()
        with self._writing():
            remove(self.folder, there)
        return True

    def note(self) -> None:
        """Make everything written durable in the journal."""
        if self.uncommitted.unnoted:
            with self._writing():
                self.journal.write(self.uncommitted.to_note())
            self.uncommitted.noted()
        if not self.committing:
            self._write()

    def commit(self) -> None:
        """Make everything written durable.

        The catalog goes first: one that knows more fields than the documents do is harmless.
        """
        self._prepare()
        with self._writing():
            self._store(self._saving, self._heads)
            self._done()

    def commit_beside(self) -> None:
        """Begin to commit what was written until now, in a thread; see ``finish``."""
        self._prepare()
        thread = ThreadPoolExecutor(1, thread_name_prefix="shinglefold-commit")
        self._beside = thread.submit(self._store, self._saving, self._heads)
        thread.shutdown(wait=False)

    def finish(self, *, wait: bool) -> bool:
        """End a commit that was begun beside, and tell whether there was one; its documents can be found now.

        Args:
            wait: for its end, else only one that is done already is ended.
        """
        if self._beside is None or not (wait or self._beside.done()):
            return False
        beside = self._beside
        beside.exception()
        self._beside = None
        with self._writing():
            beside.result()
            self._done()
        return True

    def abandon(self) -> None:
        """Let go of everything that the journal does not have, and give the lock back."""
        if self._beside is not None:
            self._beside.exception()
        with suppress(EngineError):
            self.close()

    def close(self) -> None:
        """Let merges finish and give the lock back; what is neither committed nor in the journal is lost."""
        self.journal.close()
        self._heads.close()
        with translated(f"closing {self.folder.name}", self.folder):
            self._tantivy.wait_merging_threads()

    def _prepare(self) -> None:
        """Give tantivy everything that is to be committed, and put it apart from what comes."""
        if self.journal.used:
            # Else what it has would be made again over what is newer, by whoever finds it after the commit.
            self.note()
        self._write()
        self.journal.turn()
        self.uncommitted.turn()
        self._under_way, self._actions, self._size = self._under_way + self._actions, 0, 0
        self._saving = self.catalog if self._grown else None

    def _store(self, catalog: Catalog | None, heads: Appender) -> None:
        """Make durable what tantivy has, the catalog first."""
        if catalog is not None:
            catalog.save(self.folder)
        heads.flush()
        self._tantivy.commit()

    def _done(self) -> None:
        """Forget what is committed."""
        self.journal.committed()
        self.uncommitted.committed()
        self._uncertain, self._under_way = False, 0
        if self._saving is self.catalog:
            self._grown = False

    def _put(
        self,
        id: str,  # noqa: A002
        source: Mapping[str, Any],
        made: Ready | None = None,
        *,
        replaces: bool,
    ) -> None:
        try:
            ready = prepare(self.catalog, id, source, made)
        except NoColumnLeft as error:
            if not error.too_many:
                raise
            raise Refused(400, f"illegal_argument_exception: {error}") from error
        except ValueError as error:
            raise Refused(400, f"mapper_parsing_exception: {error}") from error
        self._grown = self._grown or ready.catalog is not self.catalog
        self.catalog = ready.catalog
        self._add(id, ready, source, replaces=replaces)

    def _add(
        self,
        id: str,  # noqa: A002
        ready: Prepared | None,
        source: Mapping[str, Any],
        *,
        replaces: bool,
    ) -> None:
        """Take a change that can be done."""
        # Deleting what is not there would have tantivy look for it in every segment.
        self._waiting.append(_Change(id, ready, replaces or self._uncertain))
        self.uncommitted.take(id, ready.source if ready else None, source)
        self._actions += 1
        if ready:
            self._size += ready.source.size
            self._characters += ready.characters
        if (len(self._waiting) >= _WAITING or self._characters >= _CHARACTERS) and not self.committing:
            self._write()

    def _write(self) -> None:
        """Give tantivy what waits."""
        # Most of the time goes here. Whoever interrupts it finds waiting what tantivy has not got.
        analyse([change.ready for change in self._waiting if change.ready], self.analysis)
        with self._writing():
            self._mend()
            try:
                while self._waiting:
                    self._give(self._waiting[0])
                    # Let go of at once: tantivy has a copy of what may be long.
                    self._waiting.popleft()
            except (KeyboardInterrupt, SystemExit):
                if self._waiting:
                    # It may have got this one.
                    self._waiting[0] = self._waiting[0]._replace(replaces=True)
                raise
        self._characters = 0

    def _give(self, change: _Change) -> None:
        if change.replaces:
            self._tantivy.delete_documents_by_term("_id", change.id)
        if change.ready:
            self._add_source(change.ready)
            self._tantivy.add_document(change.ready.document)

    def _add_source(self, ready: Prepared) -> None:
        source = ready.source
        address = self._heads.add(source.head, source.main if source.apart else None)
        ready.document.add_unsigned(ADDRESS, address)
        source.add_to(ready.document)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Write; an error says how many changes are lost, which are not tried again."""
        lost = self._actions + self._under_way > 0
        try:
            with translated(f"writing to {self.folder.name}", self.folder, lost=lost):
                yield
        except EngineError as error:
            error.lost = self.uncommitted.unnoted if self.journal.used else self._actions + self._under_way
            self._actions = self._size = self._under_way = self._characters = 0
            self._waiting.clear()
            self.uncommitted.clear()
            self._uncertain = self._broken = self._grown = True
            raise

    def _mend(self) -> None:
        """Have tantivy forget what it got since the last commit: the heads of this may not be there."""
        if not self._broken:
            return
        with translated(f"writing to {self.folder.name}", self.folder):
            self._tantivy.rollback()
            self._heads.close()
            self._heads = Appender(self.folder / FOLDER)
        self._broken = False
