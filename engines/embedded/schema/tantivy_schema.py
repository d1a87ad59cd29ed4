"""The tantivy schema of an index, and helpers for tantivy's searches and errors."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tantivy

from shinglefold.engines.embedded.schema.catalog import Catalog
from shinglefold.engines.embedded.schema.field_types import SEARCHED
from shinglefold.errors import EngineError, EngineUnavailable, IndexReadOnly, reason_of

#: The name of the folder with tantivy's files, inside the folder of an index.
TANTIVY = "tantivy"
#: The field with the paths of a document's values, for ``exists``. A path with several values is there a
#: second time, with the prefix ``MANY``.
NAMES, MANY = "_names", "\0"
#: The field with the document's JSON, without the objects at its top level.
SOURCE = "_source"
#: The column with the address of a document's head in the record files.
ADDRESS = "at"

#: A write that fails with fewer free bytes counts as a full disk: tantivy does not report the reason.
_LEAST_FREE = 64_000_000
_FULL = (errno.ENOSPC, errno.EDQUOT)

#: Score and address of a hit.
ScoredAddress = tuple[float, tantivy.DocAddress]


def make_schema(catalog: Catalog) -> tantivy.Schema:
    """Return the schema of a new index."""
    build = tantivy.SchemaBuilder()
    build.add_text_field("_id", tokenizer_name="raw", index_option="basic")
    build.add_text_field(NAMES, tokenizer_name="raw", index_option="basic")
    build.add_bytes_field(SOURCE, stored=True)
    build.add_unsigned_field(ADDRESS, fast=True)
    for number in range(catalog.pools["t"]):
        # The canonicalizer makes the tokens and joins them with spaces.
        build.add_text_field(f"t{number}", tokenizer_name="whitespace")
    for number in range(catalog.pools["k"]):
        build.add_text_field(f"k{number}", tokenizer_name="raw", index_option="basic", fast=True)
    for number in range(catalog.pools[SEARCHED]):
        build.add_text_field(f"{SEARCHED}{number}", tokenizer_name="raw", index_option="basic")
    for number in range(catalog.pools["l"]):
        build.add_integer_field(f"l{number}", indexed=True, fast=True)
    for number in range(catalog.pools["d"]):
        build.add_float_field(f"d{number}", indexed=True, fast=True)
    return build.build()


def search_top(
    searcher: tantivy.Searcher, query: tantivy.Query, limit: int
) -> tuple[int, list[ScoredAddress]]:
    """Return the number of documents that match a query, and the best of them.

    Equal scores are in the order of the index.
    """
    result = searcher.search(query, max(limit, 1))
    return hit_count(result), result.hits[:limit]


def hit_count(result: tantivy.SearchResult) -> int:
    """Return the number of documents that matched; tantivy's type stubs lack it."""
    return int(result.count)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def is_panic(error: BaseException) -> bool:
    """Return whether an error is a panic of tantivy: a ``BaseException`` whose class can't be imported."""
    return type(error).__name__ == "PanicException"


@contextmanager
def translate_errors(doing: str, folder: Path | None = None, *, lost: bool = True) -> Iterator[None]:
    """Translate exceptions of tantivy and of the operating system into ours.

    Args:
        doing: what the block does, for messages.
        folder: where the block writes.
        lost: whether documents are lost if the block fails.

    Raises:
        IndexReadOnly: the disk is full.
        EngineUnavailable: the files are locked, damaged, or can't be written.
    """
    try:
        yield
    except BaseException as error:
        if not isinstance(error, ValueError | OSError) and not is_panic(error):
            raise
        if "LockBusy" in str(error):
            raise EngineUnavailable(
                f"{doing}: another process is writing to this index; wait until it has closed it, or stop it"
            ) from error
        if folder is not None and (full := _full_disk(doing, folder, error, lost)):
            raise full from error
        place = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
        raise EngineUnavailable(
            f"{doing}: {place}{reason_of(error)}; look at the folder's rights and free space; if its files "
            "are damaged, delete the index and index again"
        ) from error


def _full_disk(doing: str, folder: Path, error: BaseException, lost: bool) -> EngineError | None:
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return None
    if getattr(error, "errno", None) not in _FULL and free >= _LEAST_FREE:
        return None
    remedy = (
        "index the documents again: what was written since the last commit is not stored; what a gate "
        "accepted stays"
        if lost
        else "try it again; all documents stored before are there"
    )
    return IndexReadOnly(f"{doing}: the disk is full ({free / 1e6:,.1f} MB left). Make room and {remedy}")


@dataclass(frozen=True, slots=True)
class CommitLimits:
    """When a bulk commits (after ``actions``, or ``size`` bytes), and the bytes that tantivy may use.

    A crash loses at most the actions after the last commit.
    """

    actions: int = 20_000
    size: int = 64_000_000
    memory: int = 64_000_000
