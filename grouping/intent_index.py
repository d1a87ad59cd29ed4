"""The hidden index beside a user's: intents of gates, marks of runs; small, read by id only.

Gates publish their intents in it. A run that numbers groups leaves a mark in it, because neither of two such
runs sees the numbers that the other writes.
"""

import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field

from shinglefold.contracts.engine import JSON, Engine, Guard, GuardedWrites
from shinglefold.errors import ConfigError, EngineError, IndexExists, PermissionDenied

_PREFIX = "shinglefold-gate-"
#: Nothing searches the index; a rare refresh lets the server write it out of memory. A pipeline that a
#: template sets for all indices must not run on its documents.
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
    """Create the index of intents if it is missing, and return its name."""
    name = intents_name(index)
    if not engine.index_exists(name):
        # Another writer may be faster.
        with suppress(IndexExists):
            engine.create_index(name, {"dynamic": False}, _SETTINGS)
    return name


def check_intents(engine: Engine, name: str) -> None:
    """Raise ``ConfigError`` for an index of intents that the server created when a gate wrote to it.

    That happens after somebody has deleted it. Such an index is not hidden and may have several shards. It
    maps a field for each claim, until it reaches the limit of fields and accepts no more.
    """
    with suppress(PermissionDenied):
        if str(engine.mappings(name).get("dynamic")).lower() != "false":
            raise ConfigError(
                f"index {name!r}, where gates publish their intents, was created by the server after "
                f"somebody deleted it: close all gates and delete it (DELETE /{name}). The next gate creates "
                "it again, and no document is lost"
            )


_MARK = "numbering"
#: Milliseconds after which a mark expires, and after which it is renewed.
_LEASE, _RENEWAL = 60_000, 15_000


@dataclass(slots=True)
class ConcurrentRunMarker:
    """Marks an index on a server while a run numbers its groups; the embedded engine excludes other runs.

    Attributes:
        conflict: whether another run was active, or was killed within the last minute.
    """

    engine: Engine
    index: str
    conflict: bool = False
    _run: str = field(default_factory=lambda: uuid.uuid4().hex)
    _intents: str = ""
    _guard: Guard | None = None
    _written: int = 0
    _off: bool = False

    def renew(self) -> None:
        """Write the mark of this run, unless another run has one."""
        now = time.time_ns() // 1_000_000
        if self._off or self.conflict or now - self._written < _RENEWAL:
            return
        if not isinstance(self.engine, GuardedWrites):
            self._off = True
            return
        try:
            self._write(self.engine, now)
        except PermissionDenied:
            # The user may not write to the index of intents, so other runs can't be detected.
            self._off = True

    def end(self) -> None:
        """Delete the mark; one that can't be deleted expires after a minute."""
        if self._guard is None or not isinstance(self.engine, GuardedWrites):
            return
        delete = {
            "_op_type": "delete",
            "_index": self._intents,
            "_id": _MARK,
            **_guard_parameters(self._guard),
        }
        self._guard = None
        with suppress(EngineError):
            self.engine.write([delete])

    def _write(self, engine: GuardedWrites, now: int) -> None:
        self._intents = self._intents or ensure_intents(self.engine, self.index)
        (mark,) = engine.read(self._intents, [_MARK])
        if mark is not None and mark.source["run"] != self._run and mark.source["until"] > now:
            self.conflict = True
            return
        put: JSON = {
            "_index": self._intents,
            "_id": _MARK,
            "_source": {"run": self._run, "until": now + _LEASE},
        }
        put |= {"_op_type": "create"} if mark is None else _guard_parameters(mark.guard)
        (written,) = engine.write([put])
        self.conflict = written.status == 409
        self._guard, self._written = written.guard, now


def _guard_parameters(guard: Guard) -> JSON:
    return {"if_seq_no": guard.seq_no, "if_primary_term": guard.primary_term}
