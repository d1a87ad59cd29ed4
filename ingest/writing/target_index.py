"""The target index of a run: checked first, created for the first document, or rebuilt under another name."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from shinglefold.contracts.engine import Engine, IndexInfo
from shinglefold.contracts.exclusive_writes import PrepareDocuments, PreparesDocuments
from shinglefold.errors import ConfigError, EngineError, ShinglefoldError
from shinglefold.ingest.index_mapping import (
    check_index,
    check_write_index,
    ensure_index,
    is_append_only,
    new_mappings,
)
from shinglefold.ingest.writing.accounting import Summary
from shinglefold.ingest.writing.index_watch import IndexWatch
from shinglefold.model.recipe import Recipe, stored_recipe
from shinglefold.options.validation import check_engine, check_str, expected

#: The name of an index that a rebuild fills: the final name and the time.
_REBUILD_NAME = re.compile(r"(.+)-\d{20}")


def rebuild(engine: Engine, index: str, build: Callable[[str], Summary]) -> Summary:
    """Build an index under another name, and move the name to it on success.

    Until then searches use the old index. It stays if the run is interrupted or indexes no document. On
    servers the name is an alias of the new index afterwards.

    Args:
        build: creates and fills the index whose name it is given.

    Returns:
        The summary of ``build``. If the old index stays, ``made`` is False and documents count as
        ``discarded``.

    Raises:
        ConfigError: the name means several indices, or a data stream.
    """
    check_engine(engine)
    check_str("index", index)
    if not callable(build):
        raise expected("build", "a function that fills the index whose name it is given", build)
    if not engine.index_exists(index):
        return build(index)
    infos = engine.indices(index)
    if any(index not in (info.name, *info.aliases) for info in infos):
        raise ConfigError(
            f"{index!r} is a data stream, whose name no index can take: use another name, or delete the "
            "stream first"
        )
    if len(infos) > 1:
        names = ", ".join(info.name for info in infos)
        raise ConfigError(f"{index!r} is an alias of several indices ({names}): name the one to recreate")
    temporary = f"{index}-{datetime.now(UTC):%Y%m%d%H%M%S%f}"
    try:
        summary = build(temporary)
    except BaseException:
        _remove(engine, temporary)
        raise
    if summary.stopped or not (summary.indexed or summary.dropped):
        _remove(engine, temporary)
        counts = {**summary.counts, "discarded": summary.indexed}
        return replace(summary, index=index, made=False, counts=counts)
    try:
        engine.replace_index(index, temporary)
    except EngineError as error:
        return replace(
            summary,
            index=temporary,
            stopped=f"{error} (the new index is complete under the name {temporary})",
        )
    return replace(summary, index=index)


def _remove(engine: Engine, index: str) -> None:
    with suppress(EngineError):
        engine.delete_index(index)


def unfinished_rebuilds(engine: Engine, infos: Iterable[IndexInfo]) -> Iterator[tuple[IndexInfo, str]]:
    """Yield the indices that a ``rebuild`` left or is filling, each with its final name.

    A killed and a running ``rebuild`` look the same, so that only the user knows whether to delete the index.
    """
    for info in infos:
        named = _REBUILD_NAME.fullmatch(info.name)
        if named is None or named[1] in info.aliases or not engine.index_exists(named[1]):
            continue
        with suppress(EngineError):
            # Asking for the final name may have completed an interrupted replacement.
            if engine.index_exists(info.name) and stored_recipe(engine.mappings(info.name)) is not None:
                yield info, named[1]


@dataclass(slots=True)
class TargetIndex:
    """The index of a run, which is created for the first document, so that an empty run leaves none.

    ``created``: this run created it. ``refusal``: why it could not be created. ``verb``: the bulk operation;
    ``create`` for a data stream, which takes new documents only.
    """

    engine: Engine
    index: str
    recipe: Recipe
    watch: IndexWatch
    properties: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] | None = None
    exists: bool = field(default=False, init=False)
    created: bool = field(default=False, init=False)
    verb: str = field(default="index", init=False)
    refusal: ShinglefoldError | None = field(default=None, init=False)

    def check(self) -> None:
        """Find out whether the index exists, and check that it was made with this recipe.

        Raises:
            SchemeMismatch, RecipeMismatch, ConfigError: it does not fit; see ``check_index``.
        """
        self.exists = self.engine.index_exists(self.index)
        if self.exists:
            check_write_index(self.engine, self.index)
            check_index(self.engine.mappings(self.index), self.index, self.recipe)
            if is_append_only(self.engine, self.index):
                self.verb = "create"
            self.watch.begin()

    def document_preparer(self) -> PrepareDocuments | None:
        """Return the engine's function that prepares documents in workers, None if it has none.

        Raises:
            UnsupportedQuery: the index can't be created with these fields.
        """
        if not isinstance(self.engine, PreparesDocuments):
            return None
        try:
            return self.engine.document_preparer(self.index, new_mappings(self.recipe, self.properties))
        except ShinglefoldError as error:
            self.refusal = error
            raise

    def create(self) -> None:
        """Create the index if it is missing.

        Raises:
            EngineError: it can't be created.
            SchemeMismatch, RecipeMismatch, ConfigError: another client created one that does not fit.
        """
        if self.exists:
            return
        try:
            self.created = ensure_index(
                self.engine, self.index, self.recipe, properties=self.properties, settings=self.settings
            )
        except ShinglefoldError as error:
            self.refusal = error
            raise
        self.watch.begin()
        self.exists = True
