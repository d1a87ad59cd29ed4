"""Walking hits in an order that neither loses nor repeats any, over any shards and indices.

Servers number the changes of each shard. This number, ``_seq_no``, is known to plain searches and under a
point in time, on every copy of a shard, and survives refreshes and merges. Sorted by it, hits are equal
only where they stand in different shards: there are never more of them than shards. So a walk asks for one
hit more than it takes and goes on from a hit whose sort values no other has.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from shinglefold.contracts.engine import Capabilities

#: The number of a document's last change.
SEQ_NO = "_seq_no"
#: A hit's place, for engines of one shard that number no changes; under a point in time.
PLACE = "_shard_doc"


def tie_key(can: Capabilities) -> str:
    """Return the last key of an order that ``whole_runs`` makes total on an engine.

    Not ``_shard_doc`` where there are shards: OpenSearch 2 has none, and OpenSearch 3.8's is the same for
    hits of different indices.
    """
    return SEQ_NO if can.seq_no else PLACE


def whole_runs(hits: Sequence[Mapping[str, Any]], most: int) -> int:
    """Return how many hits of an answer to take, so that the walk may go on from the last one taken.

    Args:
        hits: in order, with their ``sort`` values; one more than ``most`` was asked for.

    Returns:
        all where there are no more than ``most``: the walk is over. Else at most ``most``, and the next hit's
        sort values differ from the last one's. 0: all these are equal; ask for more.
    """
    if len(hits) <= most:
        return len(hits)
    taken = most
    while taken and hits[taken]["sort"] == hits[taken - 1]["sort"]:
        taken -= 1
    return taken
