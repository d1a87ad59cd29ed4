"""Whether a refresh has reached every copy of an index that may answer a search."""

from collections.abc import Mapping
from typing import Any

from shinglefold.engines.http.errors import NotRefreshed, shards_told

#: A server waits a minute for a shard without a primary and then leaves it out of what was done. In seconds,
#: fewer than these, as its clock is coarse.
_WAITED = 50.0


def check_refreshed(answer: Mapping[str, Any], seconds: float, who: str) -> None:
    """Check that searches see everything now, whichever copies they ask.

    A copy on which a refresh fails stays what it is and is asked by searches as before. Copies that no node
    has are neither successful nor failed, and nobody asks them: each is made from its primary, refreshed.
    A shard that has no primary is told in the same way, but only after a minute, and its copies may be asked.

    Args:
        answer: to the request for the refresh.
        seconds: after which it came.

    Raises:
        NotRefreshed: some copies may not have it.
    """
    shards = answer.get("_shards") or {}
    missing = int(shards.get("total") or 0) - int(shards.get("successful") or 0)
    if shards.get("failed") or (missing > 0 and seconds >= _WAITED):
        raise NotRefreshed(shards_told(shards, who))
