"""Read documents back that an ingest pipeline of the server may have changed after they were signed."""

import base64
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from msgspec.json import decode

from shinglefold.contracts.engine import JSON, AsyncEngine, BulkFailure, Engine, GuardedWrites
from shinglefold.documents import values_at
from shinglefold.errors import EngineError, suggest
from shinglefold.ingest.writing.batch import Action, Batch
from shinglefold.model.recipe import Recipe
from shinglefold.model.stored_fingerprint import stored_parts

#: Seconds after which the settings are read again: a pipeline may be added during a run.
_INTERVAL = 2.0


@dataclass(slots=True)
class ReadBack:
    """Counts documents that are not stored as they were signed, if the index has ingest pipelines.

    Every document is compared, because a pipeline may change only some. ``lost``: documents without the
    fingerprint that was sent. ``changed``: documents with other texts than the signed ones. ``unread``:
    stored documents that could not be read to be compared, and ``reason``: why.

    Cost: nothing without a pipeline; else one request a batch.
    """

    engine: Engine | AsyncEngine
    index: str
    recipe: Recipe
    lost: int = 0
    changed: int = 0
    unread: int = 0
    reason: str = ""
    #: The first document that is not stored as it was signed.
    first: str = ""
    pipelines: tuple[str, ...] = ()
    _looked: float = field(default=float("-inf"))

    def prepare(self, batch: Batch) -> None:
        """Give documents without an id one, by which they can be read back."""
        if self._has_pipelines():
            batch.actions = [_with_id(action) for action in batch.actions]

    def compare(self, batch: Batch, refused: Sequence[BulkFailure]) -> None:
        """Compare the documents of a batch with what is stored."""
        if not self.pipelines or not isinstance(self.engine, GuardedWrites):
            return
        failed = {id(one.action) for one in refused}
        sent = [one for one in batch.actions if id(one) not in failed and "_id" in one]
        source = [self.recipe.field, *self.recipe.fields]
        ids, routings = [one["_id"] for one in sent], [one.get("routing") for one in sent]
        try:
            stored = self.engine.read(self.index, ids, source, routings)
        except EngineError as error:
            self.miss(len(sent), error)
            return
        for action, found in zip(sent, stored, strict=True):
            # The server says itself which documents it drops, or sends to another index.
            if found is not None:
                given = action["_source"]
                signed = decode(given) if isinstance(given, bytes | str) else given
                self.add(action["_id"], signed, found.source)

    def add(self, id_: str, signed: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
        """Compare a document as it was signed with what is stored of it."""
        path = self.recipe.field
        kept = stored_parts(stored, path)
        # A gate stores the number of a group besides.
        lost = any(kept.get(name) != value for name, value in stored_parts(signed, path).items())
        changed = any(values_at(signed, name) != values_at(stored, name) for name in self.recipe.fields)
        self.lost += lost
        self.changed += changed and not lost
        if (lost or changed) and not self.first:
            self.first = id_

    def miss(self, count: int, error: EngineError) -> None:
        """Count documents that were stored, and could not be read to be compared."""
        self.unread += count
        self.reason = self.reason or str(error)

    @property
    def otherwise(self) -> int:
        """The number of documents that are not stored as they were signed, or may not be."""
        return self.lost + self.changed + self.unread

    def to_json(self) -> JSON:
        """Return the counts; {} if all documents are stored as they were signed."""
        counts = {"fingerprints_lost": self.lost, "texts_changed": self.changed}
        return (counts if self.lost + self.changed else {}) | (
            {"not_read_back": self.unread} if self.unread else {}
        )

    def notes(self) -> list[str]:
        """Return remarks on documents that are not stored as they were signed, with the remedy."""
        return [*self._differences(), *self._misses()]

    def _differences(self) -> Iterator[str]:
        found = []
        if self.lost:
            found.append(f"{_documents(self.lost)} stored without the fingerprint that was sent")
        if self.changed:
            found.append(f"{_documents(self.changed)} stored with another text than was signed")
        if found:
            yield (
                f"{' and '.join(found)}, by the ingest pipeline {', '.join(self.pipelines)} of "
                f"{self.index!r}; the first is {self.first!r:.80}. Let the pipeline keep "
                f"[{self.recipe.field}] and the texts; to sign what is stored: "
                f"{suggest('backfill', self.index)}"
            )

    def _misses(self) -> Iterator[str]:
        if self.unread:
            yield (
                f"{_documents(self.unread)} stored and could not be read again ({self.reason}), so that it "
                f"is unknown what the ingest pipeline {', '.join(self.pipelines)} of {self.index!r} changed; "
                f"to sign what is stored: {suggest('backfill', self.index)}"
            )

    def _has_pipelines(self) -> bool:
        if isinstance(self.engine, GuardedWrites) and monotonic() - self._looked >= _INTERVAL:
            self._looked = monotonic()
            self.found(self.engine.ingest_pipelines(self.index))
        return bool(self.pipelines)

    def found(self, pipelines: Sequence[str]) -> None:
        """Add pipelines of the index; documents in flight may still go through one that was taken away."""
        self.pipelines = tuple(sorted({*self.pipelines, *pipelines}))


def _with_id(action: Action) -> Action:
    if "_id" in action:
        return action
    return {**action, "_id": base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22].decode()}


def _documents(count: int) -> str:
    return "1 document is" if count == 1 else f"{count:,} documents are"
