"""The embedded engine: a folder of indices behind the ``Engine`` contract."""

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shinglefold.contracts.engine import (
    JSON,
    BulkFailure,
    BulkResult,
    Capabilities,
    IndexInfo,
    Parameters,
    Search,
    search_parts,
)
from shinglefold.engines.embedded.exclusive_access import ExclusiveAccess
from shinglefold.engines.embedded.schema.catalog import Catalog
from shinglefold.engines.embedded.schema.requests import (
    Action,
    RefusedAction,
    check_options,
    check_parameters,
    read_action,
)
from shinglefold.engines.embedded.schema.tantivy_schema import Analysis, CommitLimits, is_panic
from shinglefold.engines.embedded.search.compiler import compile_query
from shinglefold.engines.embedded.search.queries import Context
from shinglefold.engines.embedded.search.request import read_request
from shinglefold.engines.embedded.search.search import run_search
from shinglefold.engines.embedded.store.document_encoder import DocumentPreparer
from shinglefold.engines.embedded.store.index import Index
from shinglefold.engines.embedded.store.index_folders import (
    delete_folder,
    folder_of,
    folder_size,
    index_in_folder,
    index_names,
    invalid_name_error,
    replace_folder,
)
from shinglefold.engines.embedded.store.snapshots import Pits, Snapshot
from shinglefold.engines.embedded.store.write_ahead_log import journal_files
from shinglefold.errors import (
    EngineError,
    EngineUnavailable,
    IndexExists,
    IndexMissing,
    UnsupportedQuery,
    nearest,
)
from shinglefold.runtime.durable_files import require_locks

_NAME = re.compile(r"[^A-Z\\/*?\"<>| ,#:\ud800-\udfff.+_\-\s][^A-Z\\/*?\"<>| ,#:\ud800-\udfff\s]{0,199}")
#: Settings of servers that are accepted without effect.
_SETTINGS = ("number_of_shards", "number_of_replicas", "refresh_interval")


