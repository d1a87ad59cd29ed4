"""What an answer says of shards that could not do what was asked, though others could."""

from collections.abc import Iterator, Mapping
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.errors import EngineUnavailable, PitExpired, UnsupportedQuery, WindowTooLarge

_WINDOW = "Result window is too large"
#: A node that a point in time is on has left the cluster, and takes it with it even where it comes back.
NODE_GONE = "no node found for id"
#: Characters of reasons quoted.
_LONGEST = 300


def shard_reasons(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return why shards failed, in the server's own words: ``type`` and ``reason``."""
    failures = (answer.get("_shards") or {}).get("failures") or ()
    return [failure.get("reason") or {} for failure in failures]


def lost_shards(answer: Mapping[str, Any]) -> int:
    """Return how many shards had no part in an answer.

    One that no node has is missing from those that were successful and not among those that failed.
    """
    shards = answer.get("_shards") or {}
    total, successful = shards.get("total"), shards.get("successful")
    absent = total - successful if isinstance(total, int) and isinstance(successful, int) else 0
    return max(int(shards.get("failed") or 0), absent)


def refuse_small_windows(answer: Mapping[str, Any]) -> None:
    """Refuse an answer that lacks the hits of an index which allows fewer at a time than were asked for.

    A server refuses such a request itself where all indices allow too few; where one of several does, it
    answers without that one.

    Raises:
        WindowTooLarge: with the index and the remedy.
    """
    for failure in (answer.get("_shards") or {}).get("failures") or ():
        if any(_WINDOW in said for said in _words(failure.get("reason"))):
            raise WindowTooLarge(
                f"the index {failure.get('index')!r} allows fewer hits at a time than asked for: ask for "
                "fewer, or raise its index.max_result_window"
            )


def check_complete(answer: JSON) -> JSON:
    """Return an answer all shards took part in; servers give what they have where some do not.

    Raises:
        PitExpired: a shard has lost the point in time.
        WindowTooLarge: an index allows fewer documents at a time.
        UnsupportedQuery: a shard can't do what was asked.
        EngineUnavailable: a shard did not answer.
    """
    refuse_small_windows(answer)
    reasons = shard_reasons(answer)
    told = "; ".join(str(reason.get("reason")) for reason in reasons)[:_LONGEST]
    kinds = {str(reason.get("type")) for reason in reasons}
    if "search_context_missing_exception" in kinds or NODE_GONE in told:
        raise PitExpired("a shard lost the point in time; open another")
    if "illegal_argument_exception" in kinds:
        raise UnsupportedQuery(f"a shard can't read the request: {told}")
    if lost_shards(answer) or answer.get("timed_out"):
        raise EngineUnavailable(f"not all shards answered: {told or 'timed out'}; try again later")
    return answer


def _words(reason: object) -> Iterator[str]:
    while isinstance(reason, Mapping):
        yield str(reason.get("reason"))
        reason = reason.get("caused_by")
