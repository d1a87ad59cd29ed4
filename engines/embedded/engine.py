"""The embedded engine: a folder of indices behind the ``Engine`` contract."""

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from shinglefold.engines.embedded.query.compiler import compile_query
from shinglefold.engines.embedded.query.context import Context
from shinglefold.engines.embedded.schema.analysis import Analysis
from shinglefold.engines.embedded.schema.body_options import check_options, check_parameters
from shinglefold.engines.embedded.schema.bulk_actions import Action, RefusedAction, read_action
from shinglefold.engines.embedded.schema.catalog import Catalog
from shinglefold.engines.embedded.schema.tantivy_schema import CommitLimits, is_panic
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
from shinglefold.errors import (
    EngineError,
    EngineUnavailable,
    IndexExists,
    IndexMissing,
    UnsupportedQuery,
    nearest,
)

_NAME = re.compile(r"[^A-Z\\/*?\"<>| ,#:.+_\-\s][^A-Z\\/*?\"<>| ,#:\s]{0,199}")
#: Settings of servers that mean nothing here, and do no harm.
_SETTINGS = ("number_of_shards", "number_of_replicas", "refresh_interval")


class EmbeddedEngine(ExclusiveAccess):
    """A search engine in a folder of its own, one sub-folder an index.

    Several processes may search; one at a time may write to an index: it takes the lock with its first bulk
    and gives it back with ``close``. Threads of one process share an engine.

    Args:
        path: the folder; made with the first index.
        canonicalizer: makes the tokens that text is found by: a ``Canonicalizer`` or a callable
            ``text -> list[Token]``. Let it keep function words, else phrases with them are not told apart.
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
            IndexExists: it is there already.
            UnsupportedQuery: the name, a field type or an option is not supported.
            EngineUnavailable: the folder can't be written.
        """
        _check_settings(settings)
        with self._lock:
            if self.index_exists(index):
                raise IndexExists(f"the index {index!r} is there already; delete it or take another name")
            Index.create(self.path / index, Catalog.create(mappings, settings, self._analysis.identity))

    def delete_index(self, index: str) -> None:
        """Delete an index with all its documents, and its points in time.

        Raises:
            IndexMissing: there is none.
            EngineUnavailable: another process writes to it.
        """
        with self._lock:
            if not self.index_exists(index):
                raise self._missing(index)
            self._forget(index)
            delete_folder(self.path / index)

    def index_exists(self, index: str) -> bool:
        """Tell whether there is such an index; the embedded engine has no aliases."""
        self._check_open()
        if not isinstance(index, str) or not _NAME.fullmatch(index):
            raise invalid_name_error(self.path, index)
        return index_in_folder(self.path / index)

    def indices(self, pattern: str = "*") -> list[IndexInfo]:
        """Return the indices a name or a pattern means, by name; sizes are of their folders.

        Raises:
            IndexMissing: a name without ``*`` means none.
        """
        if "*" not in pattern:
            if not self.index_exists(pattern):
                raise self._missing(pattern)
            return [self._info(pattern)]
        self._check_open()
        return [self._info(name) for name in index_names(self.path) if fnmatchcase(name, pattern)]

    def _info(self, name: str) -> IndexInfo:
        try:
            with self._lock:
                documents = self._index(name).snapshot.searcher.num_docs
        except EngineError:
            documents = None
        return IndexInfo(name, documents, folder_size(self.path / name))

    def check(self, index: str) -> None:
        """Read all files of an index and compare their contents with their checksums.

        Raises:
            EngineUnavailable: some are damaged; the message names them.
        """
        with self._lock:
            self._index(index).check()

    def replace_index(self, index: str, by: str) -> None:
        """Give an index the name of another, which is deleted; points in time of both are closed.

        Raises:
            IndexMissing: there is no index ``by``.
            EngineUnavailable: another process writes to one of them, or the folder can't be written.
        """
        with self._lock:
            if not self.index_exists(by):
                raise self._missing(by)
            if self.index_exists(index) and index == by:
                return
            for name in (index, by):
                self._forget(name)
            replace_folder(self.path / index, self.path / by)

    def delete_by_query(self, index: str, query: Mapping[str, Any]) -> BulkResult:
        """Delete all documents that a query finds, in one commit; see ``Engine.delete_by_query``.

        Raises:
            UnsupportedQuery: there is no such query here.
            EngineUnavailable: another process writes to the index.
        """
        with self._lock:
            own = self._index(index)
            return BulkResult(
                own.delete_found(lambda: compile_query(Context(own.snapshot, self._analysis), query))
            )

    def mappings(self, index: str) -> JSON:
        """Return the mappings of an index, with the fields it learned from documents."""
        with self._lock:
            return dict(self._index(index).catalog.mappings)

    def all_mappings(self, pattern: str) -> dict[str, JSON]:
        """Return the mappings of each index that a name or a pattern means.

        Raises:
            IndexMissing: a name without ``*`` means none.
        """
        return {info.name: self.mappings(info.name) for info in self.indices(pattern)}

    def ready_for(self, index: str, mappings: Mapping[str, Any]) -> DocumentPreparer:
        """Return what makes documents ready for an index, here or in a process forked from this one.

        A bulk action may bring it as ``_ready``; what it does not bring is made here.

        Args:
            mappings: of the index, where it is made later on.

        Raises:
            UnsupportedQuery: the mappings ask for what there is not.
        """
        with self._lock:
            there = self.index_exists(index)
            catalog = self._index(index).catalog if there else Catalog.create(mappings, {}, "")
        kinds = {path: frozenset(own.kind for own in several) for path, several in catalog.by_source.items()}
        return DocumentPreparer(kinds, catalog.objects, self._analysis.column_texts)

    def put_mappings(self, index: str, mappings: Mapping[str, Any]) -> None:
        """Add fields to an index, and replace its ``_meta`` where one is given.

        Raises:
            UnsupportedQuery: a field is there already and otherwise, or can't be had.
            EngineUnavailable: another process writes to the index.
        """
        with self._lock:
            self._index(index).put_mappings(mappings)

    def bulk(self, actions: Iterable[Mapping[str, Any]]) -> BulkResult:
        """Run actions in order; what is refused is returned, not raised.

        Commits every limits; a crash loses at most the one not committed. Searches see it after ``refresh``.

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
                # Those of this request are told by its failing.
                error.lost = max(0, error.lost - done)
                raise
        return BulkResult(done, tuple(failures), written_over)

    def refresh(self, index: str) -> None:
        """Commit what was written and let searches see it."""
        with self._lock:
            self._index(index).refresh()

    def get(self, index: str, id: str) -> JSON | None:  # noqa: A002
        """Return a document as it is now, refreshed or not, or None."""
        with self._lock, self._name_corrupt_files(index):
            source = self._index(index).source(id)
        return None if source is None else {"_index": index, "_id": id, "_source": source}

    def search(
        self, index: str | None, body: Mapping[str, Any], parameters: Parameters | None = None
    ) -> JSON:
        """Run a search in the servers' query DSL, on what the last refresh made visible.

        Raises:
            UnsupportedQuery: the body holds something this engine has not; the message says what it has.
            PitExpired: the point in time was closed or ran out.
        """
        check_parameters(parameters)
        under_pit = isinstance(body, Mapping) and "pit" in body
        request = read_request(body, under_pit)
        with self._lock:
            snapshot, pit = self._pit(index, body["pit"]) if under_pit else (self._searched(index), None)
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
        """Keep what searches see now and return its id; it outlives refreshes and merges, not the engine."""
        check_parameters(parameters)
        with self._lock:
            return self._pits.open(self._index(index).snapshot, keep_alive)

    def close_pit(self, pit: str) -> None:
        """Give a point in time back; a second call does nothing."""
        with self._lock:
            self._pits.close(pit)

    def close(self) -> None:
        """Commit what was written and give all folders back; a second call does nothing."""
        with self._lock:
            self._closed = True
            self._pits.clear()
            while self._indices:
                self._indices.popitem()[1].close()

    def _opened(self, index: str) -> Index | None:
        return self._indices.get(index)

    def _forget(self, index: str) -> None:
        """Close what is open of an index that goes."""
        if opened := self._indices.pop(index, None):
            opened.close()
        self._pits.drop(index)

    def _run(self, action: Action, known: dict[str, Index]) -> bool:
        """Do one action, and tell whether it has written over a document; ``known``: by this request."""
        index = known.get(action.index)
        # Nobody else deletes or replaces one that is written to, and a look for it is a tenth of the work.
        if index is None or not index.writes or self._indices.get(action.index) is not index:
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
            raise self._missing(index)
        if index in self._indices and self._indices[index].replaced:
            self._indices.pop(index).close()
        if index not in self._indices:
            self._indices[index] = Index(self.path / index, self._analysis, self._limits)
        return self._indices[index]

    def _searched(self, index: str | None) -> Snapshot:
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
        """Say which files are damaged, where that is why something went wrong.

        Raises:
            EngineUnavailable: files are damaged.
        """
        try:
            yield
        except BaseException as error:
            if not isinstance(error, ValueError | OSError) and not is_panic(error):
                raise
            with self._lock:
                if own := self._opened(index):
                    own.check()
            if is_panic(error):
                raise EngineError(f"searching {index}: tantivy failed: {error}") from error
            raise

    def _missing(self, index: str) -> IndexMissing:
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
