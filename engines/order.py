"""What makes an order total on each engine."""

from shinglefold.contracts import Engine
from shinglefold.errors import PermissionDenied

#: The first OpenSearch that has ``_shard_doc``.
_SINCE = (3, 3)


def tiebreaker(engine: Engine) -> str | None:
    """Return the sort key that makes any order total under a point in time, for ``FoldedSearch``.

    None where the engine has none (OpenSearch before 3.3): ``_doc`` is not unique across shards. A field with
    a value of its own in each document will do instead. None, too, where the server does not tell its version
    to whoever asks.
    """
    try:
        info = engine.info()
    except PermissionDenied:
        return None
    if info["distribution"] != "opensearch":
        return "_shard_doc"
    major, minor = (int(part) for part in info["version"].split(".")[:2])
    return "_shard_doc" if (major, minor) >= _SINCE else None
