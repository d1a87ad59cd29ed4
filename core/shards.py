"""What an answer says of shards that could not do what was asked, though others could."""

from collections.abc import Iterator, Mapping
from typing import Any

from shinglefold.errors import WindowTooLarge

_WINDOW = "Result window is too large"


def shard_reasons(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return why shards failed, in the server's own words: ``type`` and ``reason``."""
    failures = (answer.get("_shards") or {}).get("failures") or ()
    return [failure.get("reason") or {} for failure in failures]


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


def _words(reason: object) -> Iterator[str]:
    while isinstance(reason, Mapping):
        yield str(reason.get("reason"))
        reason = reason.get("caused_by")
