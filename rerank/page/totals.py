"""How many groups the whole result has: counted where all of it was read, else estimated, and so labelled."""

from collections.abc import Mapping, Sequence
from typing import Any

from shinglefold.contracts import JSON

METHOD = "groups seen + hits not read × share of hits that begin a group in the second half of the window"


def groups_total(first: Sequence[int], read: int, total: object, *, ended: bool) -> JSON:
    """Return the number of groups of all hits.

    Args:
        first: for each group seen the rank of its best-ranked member, from 0.
        read: hits read, from the first one on.
        total: ``hits.total`` of the answer, which is only read; None where it says nothing of these hits.
        ended: whether these are all hits there are.

    Returns:
        ``value`` and ``relation``: ``eq``; ``gte`` (so many were seen, and nothing is known of the rest); or
        ``estimate``, with its ``method``, the ``window`` it rests on and ``of``, the total it is made for.

    The share of the second half continues what the ranks show: it falls where copies are scattered and stays
    where they stand together. On random lists the mean of many estimates is 0.85 to 1.15 of the truth where
    copies rank near each other, as they do when they are scored by their text. Where copies are scattered at
    random over a much longer list it is too high, at worst by the mean size of a group. It is never below
    what was seen and never above the total.
    """
    seen = len(first)
    hits, exact = _hits(total)
    if ended or (exact and hits is not None and 0 <= hits <= read):
        return {"value": seen, "relation": "eq"}
    if hits is None or hits <= read or not read:
        return {"value": seen, "relation": "gte"}
    half = read // 2
    share = sum(map(half.__le__, first)) / (read - half)
    value = seen + round((hits - read) * share)
    of = {"value": hits, "relation": "eq" if exact else "gte"}
    return {"value": value, "relation": "estimate", "method": METHOD, "window": read, "of": of}


def carried(told: Mapping[str, Any] | None, seen: int, *, ended: bool) -> JSON:
    """Return the number of groups on a later page of a cursor: counted at the end, else as the first said.

    Args:
        told: what the first page said.
        seen: groups on the pages so far and in what was read beyond them.
    """
    if ended:
        return {"value": seen, "relation": "eq"}
    if told is None or told["relation"] != "estimate":
        return {"value": seen, "relation": "gte"}
    return {**told, "value": max(seen, told["value"])}


def _hits(total: object) -> tuple[int | None, bool]:
    """Return the hits of a total, and whether that is all of them."""
    if isinstance(total, Mapping) and isinstance(total.get("value"), int):
        return total["value"], total.get("relation") == "eq"
    return None, False
