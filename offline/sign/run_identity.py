"""What decides the output of a run: with anything else changed, a run that was broken off can't go on."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import xxhash

from shinglefold.errors import InputError
from shinglefold.ingest.readers.read import is_page
from shinglefold.model.scheme import Scheme
from shinglefold.offline.sign.signer import SignOptions
from shinglefold.offline.sign.tasks import LARGEST, is_repeatable

#: Counts up whenever the same run would be cut into other tasks or write other bytes.
LAYOUT = 1


def identity(sources: Sequence[str], options: SignOptions, scheme: Scheme, seal: str) -> dict[str, Any]:
    """Return it as JSON.

    A pipe is another one each time: its time of opening makes sure of that.
    """
    reading = options.reading
    return {
        "layout": [LAYOUT, LARGEST],
        "sources": [_state(source) for source in sources],
        "scheme": scheme.id,
        "seal": seal,
        "texts": list(options.fields),
        "language field": options.language_field,
        "html": options.html,
        "only ids": options.only_ids,
        "field": options.target,
        "reading": [reading.format, reading.id_field, reading.encoding, reading.header, reading.max_bytes],
    }


class AsFound:
    """Sources as a run found them, which reads them bit by bit, from several processes.

    Pipes are read once and in order, so nothing about them can change.
    """

    def __init__(self, sources: Sequence[str]) -> None:
        self._states = {source: _state(source) for source in sources if is_repeatable(source)}

    def check(self) -> None:
        """See that all of them are as they were.

        Raises:
            InputError: one is not, so that documents may be missing or torn, and nobody could tell which.
        """
        self._check(self._states)

    def check_files(self) -> None:
        """See that the files are; a folder takes long to look through.

        Raises:
            InputError: one is not.
        """
        self._check([source for source in self._states if not Path(source).is_dir()])

    def _check(self, sources: Iterable[str]) -> None:
        changed = next((source for source in sources if _state(source) != self._states[source]), None)
        if changed is not None:
            raise InputError(
                f"{changed} changed while it was read, so that documents may be missing or torn: begin anew "
                "once nobody writes to it, or with a copy"
            )


def _state(source: str) -> list[Any]:
    """Return the name of a source and what tells whether it changed."""
    if not is_repeatable(source):
        return [source, os.getpid(), os.urandom(8).hex()]
    path = Path(source)
    if path.is_dir():
        return [str(path.resolve()), _folder(source)]
    found = path.stat()
    return [str(path.resolve()), found.st_size, found.st_mtime_ns]


def _folder(source: str) -> str:
    digest = xxhash.xxh3_128()
    for folder, folders, names in os.walk(source):
        # What is made, and what failed, may stand among what it is made of, and is none of it.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(name for name in names if is_page(name) and not name.startswith(".")):
            try:
                found = os.stat(os.path.join(folder, name))
            except OSError:
                continue
            digest.update(repr((folder, name, found.st_size, found.st_mtime_ns)).encode("utf-8", "replace"))
    return digest.hexdigest()
