"""The folders of indices: which there are, and how one goes or takes the place of another.

A process that is killed leaves half of a new index beside the others, or half of a deleted one. The next one
that makes, replaces or deletes an index removes such folders, unless a living process has locked them.
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

from shinglefold.engines.embedded.schema.analysis import Analysis
from shinglefold.engines.embedded.schema.catalog import CATALOG, Catalog
from shinglefold.engines.embedded.schema.tantivy_schema import ADDRESS, TANTIVY, find, make_schema, translated
from shinglefold.engines.embedded.store.checksums import read_meta, schema_checksum
from shinglefold.engines.embedded.store.document_encoder import analyse, prepare
from shinglefold.engines.embedded.store.reader import Reader
from shinglefold.engines.embedded.store.record_files import Heads, addresses, read_head
from shinglefold.engines.embedded.store.source_codec import stored_source
from shinglefold.errors import ConfigError, EngineUnavailable, UnsupportedQuery
from shinglefold.options.validation import check_path
from shinglefold.runtime.durable_files import is_same_file, lock, sync_folder

#: What tantivy wants at least to open a writer, in bytes.
_LEAST_MEMORY = 15_000_000


def folder_of(path: str | Path) -> Path:
    """Return the folder of an engine; it may not exist yet.

    Raises:
        ConfigError: it is a file.
    """
    folder = check_path("path", path)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file: name the folder that indices are in, or are to be in")
    return folder


def index_names(path: Path) -> list[str]:
    """Return the names of the indices in a folder; those with a dot are being made or deleted."""
    return sorted(folder.name for folder in path.glob("[!.]*") if _is_index(folder))


def _is_index(folder: Path) -> bool:
    """Return whether a folder is an index, damaged or not; other folders are neither listed nor deleted."""
    return (folder / CATALOG).is_file() or (folder / TANTIVY).is_dir()


def no_name(path: Path, given: object) -> UnsupportedQuery:
    """Return the error for an invalid index name; for a pattern it lists the matching indices."""
    if not isinstance(given, str) or not set(given) & {"*", ","}:
        return UnsupportedQuery(
            f'{given!r} is no name for one index: lower case, no spaces, none of \\ / * ? " < > | , # :, and '
            "not beginning with . _ - +"
        )
    names = index_names(path)
    found = [name for name in names if any(fnmatchcase(name, part) for part in given.split(","))]
    one = f"one of {', '.join(found or names)}" if names else "one"
    return UnsupportedQuery(
        f"{given!r} is no name for one index but for several, and the embedded engine searches and changes "
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
            f"{folder} is there already and is no index: give the index another name, or take another folder"
        )


def there(folder: Path) -> bool:
    """Return whether an index exists; finishes a replacement that was cut short."""
    if folder.is_dir():
        return _is_index(folder)
    with suppress(OSError):
        by = _note(folder).read_text("utf-8")
        folder.with_name(by).rename(folder)
        _note(folder).unlink()
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
    _set_aside(folder, f"deleting {folder.name}", note=False)
    remove(deleted_path(folder))


def replace_folder(folder: Path, by: Path) -> None:
    """Replace an index by another and delete the old one; if cut short, the next access finishes it.

    Raises:
        EngineUnavailable: another process writes to one of them, or the folder can't be written.
    """
    doing = f"replacing {folder.name} by {by.name}"
    remove_leftovers(folder.parent)
    lock = _locked(by, doing)
    try:
        if folder.is_dir():
            _exchange(folder, by, doing)
        with translated(doing):
            by.rename(folder)
        _note(folder).unlink(missing_ok=True)
    finally:
        if lock:
            lock.wait_merging_threads()
    remove(deleted_path(folder))


def _exchange(folder: Path, by: Path, doing: str) -> None:
    """Note the replacement of an index, then hide the index."""
    with translated(doing):
        _note(folder).write_text(by.name, "utf-8")
    try:
        _set_aside(folder, doing)
    except EngineUnavailable:
        _note(folder).unlink(missing_ok=True)
        raise


def _set_aside(folder: Path, doing: str, *, note: bool = True) -> None:
    """Hide an index while its lock is held; without a ``note`` nothing takes its place."""
    lock = _locked(folder, doing)
    with translated(doing):
        if not note:
            _note(folder).unlink(missing_ok=True)
        remove(deleted_path(folder))
        folder.rename(deleted_path(folder))
        if lock:
            lock.wait_merging_threads()


def _locked(folder: Path, doing: str) -> tantivy.IndexWriter | None:
    """Take the write lock of an index; None if damaged files make writing impossible.

    Raises:
        EngineUnavailable: another process has it.
    """
    try:
        with translated(doing):
            return tantivy.Index.open(str(folder / TANTIVY)).writer(_LEAST_MEMORY, 1)
    except EngineUnavailable as error:
        if "LockBusy" in str(error.__cause__):
            raise
        return None


def _note(folder: Path) -> Path:
    """Return the file that names the replacement of an index."""
    return folder.with_name(f".{folder.name}.replaced-by")


#: Suffixes of the folder of an index that is being made, or deleted.
_NEW, _DELETED = "new", "deleted"
_NAME = re.compile(rf"\.[^.].*\.({_NEW}|{_DELETED})")
#: What the folder of an index may contain, with the names of temporary files.
_CONTENT = re.compile(r"\.?(tantivy|catalog\.json|heads|journal)(\..+)?")


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
        # Where a system has no locks, it is ours too.
        if lock(held) is False:
            os.close(held)
            return None
        if is_same_file(held, part):
            return held
        # Another process finished or removed it meanwhile.
        os.close(held)


def remove_leftovers(folder: Path) -> None:
    """Remove the leftovers of killed processes from an engine's folder, as far as possible."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if _NAME.fullmatch(entry.name) and entry.is_dir():
                _clear(Path(entry.path))


def remove(folder: Path) -> None:
    """Remove the folder of an index, and the link if it is one."""
    shutil.rmtree(folder.resolve(), ignore_errors=True)
    if folder.is_symlink():
        folder.unlink(missing_ok=True)


def _clear(left: Path) -> None:
    with suppress(OSError):
        names = os.listdir(left)
        # Another process may have made an empty one just now and not locked it yet.
        if not names or not all(map(_CONTENT.fullmatch, names)):
            return
        held = os.open(left, os.O_RDONLY)
        try:
            if lock(held):
                remove(left)
        finally:
            os.close(held)


#: The folder being written, the finished one before it is renamed, and the replaced one.
_PART, _REBUILT, _OLD = ".tantivy.part", ".tantivy.new", ".tantivy.old"


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
        for leftover in (_PART, _REBUILT, _OLD):
            shutil.rmtree(folder / leftover, ignore_errors=True)
        (folder / _PART).mkdir()
        new = tantivy.Index(make_schema(catalog), path=str(folder / _PART))
        _copy(old.index.searcher(), old.heads, new.writer(memory, 1), catalog, analysis)
        (folder / _PART).rename(folder / _REBUILT)
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