class EmbeddedEngine(ExclusiveAccess):
    """A search engine in a folder, with one sub-folder for each index.

    Several processes may search an index, but only one at a time may write to it. A process takes the write
    lock with its first bulk and releases it with ``close``. Threads of one process share an engine.

    Args:
        path: the folder; created with the first index.
        canonicalizer: makes the tokens of text: a ``Canonicalizer`` or a callable ``text -> list[Token]``. It
            should keep function words, or phrases that differ only in them match each other.
        limits: when a bulk commits by itself.
    """

    can: Capabilities = Capabilities(samples=True)
    templates: None = None

    def __init__(
        self,
        path: str | Path,
        canonicalizer: Any,  # noqa: ANN401 - a Canonicalizer or a callable
        limits: CommitLimits | None = None,
    ) -> None:
        require_locks("the embedded engine")
        self.path = folder_of(path)
        self._analysis = Analysis(canonicalizer)
        self._limits = limits or CommitLimits()
        self._indices: dict[str, Index] = {}
        self._pits = Pits()
        self._lock = threading.RLock()
        self._closed = False

    def __enter__(self) -> "EmbeddedEngine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def info(self) -> JSON:
        """Return the engine's name and tantivy's version."""
        return {"distribution": "embedded", "version": version("tantivy")}

    def tiebreaker(self) -> str:
        """Return ``_shard_doc``."""
        return "_shard_doc"

    def create_index(self, index: str, mappings: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Create an index.

        Raises:
            IndexExists: the index exists.
            UnsupportedQuery: the name, a field type or an option is not supported.
            EngineUnavailable: the folder can't be written.
        """
        _check_settings(settings)
        with self._lock:
            if self.index_exists(index):
                raise IndexExists(f"the index {index!r} exists; delete it or use another name")
            Index.create(self.path / index, Catalog.create(mappings, settings, self._analysis.identity))

    def delete_index(self, index: str) -> None:
        """Delete an index with all its documents and points in time.

        Raises:
            IndexMissing: the index does not exist.
            EngineUnavailable: another process writes to it.
        """
        with self._lock:
            if not self.index_exists(index):
                raise self._missing_index_error(index)
            self._forget(index)
            delete_folder(self.path / index)

    def index_exists(self, index: str) -> bool:
        """Return whether an index exists; there are no aliases."""
        self._check_open()
        if not isinstance(index, str) or not _NAME.fullmatch(index):
            raise invalid_name_error(self.path, index)
        return index_in_folder(self.path / index)

    def indices(self, pattern: str = "*") -> list[IndexInfo]:
        """Return the indices that a name or pattern matches, by name; sizes are of their folders.

        Raises:
            IndexMissing: a name without ``*`` matches none.
        """
        return [self._info(name) for name in self._expand_pattern(pattern)]

    def _expand_pattern(self, pattern: str) -> list[str]:
        """Return the names of the indices that a name or pattern matches."""
        if not isinstance(pattern, str) or "*" not in pattern:
            if not self.index_exists(pattern):
                raise self._missing_index_error(pattern)
            return [pattern]
        self._check_open()
        return [name for name in index_names(self.path) if fnmatchcase(name, pattern)]

    def _info(self, name: str) -> IndexInfo:
        try:
            with self._lock:
                documents = self._index(name).snapshot.searcher.num_docs
        except EngineError:
            documents = None
        return IndexInfo(name, documents, folder_size(self.path / name))

    def check(self, index: str) -> None:
        """Read all files of an index and compare them with their checksums.

        Raises:
            EngineUnavailable: some are damaged; the message names them.
        """
        with self._lock:
            self._index(index).check()

    def replace_index(self, index: str, by: str) -> None:
        """Delete an index and give its name to another; points in time of both are closed.

        Raises:
            IndexMissing: the index ``by`` does not exist.
            EngineUnavailable: another process writes to one of them, or the folder can't be written.
        """
        with self._lock:
            if not self.index_exists(by):
                raise self._missing_index_error(by)
            if self.index_exists(index) and index == by:
                return
            for name in (index, by):
                self._forget(name)
            replace_folder(self.path / index, self.path / by)

    def delete_by_query(self, index: str, query: Mapping[str, Any]) -> BulkResult:
        """Delete all documents that match a query, in one commit; see ``Engine.delete_by_query``.

        Raises:
            UnsupportedQuery: the query is not supported.
            EngineUnavailable: another process writes to the index.
        """
        with self._lock:
            opened = self._index(index)
            deleted = opened.delete_found(
                lambda: compile_query(Context(opened.snapshot, self._analysis), query)
            )
            return BulkResult(deleted)

    def mappings(self, index: str) -> JSON:
        """Return the mappings of an index, including fields that were added by dynamic mapping."""
        with self._lock:
            return dict(self._catalog(index).mappings)

    def all_mappings(self, pattern: str) -> dict[str, JSON]:
        """Return the mappings of each index that a name or pattern matches.

        Raises:
            IndexMissing: a name without ``*`` matches none.
        """
        return {name: self.mappings(name) for name in self._expand_pattern(pattern)}

    def document_preparer(self, index: str, mappings: Mapping[str, Any]) -> DocumentPreparer:
        """Return a function that prepares documents for an index, here or in a forked process.

        A bulk action may contain the result as ``_ready``.

        Args:
            mappings: the mappings with which the index will be created, if it does not exist yet.

        Raises:
            UnsupportedQuery: the mappings are not supported.
        """
        with self._lock:
            exists = self.index_exists(index)
            catalog = self._index(index).catalog if exists else Catalog.create(mappings, {}, "")
        kinds = {path: frozenset(own.kind for own in several) for path, several in catalog.by_source.items()}
        return DocumentPreparer(kinds, catalog.objects, self._analysis.column_texts)

    def put_mappings(self, index: str, mappings: Mapping[str, Any]) -> None:
        """Add fields to an index, and replace ``dynamic``, ``date_detection`` and ``_meta`` if given.

        Raises:
            UnsupportedQuery: a field exists with another definition, or is not supported.
            EngineUnavailable: another process writes to the index.
        """
        with self._lock:
            opened = self._index(index)
            was_writing = opened.is_writing
            opened.put_mappings(mappings)
            if not was_writing:
                opened.release()

    def release(self, index: str) -> None:
        """Let other processes write; see ``ExclusiveWrites``."""
        with self._lock:
            opened = self._index_if_open(index)
            if opened is None or opened.is_dirty:
                return
            opened.kept = False
            if not opened.leases:
                opened.release()

    def bulk(self, actions: Iterable[Mapping[str, Any]]) -> BulkResult:
        """Run actions in order, and return refused ones as failures.

        A commit follows whenever a limit is reached; a crash loses what is not committed. Searches see the
        documents after ``refresh``.

        Raises:
            EngineUnavailable: another process writes to the index, or its files can't be written.
        """
        self._check_open()
        done = written_over = 0
        failures = []
        known: dict[str, Index] = {}
        for given in actions:
            try:
                action = read_action(given)
                with self._lock, self._name_corrupt_files(action.index):
                    written_over += self._run(action, known)
                done += 1
            except RefusedAction as refused:
                failures.append(BulkFailure(given, refused.status, refused.reason))
            except EngineError as error:
                # The caller counts the actions of this request as failed already.
                error.lost = max(0, error.lost - done)
                raise
        return BulkResult(done, tuple(failures), written_over)

    def refresh(self, index: str) -> None:
        """Commit all writes and let searches see them."""
        with self._lock:
            self._index(index).refresh()

    def get(self, index: str, id: str) -> JSON | None:  # noqa: A002
        """Return the current version of a document, refreshed or not; None if it does not exist."""
        with self._lock, self._name_corrupt_files(index):
            source = self._index(index).source(id)
        return None if source is None else {"_index": index, "_id": id, "_source": source}

    def search(
        self, index: str | None, body: Mapping[str, Any], parameters: Parameters | None = None
    ) -> JSON:
        """Run a search in the servers' query DSL, on the documents of the last refresh.

        Raises:
            UnsupportedQuery: something in the body is not supported; the message says what is.
            PitExpired: the point in time was closed or ran out.
        """
        check_parameters(parameters)
        under_pit = isinstance(body, Mapping) and "pit" in body
        request = read_request(body, under_pit)
        with self._lock:
            snapshot, pit = self._pit(index, body["pit"]) if under_pit else (self._snapshot_of(index), None)
        with self._name_corrupt_files(snapshot.name):
            response = run_search(snapshot, self._analysis, request)
        return response if pit is None else {"pit_id": pit, **response}

    def msearch(self, searches: Sequence[Search]) -> list[JSON | EngineError]:
        """Run several searches, one after the other; see ``Engine.msearch``."""
        answers: list[JSON | EngineError] = []
        for one in searches:
            try:
                answers.append(self.search(*search_parts(one)))
            except EngineError as error:
                answers.append(error)
        return answers

    def open_pit(self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None) -> str:
        """Open a point in time and return its id; it lasts at most until the engine is closed."""
        check_parameters(parameters)
        with self._lock:
            return self._pits.open(self._index(index).snapshot, keep_alive)

    def close_pit(self, pit: str) -> None:
        """Close a point in time; a second call does nothing."""
        with self._lock:
            self._pits.close(pit)

    def close(self) -> None:
        """Commit all writes and release all folders; a second call does nothing."""
        with self._lock, ExitStack() as opened:
            self._closed = True
            self._pits.clear()
            while self._indices:
                # If one can't be written, the others are closed all the same.
                opened.callback(self._indices.popitem()[1].close)

    def _index_if_open(self, index: str) -> Index | None:
        return self._indices.get(index)

    def _forget(self, index: str) -> None:
        """Close an index and its points in time before its folder is removed."""
        if opened := self._indices.pop(index, None):
            opened.close()
        self._pits.drop(index)

    def _run(self, action: Action, known: dict[str, Index]) -> bool:
        """Run an action and return whether it replaced a document; ``known`` caches indices."""
        index = known.get(action.index)
        # An index that we write to can't be deleted or replaced, and looking it up is a tenth of the work.
        if index is None or not index.is_writing or self._indices.get(action.index) is not index:
            try:
                index = known[action.index] = self._index(action.index)
            except (IndexMissing, UnsupportedQuery) as error:
                raise RefusedAction(404, f"index_not_found_exception: {error}") from error
        return index.run(action)

    def _index(self, index: str) -> Index:
        if not self.index_exists(index):
            if gone := self._indices.pop(index, None):
                gone.close()
                raise EngineUnavailable(
                    f"the folder of the index {index!r} is gone; create it and index again"
                )
            raise self._missing_index_error(index)
        if index in self._indices and self._indices[index].replaced:
            self._indices.pop(index).close()
        if index not in self._indices:
            self._indices[index] = Index(self.path / index, self._analysis, self._limits)
        return self._indices[index]

    def _catalog(self, index: str) -> Catalog:
        """Return the newest catalog of an index, read alone if it is not open."""
        folder = self.path / index
        # A journal may have documents with further fields.
        if index not in self._indices and self.index_exists(index) and not journal_files(folder):
            # If another process changes the files meanwhile, opening them tries again.
            with suppress(EngineUnavailable):
                return Catalog.load(folder)
        return self._index(index).catalog

    def _snapshot_of(self, index: str | None) -> Snapshot:
        if index is None:
            raise UnsupportedQuery("search: name an index, or a point in time in pit")
        return self._index(index).snapshot

    def _pit(self, index: str | None, given: object) -> tuple[Snapshot, str]:
        self._check_open()
        if index is not None:
            raise UnsupportedQuery("search: a point in time has its index; give None as index")
        pit = check_options("pit", given, ("id", "keep_alive"))
        id_ = str(pit.get("id"))
        return self._pits.snapshot(id_, pit.get("keep_alive")), id_

    @contextmanager
    def _name_corrupt_files(self, index: str) -> Iterator[None]:
        """Name corrupt files if the block fails because of them.

        Raises:
            EngineUnavailable: files are damaged.
        """
        try:
            yield
        except BaseException as error:
            if not isinstance(error, ValueError | OSError) and not is_panic(error):
                raise
            with self._lock:
                if opened := self._index_if_open(index):
                    opened.check()
            if is_panic(error):
                raise EngineError(f"searching {index}: tantivy failed: {error}") from error
            raise

    def _missing_index_error(self, index: str) -> IndexMissing:
        names = list(index_names(self.path))
        create = "This engine has no aliases: name an index, or create it first"
        remedy = f"Did you mean {near!r}?" if (near := nearest(index, names)) else create
        return IndexMissing(
            f"no index {index!r} in {self.path}; there are: {', '.join(names) or 'none'}. {remedy}"
        )

    def _check_open(self) -> None:
        if self._closed:
            raise EngineError("the engine is closed; open another on the same folder")


def _check_settings(settings: Mapping[str, Any]) -> None:
    inner = check_options("settings", settings, (*_SETTINGS, "index"))
    if "index" in inner:
        check_options("settings index", inner["index"], _SETTINGS)
