"""Rebuild an index with more columns: tantivy's schema is fixed, and documents may bring many fields."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import tantivy

from shinglefold.engines.embedded.schema.analysis import Analysis
from shinglefold.engines.embedded.schema.catalog import Catalog
from shinglefold.engines.embedded.schema.tantivy_schema import ADDRESS, TANTIVY, find, make_schema, translated
from shinglefold.engines.embedded.store.checksums import read_meta, schema_checksum
from shinglefold.engines.embedded.store.document_encoder import analyse, prepare
from shinglefold.engines.embedded.store.reader import Reader
from shinglefold.engines.embedded.store.record_files import Heads, addresses, read_head
from shinglefold.engines.embedded.store.source_codec import stored_source
from shinglefold.runtime.durable_files import sync_folder

#: The folder being written, the finished one before it is renamed, and the replaced one.
_PART, _NEW, _OLD = ".tantivy.part", ".tantivy.new", ".tantivy.old"


def rebuild_columns(
    folder: Path, old: Reader, analysis: Analysis, pools: Mapping[str, int], memory: int
) -> None:
    """Write an index again beside itself and swap the two; after a kill it is the old or the new one.

    Args:
        old: the index to copy, as committed.
        pools: the number of columns of each kind.
        memory: bytes tantivy may use.

    Raises:
        EngineUnavailable: another process writes to it, or there is no space.

    Cost: that of indexing all documents again; mostly it is the first one that brings many fields.
    """
    with translated(f"adding columns to {folder.name}"):
        lock = old.index.writer(memory, 1)
        old.reload()
        catalog = replace(Catalog.load(folder), pools=dict(pools), schema=0)
        for leftover in (_PART, _NEW, _OLD):
            shutil.rmtree(folder / leftover, ignore_errors=True)
        (folder / _PART).mkdir()
        new = tantivy.Index(make_schema(catalog), path=str(folder / _PART))
        _copy(old.index.searcher(), old.heads, new.writer(memory, 1), catalog, analysis)
        (folder / _PART).rename(folder / _NEW)
        # Harmless if killed here: writers check which columns there are.
        catalog.save(folder)
        (folder / TANTIVY).rename(folder / _OLD)
        finish_rebuild(folder)
        lock.wait_merging_threads()
        replace(catalog, schema=schema_checksum(read_meta(folder / TANTIVY))).save(folder)


def finish_rebuild(folder: Path) -> None:
    """Finish a rebuild whose process was killed between the two renames."""
    if not (folder / TANTIVY).exists():
        # Another process may do it first.
        with suppress(OSError):
            (folder / _NEW).rename(folder / TANTIVY)
            sync_folder(folder)
            shutil.rmtree(folder / _OLD, ignore_errors=True)


def _copy(
    searcher: tantivy.Searcher,
    heads: Heads,
    writer: tantivy.IndexWriter,
    catalog: Catalog,
    analysis: Analysis,
) -> None:
    _, found = find(searcher, tantivy.Query.all_query(), searcher.num_docs)
    for _, place in found:
        source = stored_source(searcher, heads, place)
        ready = prepare(catalog, read_head(source.head).id, source.load())
        # The record of its head stays where it is.
        (address,) = addresses(searcher, [place])
        ready.document.add_unsigned(ADDRESS, address or 0)
        source.add_to(ready.document)
        analyse([ready], analysis)
        writer.add_document(ready.document)
    writer.commit()
    writer.wait_merging_threads()
