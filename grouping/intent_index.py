"""The index of intents beside the user's index: hidden from patterns, small, and read by id only."""

import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field

from shinglefold.contracts.engine import JSON, Engine, Guard, GuardedWrites, VersionedDocument
from shinglefold.errors import ConfigError, EngineError, IndexExists, PermissionDenied

_PREFIX = "shinglefold-gate-"
#: Nothing searches it. A rare refresh lets the server write it out of memory. A pipeline that a template
#: sets for all indices must not run on its documents.
_SETTINGS: JSON = {
    "index": {
        "hidden": True,
        "number_of_shards": 1,
        "auto_expand_replicas": "0-1",
        "refresh_interval": "30s",
        "default_pipeline": "_none",
        "final_pipeline": "_none",
    }
}


def intents_name(index: str) -> str:
    """Return the name of the index of intents of an index."""
    return f"{_PREFIX}{index}"


def ensure_intents(engine: Engine, index: str) -> str:
    """Create the index of intents of an index where it is missing, and return its name."""
    name = intents_name(index)
    if not engine.index_exists(name):
        # Another writer may be faster.
        with suppress(IndexExists):
            engine.create_index(name, {"dynamic": False}, _SETTINGS)
    return name


def check_intents(engine: Engine, name: str) -> None:
    """Refuse an index of intents that a server created by itself, for a write after it was deleted.

    Such an index is not hidden and may have several shards. It maps a field for each claim until it reaches
    the limit of fields and takes no more.

    Raises:
        ConfigError: the server created it.
    """
    with suppress(PermissionDenied):
        if str(engine.mappings(name).get("dynamic")).lower() != "false":
            raise ConfigError(
                f"index {name!r}, where gates keep their notes, was made by the server itself after "
                f"theirs was deleted: close all gates and delete it (DELETE /{name}); the next gate creates "
                "it again, and no document is lost"
            )


_NOTE = "numbering"
#: Milliseconds after which a mark expires, and after which it is written again.
_GOOD, _AGAIN = 60_000, 15_000


@dataclass(slots=True)
class ConcurrentRunMarker:
    """Marks an index on a server while a run numbers its groups; an embedded engine allows one run anyway.

    ``seen``: whether another run was active, or was cut short within the last minute.
    """

    engine: Engine
    index: str
    seen: bool = False
    _run: str = field(default_factory=lambda: uuid.uuid4().hex)
    _where: str = ""
    _guard: Guard | None = None
    _noted: int = 0
    _off: bool = False

    def look(self) -> None:
        """Write the mark of this run, and look for that of another."""
        now = time.time_ns() // 1_000_000
        if self._off or self.seen or now - self._noted < _AGAIN:
            return
        if not isinstance(self.engine, GuardedWrites):
            self._off = True
            return
        try:
            self._note(self.engine, now)
        except PermissionDenied:
            # Without the right to write to the index of intents, other runs can't be detected.
            self._off = True

    def end(self) -> None:
        """Delete the mark; one that can't be deleted expires after a minute."""
        if self._guard is None or not isinstance(self.engine, GuardedWrites):
            return
        drop = {"_op_type": "delete", "_index": self._where, "_id": _NOTE, **_guarded(self._guard)}
        self._guard = None
        try:
            self.engine.write([drop])
        except EngineError:
            return

    def _note(self, engine: GuardedWrites, now: int) -> None:
        self._where = self._where or ensure_intents(self.engine, self.index)
        (there,) = engine.read(self._where, [_NOTE])
        if there is not None and there.source["run"] != self._run and there.source["until"] > now:
            self.seen = True
            return
        put = {"_index": self._where, "_id": _NOTE, "_source": {"run": self._run, "until": now + _GOOD}}
        (written,) = engine.write([put | _unless_others(there)])
        self.seen = written.status == 409
        self._guard, self._noted = written.guard, now


def _unless_others(there: VersionedDocument | None) -> JSON:
    return {"_op_type": "create"} if there is None else _guarded(there.guard)


def _guarded(guard: Guard) -> JSON:
    return {"if_seq_no": guard.seq_no, "if_primary_term": guard.primary_term}
