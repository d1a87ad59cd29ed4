"""What decides the output of a run: with anything else changed, a run that was broken off can't go on."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xxhash

from shinglefold.ingest.signing.journal import UNFINISHED
from shinglefold.ingest.signing.parts import SignOptions
from shinglefold.ingest.signing.tasks import LARGEST, is_repeatable
from shinglefold.scheme import Scheme

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
        # What is made may stand among what it is made of.
        folders[:] = sorted(name for name in folders if not name.endswith(UNFINISHED))
        for name in sorted(names):
            try:
                found = os.stat(os.path.join(folder, name))
            except OSError:
                continue
            digest.update(repr((folder, name, found.st_size, found.st_mtime_ns)).encode("utf-8", "replace"))
    return digest.hexdigest()
