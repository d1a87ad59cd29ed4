"""The folders of indices: list, create, replace, rebuild and delete them.

A killed process leaves a folder with part of a new or a deleted index. The next process that creates,
replaces or deletes an index removes such folders, unless a living process has locked them.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import tantivy

from shinglefold.engines.embedded.schema.catalog import CATALOG, Catalog
from shinglefold.engines.embedded.schema.tantivy_schema import (
    ADDRESS,
    TANTIVY,
    Analysis,
    make_schema,
    search_top,
    translate_errors,
)
from shinglefold.engines.embedded.store.checksums import read_meta, schema_checksum
from shinglefold.engines.embedded.store.document_encoder import analyse, prepare, stored_sources
from shinglefold.engines.embedded.store.record_files import Heads, addresses, read_head
from shinglefold.engines.embedded.store.snapshots import Reader
from shinglefold.errors import ConfigError, EngineUnavailable, UnsupportedQuery
from shinglefold.options.validation import check_path
from shinglefold.runtime.durable_files import is_same_file, lock, sync_folder

#: The least memory that tantivy needs to open a writer, in bytes.
_LEAST_MEMORY = 15_000_000


def folder_of(path: str | Path) -> Path:
    """Return the folder of an engine; it may not exist yet.

    Raises:
        ConfigError: it is a file.
    """
    folder = check_path("path", path)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file: name the folder of the indices")
    return folder


def index_names(path: Path) -> list[str]:
    """Return the names of the indices in a folder. Names with a dot are being created or deleted."""
    return sorted(folder.name for folder in path.glob("[!.]*") if _is_index(folder))


def _is_index(folder: Path) -> bool:
    """Return whether a folder is an index, damaged or not; other folders are neither listed nor deleted."""
    return (folder / CATALOG).is_file() or (folder / TANTIVY).is_dir()


def invalid_name_error(path: Path, given: object) -> UnsupportedQuery:
    """Return the error for an invalid index name; for a pattern it lists the matching indices."""
    if not isinstance(given, str) or not set(given) & {"*", ","}:
        return UnsupportedQuery(
            f"{given!r} is not a valid index name: use lower case, no spaces, none of "
            '\\ / * ? " < > | , # :, and none of . _ - + at the beginning'
        )
    names = index_names(path)
    found = [name for name in names if any(fnmatchcase(name, part) for part in given.split(","))]
    one = f"one of {', '.join(found or names)}" if names else "one"
    return UnsupportedQuery(
        f"{given!r} names several indices, and the embedded engine searches and changes "
        f"one at a time: name {one}"
    )


def check_free(folder: Path) -> None:
    """Check that no other folder or file is at the path of a new index.

    Raises:
        EngineUnavailable: there is one.
    """
    if (
        os.path.lexists(folder)
        and not _is_index(folder)
        and not (folder.is_dir() and not any(folder.iterdir()))
    ):
        raise EngineUnavailable(
            f"{folder} exists and is not an index: give the index another name, or use another folder"
        )


def index_in_folder(folder: Path) -> bool:
    """Return whether an index exists, after finishing an interrupted replacement."""
    if folder.is_dir():
        return _is_index(folder)
    with suppress(OSError):
        by = _replacement_note(folder).read_text("utf-8")
        folder.with_name(by).rename(folder)
        _replacement_note(folder).unlink()
    return folder.is_dir()


def folder_size(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    sizes = 0
    for file in folder.rglob("*"):
        # Merges delete files while they are counted.
        with suppress(OSError):
            sizes += file.stat().st_size if file.is_file() else 0
    return sizes


def delete_folder(folder: Path) -> None:
    """Delete an index, even if its files are damaged.

    Raises:
        EngineUnavailable: another process writes to it, or the folder can't be written.
    """
    remove_leftovers(folder.parent)
    _hide_index(folder, f"deleting {folder.name}", note=False)
    remove_folder(deleted_path(folder))


def replace_folder(folder: Path, by: Path) -> None:
    """Replace an index by another and delete it. The next access finishes an interrupted replacement.

    Raises:
        EngineUnavailable: another process writes to one of them, or the folder can't be written.
    """
    doing = f"replacing {folder.name} by {by.name}"
    remove_leftovers(folder.parent)
    lock = _lock_index(by, doing)
    try:
        if folder.is_dir():
            _note_and_hide(folder, by, doing)
        with translate_errors(doing):
            by.rename(folder)
        _replacement_note(folder).unlink(missing_ok=True)
    finally:
        if lock:
            lock.wait_merging_threads()
    remove_folder(deleted_path(folder))


def _note_and_hide(folder: Path, by: Path, doing: str) -> None:
    """Note the replacement of an index, then hide the index."""
    with translate_errors(doing):
        _replacement_note(folder).write_text(by.name, "utf-8")
    try:
        _hide_index(folder, doing)
    except EngineUnavailable:
        _replacement_note(folder).unlink(missing_ok=True)
        raise


def _hide_index(folder: Path, doing: str, *, note: bool = True) -> None:
    """Hide an index while this process has its lock; without a ``note`` no other index replaces it."""
    lock = _lock_index(folder, doing)
    with translate_errors(doing):
        if not note:
            _replacement_note(folder).unlink(missing_ok=True)
        remove_folder(deleted_path(folder))
        folder.rename(deleted_path(folder))
        if lock:
            lock.wait_merging_threads()


def _lock_index(folder: Path, doing: str) -> tantivy.IndexWriter | None:
    """Take the write lock of an index; None if damaged files make writing impossible.

    Raises:
        EngineUnavailable: another process has it.
    """
    try:
        with translate_errors(doing):
            return tantivy.Index.open(str(folder / TANTIVY)).writer(_LEAST_MEMORY, 1)
    except EngineUnavailable as error:
        if "LockBusy" in str(error.__cause__):
            raise
        return None


def _replacement_note(folder: Path) -> Path:
    """Return the file that names the replacement of an index."""
    return folder.with_name(f".{folder.name}.replaced-by")


#: Suffixes of the folder of an index that is being made, or deleted.
_NEW, _DELETED = "new", "deleted"
_NAME = re.compile(rf"\.[^.].*\.({_NEW}|{_DELETED})")
#: The file by which a process asks another to release an index.
LEASE_REQUEST = ".wanted"
#: The names that the folder of an index may contain, with those of temporary files.
_CONTENT = re.compile(rf"\.?(tantivy|catalog\.json|heads|journal)(\..+)?|{re.escape(LEASE_REQUEST)}")


def building_path(folder: Path) -> Path:
    """Return the hidden folder in which an index is made."""
    return folder.with_name(f".{folder.name}.{_NEW}")


def deleted_path(folder: Path) -> Path:
    """Return the hidden folder to which an index is moved for deletion."""
    return folder.with_name(f".{folder.name}.{_DELETED}")


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty, locked folder to make an index in. Leftovers of killed processes are removed first.

    Raises:
        OSError: it can't be made.
        EngineUnavailable: another process is making the index.
    """
    part = building_path(folder)
    remove_leftovers(folder.parent)
    held = _lock_folder(part)
    if held is None:
        raise EngineUnavailable(
            f"creating {folder.name}: another process is making this index; run this again once it has"
        )
    try:
        for entry in part.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        yield part
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    finally:
        os.close(held)


