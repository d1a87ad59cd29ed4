"""Shard failures in the responses of servers: reasons, counts, and the errors to raise."""

from collections.abc import Iterator, Mapping
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.errors import EngineUnavailable, PitExpired, UnsupportedQuery, WindowTooLarge

_WINDOW = "Result window is too large"
#: The node of a point in time has left the cluster; the point in time is lost even if the node returns.
NODE_GONE = "no node found for id"
#: A message quotes at most this many characters of reasons.
_LONGEST = 300
#: Types of failures that are due to the request.
_REJECTED = {"illegal_argument_exception", "script_exception"}


def shard_reasons(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the ``type`` and ``reason`` of each shard failure."""
    failures = (answer.get("_shards") or {}).get("failures") or ()
    return [failure.get("reason") or {} for failure in failures]


def lost_shards(answer: Mapping[str, Any]) -> int:
    """Return how many shards are missing from a response.

    A shard without a node counts neither as successful nor as failed.
    """
    shards = answer.get("_shards") or {}
    total, successful = shards.get("total"), shards.get("successful")
    absent = total - successful if isinstance(total, int) and isinstance(successful, int) else 0
    return max(int(shards.get("failed") or 0), absent)


def refuse_small_windows(answer: Mapping[str, Any]) -> None:
    """Raise if a response lacks an index because its result window is too small.

    A server rejects such a request if all indices have too small a window. If only one of several has, its
    response just leaves the index out.

    Raises:
        WindowTooLarge: an index allows fewer hits than requested.
    """
    for failure in (answer.get("_shards") or {}).get("failures") or ():
        if any(_WINDOW in reason for reason in _reason_texts(failure.get("reason"))):
            raise WindowTooLarge(
                f"the index {failure.get('index')!r} allows fewer hits than requested: request "
                "fewer, or raise its index.max_result_window"
            )


def refuse_rejected_hits(answer: Mapping[str, Any]) -> None:
    """Raise if shards reject what a request returns of their hits, such as a script field that fails.

    Raises:
        UnsupportedQuery: a shard does.
    """
    for reason in shard_reasons(answer):
        if reason.get("type") in _REJECTED:
            texts = ", caused by: ".join(dict.fromkeys(_reason_texts(reason)))[:_LONGEST]
            raise UnsupportedQuery(f"a shard can't return its hits: {reason['type']}: {texts}")


def check_complete(answer: JSON) -> JSON:
    """Return a response, and raise unless all shards took part in it.

    Raises:
        PitExpired: a shard has lost the point in time.
        WindowTooLarge: an index allows fewer hits than requested.
        UnsupportedQuery: a shard can't execute the request.
        EngineUnavailable: a shard did not respond.
    """
    refuse_small_windows(answer)
    reasons = shard_reasons(answer)
    quoted = "; ".join(str(reason.get("reason")) for reason in reasons)[:_LONGEST]
    kinds = {str(reason.get("type")) for reason in reasons}
    if "search_context_missing_exception" in kinds or NODE_GONE in quoted:
        raise PitExpired("a shard lost the point in time; open another")
    if "illegal_argument_exception" in kinds:
        raise UnsupportedQuery(f"a shard can't read the request: {quoted}")
    if lost_shards(answer) or answer.get("timed_out"):
        raise EngineUnavailable(f"not all shards answered: {quoted or 'timed out'}; try again later")
    return answer


def _reason_texts(reason: object) -> Iterator[str]:
    while isinstance(reason, Mapping):
        yield str(reason.get("reason"))
        reason = reason.get("caused_by")
