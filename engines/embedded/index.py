"""One index: its folder, its catalog, the snapshot searches see, and its writer while there is one."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tantivy

from shinglefold.engines.embedded.actions import Action
from shinglefold.engines.embedded.analysis import Analysis
from shinglefold.engines.embedded.catalog import Catalog, NoColumnLeft
from shinglefold.engines.embedded.documents import stored_source
from shinglefold.engines.embedded.schema import TANTIVY, find, make_schema, translated
from shinglefold.engines.embedded.writer import Portion, Writer
from shinglefold.errors import EngineError, UnsupportedQuery


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An index as it was at one moment; stays as it is whatever is written or merged afterwards."""

    name: str
    catalog: Catalog
    searcher: tantivy.Searcher
    schema: tantivy.Schema


class Index:
    """An open index. Not safe for several threads writing; ``EmbeddedEngine`` sees to that."""

    def __init__(self, folder: Path, analysis: Analysis, portion: Portion) -> None:
        self.folder = folder
        self._analysis = analysis
        self._portion = portion
        self._catalog = Catalog.load(folder)
        _check_analysis(folder, self._catalog, analysis)
        with translated(f"opening {folder.name}"):
            self._tantivy = tantivy.Index.open(str(folder / TANTIVY))
            # What searches see changes at a refresh only.
            self._tantivy.config_reader("manual")
            self._tantivy.reload()
        self._writer: Writer | None = None
        self.snapshot = self._snapshot()

    @classmethod
    def create(cls, folder: Path, catalog: Catalog) -> None:
        """Make an index; a crash leaves nothing or a folder whose name starts with a dot.

        Raises:
            EngineUnavailable: the folder can't be written.
        """
        part = folder.with_name(f".{folder.name}.new")
        with translated(f"creating {folder.name}"):
            shutil.rmtree(part, ignore_errors=True)
            (part / TANTIVY).mkdir(parents=True)
            tantivy.Index(make_schema(catalog), path=str(part / TANTIVY))
            catalog.save(part)
            part.rename(folder)

    @property
    def catalog(self) -> Catalog:
        """The newest catalog, with what uncommitted documents added."""
        return self._writer.catalog if self._writer else self._catalog

    def run(self, action: Action) -> None:
        """Do one bulk action, committing when a portion is full.

        Raises:
            Refused: the action can't be done.
            EngineUnavailable: another process writes, or the files can't be written.
        """
        writer = self._open_writer()
        writer.run(action)
        if writer.full:
            self._commit(writer)

    def put_mappings(self, mappings: Mapping[str, Any]) -> None:
        """Add fields, and replace ``_meta`` where one is given.

        Raises:
            UnsupportedQuery: the mappings can't be had.
            EngineUnavailable: another process writes, or the files can't be written.
        """
        writer = self._open_writer()
        try:
            writer.adopt(writer.catalog.with_mappings(mappings))
        except NoColumnLeft as error:
            raise UnsupportedQuery(f"{self.folder.name}: {error}") from error
        self.refresh()

    def delete_found(self, query: Callable[[], tantivy.Query]) -> int:
        """Delete what a query finds and return how many that was; ``query`` is asked for once all is visible.

        Raises:
            EngineUnavailable: another process writes, or the files can't be written.
        """
        writer = self._open_writer()
        self.refresh()
        found = query()
        count, _ = find(self.snapshot.searcher, found, 1)
        writer.delete(found)
        self.refresh()
        return count

    def refresh(self) -> None:
        """Commit what was written, and let searches see it and what other processes committed."""
        if self._writer and self._writer.dirty:
            self._commit(self._writer)
        with translated(f"refreshing {self.folder.name}"):
            self._tantivy.reload()
        self._catalog = self._writer.catalog if self._writer else Catalog.load(self.folder)
        self.snapshot = self._snapshot()

    def source(self, id: str) -> dict[str, Any] | None:  # noqa: A002
        """Return a document as it is now, refreshed or not."""
        return self._writer.source(id) if self._writer else self._stored(id)

    def close(self) -> None:
        """Commit what was written and give the folder back."""
        writer, self._writer = self._writer, None
        if writer:
            writer.close()

    def _open_writer(self) -> Writer:
        if self._writer is None:
            self._writer = Writer.open(
                self.folder, self._tantivy, self._analysis, self._portion, self._stored
            )
            with translated(f"opening {self.folder.name}"):
                self._tantivy.reload()
        return self._writer

    def _commit(self, writer: Writer) -> None:
        writer.commit()
        with translated(f"refreshing {self.folder.name}"):
            self._tantivy.reload()

    def _stored(self, id: str) -> dict[str, Any] | None:  # noqa: A002
        searcher = self._tantivy.searcher()
        hits = searcher.search(tantivy.Query.term_query(self._tantivy.schema, "_id", id), 1, count=False).hits
        return stored_source(searcher, hits[0][1]).load() if hits else None

    def _snapshot(self) -> Snapshot:
        return Snapshot(self.folder.name, self._catalog, self._tantivy.searcher(), self._tantivy.schema)


def _check_analysis(folder: Path, catalog: Catalog, analysis: Analysis) -> None:
    made = catalog.analysis
    if made and analysis.identity and made != analysis.identity:
        raise EngineError(
            f"the index {folder.name} was made with other languages, dictionaries or options than the engine "
            f"was opened with, so its words would not be found; use those ({made}) or index again"
        )
