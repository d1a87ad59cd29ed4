"""The tantivy schema of an index, the analysis of texts, and helpers for tantivy's searches and errors."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

import tantivy

from shinglefold.documents import well_formed
from shinglefold.engines.embedded.schema.catalog import Catalog
from shinglefold.engines.embedded.schema.field_types import SEARCHED
from shinglefold.errors import (
    ConfigError,
    EngineError,
    EngineUnavailable,
    IndexReadOnly,
    is_full,
    reason_of,
    suggest,
)
from shinglefold.model.scheme import CanonOptions
from shinglefold.model.values import Token

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

#: Score and address of a hit.
ScoredAddress = tuple[float, tantivy.DocAddress]
#: The default options of a language.
_DEFAULTS = asdict(CanonOptions())


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
    # tantivy allocates memory for all that a search may return.
    result = searcher.search(query, max(min(limit, searcher.num_docs), 1))
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
                f"{doing}: another process is writing to this index; wait until it has closed it, or stop it."
                " If this process opened the index twice, close the other one"
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
    if not (isinstance(error, OSError) and is_full(error)) and free >= _LEAST_FREE:
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


class Analysis:
    """The analyzer of an engine, from a canonicalizer or a callable ``text -> list[Token]``.

    Without either, mappings can be read, but text can't be indexed or searched.
    """

    def __init__(self, canonicalizer: Any) -> None:  # noqa: ANN401 - a Canonicalizer or a callable
        tokens: Any = _refuse if canonicalizer is None else getattr(canonicalizer, "tokens", canonicalizer)
        if not callable(tokens):
            raise ConfigError(f"{canonicalizer!r} is neither a Canonicalizer nor a callable text -> tokens")
        self._tokens = cast(Callable[[str], Sequence[Token]], tokens)
        # Texts are analysed in batches if possible, to share numpy's cost per call.
        self._batch: Callable[[Sequence[str]], list[str]] = getattr(
            canonicalizer, "text_batch", self._one_by_one
        )
        in_each: Callable[[], Sequence[Any]] = getattr(canonicalizer, "in_each_language", list)
        self._in_each = cache(lambda: [one.tokens for one in in_each()])
        # The same query often comes again, for the next window or page.
        self._readings = lru_cache(maxsize=1024)(self._read)
        references = getattr(canonicalizer, "references", None)
        #: Identifies what makes the tokens; stored with an index, empty for a callable.
        self.identity: str = (
            json.dumps([asdict(ref) for ref in references], sort_keys=True) if references else ""
        )

    def tokens(self, text: str) -> Sequence[Token]:
        """Return the tokens of a document's text, with offsets into it."""
        return self._tokens(text)

    def column_texts(self, texts: Sequence[str]) -> list[str]:
        """Return the tokens of each text joined by spaces, as the text columns contain them."""
        return [well_formed(text) for text in self._batch(texts)]

    def readings(self, text: str) -> tuple[tuple[str, ...], ...]:
        """Return the tokens of a query, in one list for each analysis that gives different tokens.

        A query is too short to tell Russian from Ukrainian, so it is also analysed in each language. Lists
        without tokens are left out.
        """
        return self._readings(text)

    def _one_by_one(self, texts: Sequence[str]) -> list[str]:
        return [" ".join([token.text for token in self._tokens(text)]) for text in texts]

    def _read(self, text: str) -> tuple[tuple[str, ...], ...]:
        found = [self._tokens(text), *(tokens(text) for tokens in self._in_each())]
        lists = {tuple(well_formed(token.text) for token in tokens): None for tokens in found if tokens}
        return tuple(lists)


def _refuse(_: str) -> Sequence[Token]:
    raise ConfigError("this engine was opened without a canonicalizer: give it one to write or search text")


def check_analysis(index: str, made: str, analysis: Analysis) -> None:
    """Check that an engine analyses texts as the engine that made an index did.

    Args:
        made: the identity stored with the index; empty if it is not known.

    Raises:
        EngineError: it does not, so hardly any word would match.
    """
    if made and analysis.identity and made != analysis.identity:
        raise EngineError(
            f"the index {index} was made with other languages, dictionaries or options than this engine has: "
            f"{_languages(made)}. To change them, index its documents again: "
            f"{suggest('index', 'FILE', index=index, recreate=True)}"
        )


def _languages(identity: str) -> str:
    """Return the languages of an identity with their versions and the options that are not default."""
    described = []
    for one in json.loads(identity):
        options = [
            f"{name} {json.dumps(value)}"
            for name, value in one["options"].items()
            if value != _DEFAULTS.get(name, value)
        ]
        described.append(
            " ".join([one["code"], one["version"], *(f"({', '.join(options)})" for _ in options[:1])])
        )
    return ", ".join(described)
