"""The target index of a run: checked first, created for the first document, or rebuilt under another name.

While documents are written, somebody may delete it, recreate it or set it up differently. This is noticed.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any

from shinglefold.contracts.engine import Engine, GuardedWrites, IndexInfo
from shinglefold.contracts.exclusive_writes import ExclusiveWrites, PrepareDocuments, PreparesDocuments
from shinglefold.errors import (
    ConfigError,
    EngineError,
    EngineUnavailable,
    IndexMissing,
    RecipeMismatch,
    SchemeMismatch,
    ShinglefoldError,
    chain,
    counted,
    suggest,
)
from shinglefold.ingest.index_mapping import (
    check_index,
    check_write_index,
    ensure_index,
    is_append_only,
    new_mappings,
)
from shinglefold.model.recipe import Recipe, stored_recipe
from shinglefold.options.validation import check_engine, check_str, expected

if TYPE_CHECKING:
    from shinglefold.ingest.writing.accounting import Summary

#: The least seconds between two checks of a run, and the least interval in durations of a check.
_INTERVAL, _SHARE = 2.0, 50.0
#: The name of an index that a rebuild fills: the final name and the time.
_REBUILD_NAME = re.compile(r"(.+)-\d{20}")


@contextmanager
def released_after(engine: object, index: str) -> Iterator[None]:
    """Let other processes write to an embedded index after the block, although its engine stays open."""
    try:
        yield
    finally:
        if isinstance(engine, ExclusiveWrites):
            engine.release(index)


class IndexChanged(EngineError):
    """The index of a run was deleted or replaced, or its recipe changed."""


@dataclass(slots=True)
class IndexWatch:
    """Compares an index with what it was when a run began: its UUID and its recipe.

    Only the recipe is compared before ``begin``, and by readers, which do not call it: nothing can be lost.

    A UUID never returns, so that a check after the last write is certain. Earlier checks only end a useless
    run sooner. Engines without UUIDs have one writer, and only their recipe is compared.

    Args:
        recipe: that of the documents written.
        again: the command that repeats the run, if it changes stored documents; else its documents are to be
            indexed again.
    """

    engine: Engine
    index: str
    recipe: Recipe
    again: str = ""
    _pause: float = _INTERVAL
    _begun: bool = False
    _identities: dict[str, str] = field(default_factory=dict)
    _checked: float = field(default_factory=monotonic)
    _written: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        """Remember which indices the name means now."""
        self._begun = True
        self._identities |= self._read_identities()
        self._checked = monotonic()

    def wrote(self, indices: Mapping[str, int], documents: int) -> None:
        """Note how many documents went into which index.

        Args:
            indices: documents by the name of the index, if it is another one than ``index``.
            documents: the number of all.
        """
        self._written.update(indices)
        self._written[self.index] += documents - sum(indices.values())

    def check_if_due(self) -> None:
        """Check again if the last check is a few seconds old; see ``check``."""
        if monotonic() - self._checked >= self._pause:
            try:
                self.check()
            except EngineUnavailable:
                # The next write or check will tell; the last check is made when the server answers.
                self._checked = monotonic()

    def check(self) -> None:
        """Raise if documents may be lost, or do not have the fingerprints of the index.

        Raises:
            IndexChanged: the index was deleted or recreated, the name moved, or the recipe changed.
            EngineUnavailable: the server does not answer.
        """
        begun = monotonic()
        now = self._read_identities()
        for name, identity in self._identities.items():
            if identity and name in now and now[name] not in ("", identity):
                raise IndexChanged(self._made_anew(name))
            if name not in now and (self._written[name] or name == self.index):
                if self.again and now and not self.engine.index_exists(name):
                    # One of several indices was deleted, which is usual for old ones.
                    continue
                raise IndexChanged(self._gone_message(name, now))
        try:
            for mappings in self.engine.all_mappings(self.index).values():
                check_index(mappings, self.index, self.recipe)
        except IndexMissing as error:
            raise IndexChanged(self._gone_message(self.index, now)) from error
        except (ConfigError, RecipeMismatch, SchemeMismatch) as error:
            raise IndexChanged(self._other_recipe(error)) from error
        # Indices that came since, as after a rollover.
        self._identities = {**now, **self._identities}
        self._checked = monotonic()
        self._pause = max(_INTERVAL, _SHARE * (self._checked - begun))

    def _read_identities(self) -> dict[str, str]:
        if self._begun and self.engine.can.seq_no and isinstance(self.engine, GuardedWrites):
            return self.engine.identities([self.index])
        return {}

    def _made_anew(self, name: str) -> str:
        if self.again:
            return (
                f"the index {name!r} was deleted during this run, and another of its name was made: nothing "
                f"written before is in it. Set it up, and begin anew: "
                f"{chain([suggest('setup', self.index), self.again])}"
            )
        again = suggest("index", "FILE", index=self.index, recreate=True)
        return (
            f"the index {name!r} was deleted during this run, and another of its name was made: of the "
            f"{self._written.total():,} documents written, those before that are lost, and the others may "
            f"lack the mappings of fingerprints. Index all documents again: {again}"
        )

    def _gone_message(self, name: str, now: Mapping[str, str]) -> str:
        count = self._written[name]
        many = counted(count, "document of this run", "documents of this run")
        if self.again:
            what = f"now means {', '.join(sorted(now))}" if now else "is deleted"
            return f"{self.index!r} meant the index {name!r} and {what}. Begin anew: {self.again}"
        if now:
            return (
                f"{self.index!r} meant the index {name!r} and now means {', '.join(sorted(now))}: {many} "
                f"went into {name!r}, and searches of {self.index!r} do not find them. Index them again"
            )
        return (
            f"the index {name!r} was deleted during this run, with {many}. Set it up, and index all again: "
            f"{suggest('setup', self.index)}"
        )

    def _other_recipe(self, error: Exception) -> str:
        count = self._written.total()
        if not count:
            return (
                f"the recipe of {self.index!r} was changed meanwhile: open the index again, or repeat the "
                f"command. What was found: {error}"
            )
        many = counted(count, "document")
        fix = suggest("backfill", self.index)
        if isinstance(error, ConfigError):
            fix = chain([suggest("setup", self.index), fix])
        return (
            f"the recipe of {self.index!r} was changed during this run, which wrote {many} with fingerprints "
            f"of the earlier one ({self.recipe.scheme.id}); they fold with none of the others. To sign them "
            f"anew: {fix}. What was found: {error}"
        )


def rebuild(engine: Engine, index: str, build: "Callable[[str], Summary]") -> "Summary":
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
