"""The index of intents beside the user's index: hidden from patterns, small, and read by id only."""

from contextlib import suppress

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.errors import ConfigError, IndexExists, PermissionDenied

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