def _lock_folder(part: Path) -> int | None:
    """Make a folder if needed and return the descriptor that locks it; None if a living process has the lock.

    A lock lasts as long as its process, so a process that is stopped keeps its folder, and a killed one does
    not.
    """
    while True:
        part.mkdir(parents=True, exist_ok=True)
        held = os.open(part, os.O_RDONLY)
        # On a system without locks it counts as locked.
        if lock(held) is False:
            os.close(held)
            return None
        if is_same_file(held, part):
            return held
        # Another process finished or removed it meanwhile.
        os.close(held)


def remove_leftovers(folder: Path) -> None:
    """Remove the folders that killed processes left in an engine's folder, as far as possible."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if _NAME.fullmatch(entry.name) and entry.is_dir():
                _remove_if_left(Path(entry.path))


def remove_folder(folder: Path) -> None:
    """Remove the folder of an index, and the link if it is one."""
    shutil.rmtree(folder.resolve(), ignore_errors=True)
    if folder.is_symlink():
        folder.unlink(missing_ok=True)


def _remove_if_left(left: Path) -> None:
    with suppress(OSError):
        names = os.listdir(left)
        # Another process may have created an empty folder and not locked it yet.
        if not names or not all(map(_CONTENT.fullmatch, names)):
            return
        held = os.open(left, os.O_RDONLY)
        try:
            if lock(held):
                remove_folder(left)
        finally:
            os.close(held)


#: The folder being written, the finished one before it is renamed, and the replaced one.
_PART, _REBUILT, _OLD = ".tantivy.part", ".tantivy.new", ".tantivy.old"
#: The number of documents copied at a time.
_AT_ONCE = 64


def rebuild_columns(
    folder: Path, old: Reader, analysis: Analysis, pools: Mapping[str, int], memory: int
) -> None:
    """Copy an index to one with more columns and swap the two. A kill leaves either the old or the new one.

    Args:
        old: the index to copy; only committed documents are copied.
        pools: the number of columns in each pool.
        memory: the bytes that tantivy may use.

    Raises:
        EngineUnavailable: another process writes to it, or there is no space.

    Cost: that of indexing all documents again. Mostly there are few, as the first one brings most fields.
    """
    with translate_errors(f"adding columns to {folder.name}"):
        lock = old.index.writer(memory, 1)
        old.reload()
        catalog = replace(Catalog.load(folder), pools=dict(pools), schema=0)
        for leftover in (_PART, _REBUILT, _OLD):
            shutil.rmtree(folder / leftover, ignore_errors=True)
        (folder / _PART).mkdir()
        new = tantivy.Index(make_schema(catalog), path=str(folder / _PART))
        _copy(old.index.searcher(), old.heads, new.writer(memory, 1), catalog, analysis)
        (folder / _PART).rename(folder / _REBUILT)
        # A kill is harmless here, because writers read the columns from the schema.
        catalog.save(folder)
        (folder / TANTIVY).rename(folder / _OLD)
        finish_rebuild(folder)
        lock.wait_merging_threads()
        replace(catalog, schema=schema_checksum(read_meta(folder / TANTIVY))).save(folder)


def finish_rebuild(folder: Path) -> None:
    """Finish a rebuild whose process was killed between the two renames."""
    if not (folder / TANTIVY).exists():
        # Another process may be faster.
        with suppress(OSError):
            (folder / _REBUILT).rename(folder / TANTIVY)
            sync_folder(folder)
            shutil.rmtree(folder / _OLD, ignore_errors=True)


def _copy(
    searcher: tantivy.Searcher,
    heads: Heads,
    writer: tantivy.IndexWriter,
    catalog: Catalog,
    analysis: Analysis,
) -> None:
    _, found = search_top(searcher, tantivy.Query.all_query(), searcher.num_docs)
    for begin in range(0, len(found), _AT_ONCE):
        places = [place for _, place in found[begin : begin + _AT_ONCE]]
        sources = stored_sources(searcher, heads, places)
        parsed = [prepare(catalog, read_head(source.head).id, source.load()) for source in sources]
        analyse(parsed, analysis)
        # The records of the heads stay where they are.
        for one, source, address in zip(parsed, sources, addresses(searcher, places), strict=True):
            one.document.add_unsigned(ADDRESS, address or 0)
            source.add_to(one.document)
            writer.add_document(one.document)
    writer.commit()
    writer.wait_merging_threads()
