"""The index of intents: beside the user's, hidden from patterns, small, and read by ids alone."""

from contextlib import suppress

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.errors import ConfigError, IndexExists, PermissionDenied

_PREFIX = "shinglefold-gate-"
#: Nothing in it is searched. Refreshed now and then a server need not keep in memory what it was written. The
#: pipeline that a template may have for all indices is none for notes.
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
    """Return the name of the index of intents beside an index."""
    return f"{_PREFIX}{index}"


def ensure_intents(engine: Engine, index: str) -> str:
    """Create the index of intents beside an index where it is missing, and return its name."""
    name = intents_name(index)
    if not engine.index_exists(name):
        # Another writer may be faster.
        with suppress(IndexExists):
            engine.create_index(name, {"dynamic": False}, _SETTINGS)
    return name


def check_intents(engine: Engine, name: str) -> None:
    """Refuse an index of intents that a server made by itself, for what came after it was deleted.

    It is no hidden one and may have several shards, and it maps a field for each claim of a place until it
    has as many as it may have and takes no more.

    Raises:
        ConfigError: it is one.
    """
    with suppress(PermissionDenied):
        if str(engine.mappings(name).get("dynamic")).lower() != "false":
            raise ConfigError(
                f"index {name!r}, where gates keep their notes, was made by the server itself, as that of "
                f"the gates was deleted while one was open: delete it while none is open (DELETE /{name}), "
                "and the next gate makes it as it has to be; no document is lost by it"
            )
