"""The index of a run: checked before the first document is read, made when the first is to go in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shinglefold.contracts import Engine
from shinglefold.errors import ShinglefoldError
from shinglefold.ingest.mapping import appends_only, check_index, check_takes_new, ensure_index, new_mappings
from shinglefold.local_engines import MakeReady, WantsReady
from shinglefold.recipe import Recipe


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

    def make_ready(self) -> MakeReady | None:
        """Return what makes of documents what the engine wants beforehand, if it does.

        Raises:
            UnsupportedQuery: the index can't be made with these fields.
        """
        if not isinstance(self.engine, WantsReady):
            return None
        try:
            return self.engine.ready_for(self.index, new_mappings(self.recipe, self.properties))
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
