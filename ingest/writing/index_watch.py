"""Notice that an index is deleted, made anew or set up otherwise while documents are written to it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic

from shinglefold.contracts.engine import Engine, GuardedWrites
from shinglefold.errors import (
    ConfigError,
    EngineError,
    EngineUnavailable,
    IndexMissing,
    RecipeMismatch,
    SchemeMismatch,
    chain,
    suggest,
)
from shinglefold.ingest.index_mapping import check_index
from shinglefold.model.recipe import Recipe

#: Seconds between two checks of a run, and how many times as long as a check they are at least apart.
_INTERVAL, _SHARE = 2.0, 50.0


class IndexChanged(EngineError):
    """The index is not the one that a run began to write to."""


@dataclass(slots=True)
class IndexWatch:
    """Compares an index with what it was when a run began: its UUID and its recipe.

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
    _identities: dict[str, str] = field(default_factory=dict)
    _checked: float = field(default_factory=monotonic)
    _written: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        """Remember which indices the name means now."""
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
            IndexChanged: the index was deleted or made anew, the name moved, or the recipe changed.
            EngineUnavailable: the server does not answer.
        """
        begun = monotonic()
        now = self._read_identities()
        for name, identity in self._identities.items():
            if identity and name in now and now[name] not in ("", identity):
                raise IndexChanged(self._made_anew(name))
            if name not in now and (self._written[name] or name == self.index):
                if self.again and now and not self.engine.index_exists(name):
                    # One of several indices was deleted, as old ones are.
                    continue
                raise IndexChanged(self._gone(name, now))
        try:
            for mappings in self.engine.all_mappings(self.index).values():
                check_index(mappings, self.index, self.recipe)
        except IndexMissing as error:
            raise IndexChanged(self._gone(self.index, now)) from error
        except (ConfigError, RecipeMismatch, SchemeMismatch) as error:
            raise IndexChanged(self._other_recipe(error)) from error
        # Indices that came since, as after a rollover.
        self._identities = {**now, **self._identities}
        self._checked = monotonic()
        self._pause = max(_INTERVAL, _SHARE * (self._checked - begun))

    def _read_identities(self) -> dict[str, str]:
        if self.engine.can.seq_no and isinstance(self.engine, GuardedWrites):
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

    def _gone(self, name: str, now: Mapping[str, str]) -> str:
        count = self._written[name]
        many = "1 document of this run" if count == 1 else f"{count:,} documents of this run"
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
        many = "1 document" if count == 1 else f"{count:,} documents"
        fix = suggest("backfill", self.index)
        if isinstance(error, ConfigError):
            fix = chain([suggest("setup", self.index), fix])
        return (
            f"the recipe of {self.index!r} was changed during this run, which wrote {many} with fingerprints "
            f"of the earlier one ({self.recipe.scheme.id}); they fold with none of the others. To sign them "
            f"anew: {fix}. What was found: {error}"
        )
