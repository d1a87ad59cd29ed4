"""What an answer itself says it lacks: shards that failed, a time that ran out, clusters left out."""

from collections.abc import Mapping
from typing import Any

from shinglefold.contracts import JSON
from shinglefold.shards import lost_shards

#: What is lacking where a server gives fewer hits than it counts.
CUT = "cut_hits"
_HEADER = ("timed_out", "terminated_early", "_shards", "_clusters")


def missing(answer: Mapping[str, Any]) -> JSON:
    """Return what an answer lacks, by name; {} where it is whole.

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


class Partial:
    """What the answers to one search lack together: of each number the greatest.

    Attributes:
        header: the parts of a partial answer in which the engine says so; {} where all were whole.
    """

    def __init__(self) -> None:
        self.lacks: JSON = {}
        self.header: JSON = {}

    def __bool__(self) -> bool:
        return bool(self.lacks)

    def note(self, answer: Mapping[str, Any], cut: int = 0) -> bool:
        """Take an answer into account and tell whether it is partial.

        Args:
            cut: hits it lacks beside.
        """
        lacks = missing(answer) | ({CUT: cut} if cut else {})
        for name, value in lacks.items():
            self.lacks[name] = max(self.lacks.get(name, 0), value)
        if lacks:
            self.header |= {name: answer[name] for name in _HEADER if answer.get(name)}
        return bool(lacks)
