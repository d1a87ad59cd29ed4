"""The moments at which a writer of an embedded index may be killed during its journal and a commit."""

import os
import signal
from collections.abc import Callable
from typing import Any

from shinglefold.engines.embedded.store import write_ahead_log as journal
from shinglefold.engines.embedded.store import writer
from shinglefold.engines.embedded.store.record_files import RecordAppender
from shinglefold.engines.embedded.store.write_ahead_log import WriteAheadLog
from shinglefold.engines.embedded.store.writer import IndexWriter

#: Before and behind what is done, and in the middle of a batch.
WINDOWS = (
    "noting",
    "half noted",
    "noted",
    "turned",
    "committing",
    "heads stored",
    "committed",
    "removing",
    "removed",
)


def die_in(window: str, passes: int) -> None:
    """Kill this process when it reaches a window for the n-th time."""
    left = passes

    def die(*_: Any) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def half(self: WriteAheadLog, *_: Any) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            self._file = _Half(self._file or self._next())  # type: ignore[assignment]

    ways: dict[str, tuple[Any, str, Callable[..., None] | None, Callable[..., None] | None]] = {
        "noting": (WriteAheadLog, "write", die, None),
        "half noted": (WriteAheadLog, "write", half, None),
        "noted": (WriteAheadLog, "write", None, die),
        "turned": (WriteAheadLog, "rotate", None, die),
        "committing": (IndexWriter, "_commit_frozen", die, None),
        "heads stored": (RecordAppender, "flush", None, die),
        "committed": (IndexWriter, "_commit_frozen", None, die),
        "removing": (journal, "remove_journal_files", die, None),
        "removed": (journal, "remove_journal_files", None, die),
    }
    where, name, before, after = ways[window]
    _wrap(where, name, before, after)
    if where is journal:
        _wrap(writer, name, before, after)


def _wrap(
    where: Any, name: str, before: Callable[..., None] | None, after: Callable[..., None] | None
) -> None:
    done = getattr(where, name)

    def wrapped(*given: Any) -> Any:
        if before:
            before(*given)
        told = done(*given)
        if after:
            after(*given)
        return told

    setattr(where, name, wrapped)


class _Half:
    """A file whose writer is killed when half of a batch is written."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        self._file.write(data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
        return 0
