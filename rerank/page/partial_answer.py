"""What the answers to the requests of one search lack."""

from collections.abc import Mapping
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.contracts.shard_failures import lost_shards

#: The key in ``lacks`` for hits that a server counted but did not return.
CUT = "cut_hits"
_HEADER = ("timed_out", "terminated_early", "_shards", "_clusters")


def missing(answer: Mapping[str, Any]) -> JSON:
    """Return what an answer lacks, by name; {} if it is complete.

    Returns:
        ``failed_shards`` and ``skipped_clusters`` (numbers), ``timed_out`` and ``terminated_early`` (true).
    """
    clusters = answer.get("_clusters")
    lost = sum(int(clusters.get(name) or 0) for name in ("skipped", "partial", "failed")) if clusters else 0
    found = {
        "failed_shards": lost_shards(answer),
        "timed_out": bool(answer.get("timed_out")),
        "terminated_early": bool(answer.get("terminated_early")),
        "skipped_clusters": lost,
    }
    return {name: value for name, value in found.items() if value}


class PartialAnswer:
    """What the answers to the requests of one search lack: the greatest of each number.

    Attributes:
        header: the parts of partial answers in which the engine reports it; {} if all are complete.
    """

    def __init__(self) -> None:
        self.lacks: JSON = {}
        self.header: JSON = {}

    def __bool__(self) -> bool:
        return bool(self.lacks)

    def note(self, answer: Mapping[str, Any], cut: int = 0) -> bool:
        """Record what an answer lacks and return whether it is partial.

        Args:
            cut: further hits that are missing.
        """
        lacks = missing(answer) | ({CUT: cut} if cut else {})
        for name, value in lacks.items():
            self.lacks[name] = max(self.lacks.get(name, 0), value)
        if lacks:
            self.header |= {name: answer[name] for name in _HEADER if answer.get(name)}
        return bool(lacks)
