"""The target index of a run: checked first, created for the first document, or rebuilt beside the old one."""

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
    appends_only,
    check_index,
    check_takes_new,
    ensure_index,
    new_mappings,
)
from shinglefold.ingest.writing.accounting import Summary
from shinglefold.model.recipe import Recipe, stored_recipe
from shinglefold.options.validation import check_engine, check_str, expected

#: The name of an index that is built beside another: that one's, and the time.
_BESIDE = re.compile(r"(.+)-\d{20}")


def rebuild(engine: Engine, index: str, build: Callable[[str], Summary]) -> Summary:
    """Build an index under another name, and let it take the name once that has succeeded.

    Until then searches meet the old one, and a run that is cut short, or brings no document in, leaves it as
    it was. On servers the name is an alias of the new index afterwards.

    Args:
        build: fills the index whose name it gets, and makes it.

    Returns:
        The summary of ``build``; where the old index stays, it has ``discarded`` documents and made none.

    Raises:
        ConfigError: the name means several indices, or a data stream.
    """
    check_engine(engine)
    check_str("index", index)
    if not callable(build):
        raise expected("build", "what fills the index whose name it gets", build)
    if not engine.index_exists(index):
        return build(index)
    there = engine.indices(index)
    if any(index not in (info.name, *info.aliases) for info in there):
        raise ConfigError(
            f"{index!r} is a data stream, whose name no index can take: index into another name, or delete "
            "the stream first"
        )
    if len(there) > 1:
        names = ", ".join(info.name for info in there)
        raise ConfigError(f"{index!r} is an alias of several indices ({names}): name the one to recreate")
    beside = f"{index}-{datetime.now(UTC):%Y%m%d%H%M%S%f}"
    try:
        summary = build(beside)
    except BaseException:
        _remove(engine, beside)
        raise
    if summary.stopped or not (summary.indexed or summary.dropped):
        _remove(engine, beside)
        counts = {**summary.counts, "discarded": summary.indexed}
        return replace(summary, index=index, made=False, counts=counts)
    try:
        engine.replace_index(index, beside)
    except EngineError as error:
        return replace(
            summary, index=beside, stopped=f"{error} (the new index is whole under the name {beside})"
        )
    return replace(summary, index=index)


def _remove(engine: Engine, index: str) -> None:
    with suppress(EngineError):
        engine.delete_index(index)


def left_behind(engine: Engine, infos: Iterable[IndexInfo]) -> Iterator[tuple[IndexInfo, str]]:
    """Yield of some indices those that were built beside another and have not taken its place, with its name.

    A ``rebuild`` that was killed leaves such an index. One that goes on looks the same, so that only the user
    can tell whether it may be deleted.
    """
    for info in infos:
        named = _BESIDE.fullmatch(info.name)
        if named is None or named[1] in info.aliases or not engine.index_exists(named[1]):
            continue
        with suppress(EngineError):
            # To ask for the other name may have ended a replacement that was cut short.
            if engine.index_exists(info.name) and stored_recipe(engine.mappings(info.name)) is not None:
                yield info, named[1]


@dataclass(slots=True)
class Destination:
    """An index that may be missing still; a run that brings nothing in leaves none behind.

    ``there``: it exists. ``made``: this run made it. ``refusal``: why it could not be made. ``verb``: what is
    done with documents: ``create`` where a data stream takes new ones alone.
    """

    engine: Engine
    index: str
    recipe: Recipe
    properties: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] | None = None
    there: bool = field(default=False, init=False)
    made: bool = field(default=False, init=False)
    verb: str = field(default="index", init=False)
    refusal: ShinglefoldError | None = field(default=None, init=False)

    def check(self) -> None:
        """Look whether the index is there, and check that it was made with this recipe.

        Raises:
            SchemeMismatch: it was made with another scheme.
            RecipeMismatch: it was made with another pipeline, or stores fingerprints in another field.
            ConfigError: it was not made for fingerprints, or is an alias without an index for new documents.
        """
        self.there = self.engine.index_exists(self.index)
        if self.there:
            check_takes_new(self.engine, self.index)
            check_index(self.engine.mappings(self.index), self.index, self.recipe)
            if appends_only(self.engine, self.index):
                self.verb = "create"

    def make_ready(self) -> PrepareDocuments | None:
        """Return what makes of documents what the engine wants beforehand, if it does.

        Raises:
            UnsupportedQuery: the index can't be made with these fields.
        """
        if not isinstance(self.engine, PreparesDocuments):
            return None
        try:
            return self.engine.document_preparer(self.index, new_mappings(self.recipe, self.properties))
        except ShinglefoldError as error:
            self.refusal = error
            raise

    def prepare(self) -> None:
        """Make the index where it is missing.

        Raises:
            EngineError: it can't be made.
            SchemeMismatch: somebody else was faster, with another scheme; so do other errors of ``check``.
        """
        if self.there:
            return
        try:
            self.made = ensure_index(
                self.engine, self.index, self.recipe, properties=self.properties, settings=self.settings
            )
        except ShinglefoldError as error:
            self.refusal = error
            raise
        self.there = True
