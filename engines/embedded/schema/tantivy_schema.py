"""The tantivy schema of an index: pools of columns and what every document has."""

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

#: The folder of tantivy's files in that of an index.
TANTIVY = "tantivy"
#: The paths a document has a value at, for ``exists``; again with ``MANY`` before, where it has several.
NAMES, MANY = "_names", "\0"
#: The document as JSON, without the objects at its top level.
SOURCE = "_source"
#: The column of the addresses of heads.
ADDRESS = "at"

#: Bytes left below which a write that failed is taken to have failed for want of them: tantivy does not say.
_ROOM = 64_000_000
_FULL = (errno.ENOSPC, errno.EDQUOT)

#: A hit while it is being ranked: score and address.
ScoredAddress = tuple[float, tantivy.DocAddress]


def make_schema(catalog: Catalog) -> tantivy.Schema:
    """Return the schema an index is made with."""
    build = tantivy.SchemaBuilder()
    build.add_text_field("_id", tokenizer_name="raw", index_option="basic")
    build.add_text_field(NAMES, tokenizer_name="raw", index_option="basic")
    build.add_bytes_field(SOURCE, stored=True)
    build.add_unsigned_field(ADDRESS, fast=True)
    for number in range(catalog.pools["t"]):
        # The tokens are made by the canonicalizer, so the spaces between them are all there is to find.
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
    """Return how many documents a query finds, and the best of them: score and address.

    Equal scores are in the order of the index.
    """
    result = searcher.search(query, max(limit, 1))
    return hit_count(result), result.hits[:limit]


def hit_count(result: tantivy.SearchResult) -> int:
    """Return how many documents were found; the library's type stubs forget it."""
    return int(result.count)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def is_panic(error: BaseException) -> bool:
    """Tell whether an error is tantivy's panic: it can't be imported, and is no ``Exception``."""
    return type(error).__name__ == "PanicException"


@contextmanager
def translate_errors(doing: str, folder: Path | None = None, *, lost: bool = True) -> Iterator[None]:
    """Turn tantivy's and the system's exceptions into this project's.

    Args:
        folder: where is written.
        lost: whether documents are lost where that fails.

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
    if getattr(error, "errno", None) not in _FULL and free >= _ROOM:
        return None
    remedy = (
        "index the documents again: what was written since the last commit is not stored; what a gate let in "
        "stays"
        if lost
        else "try it again; all documents stored before are there"
    )
    return IndexReadOnly(f"{doing}: the disk is full ({free / 1e6:,.1f} MB left). Make room and {remedy}")


@dataclass(frozen=True, slots=True)
class CommitLimits:
    """After how much a writer commits by itself, and how much memory tantivy may take meanwhile.

    ``actions`` and ``size`` (bytes of sources) also bound what a crash can lose.
    """

    actions: int = 20_000
    size: int = 64_000_000
    memory: int = 64_000_000
