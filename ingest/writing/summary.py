"""What a run of indexing did, in numbers that add up."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; ``fraction`` of the source read, 0 where unknown."""

    read: int
    indexed: int
    dropped: int
    failed: int
    fraction: float


@dataclass(frozen=True, slots=True)
class Failed:
    """Where documents failed for a reason first."""

    reason: str
    source: str
    line: int
    stage: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The end of a run: ``read == indexed + dropped + failed``.

    ``seconds`` by stage: ``read`` (input to documents), ``wait`` (for fingerprints), ``index`` (waiting for
    the engine while nothing else could be done), ``commit`` and ``total`` are of the clock; ``pipeline`` and
    its parts ``strip``, ``canon``, ``sketch``, and ``json``, are added up over the workers. ``languages``:
    documents by language. ``counts``: ``repairs`` (look-alike letters and invisible characters),
    ``replaced`` (undecodable places), ``without_signature``, ``unknown_language``, ``fingerprints_left_out``
    (that came with documents), ``dropped_by_server`` (by the index's own pipeline, of those dropped),
    ``sent_elsewhere`` (by that pipeline into another index, of those indexed),
    ``written_over`` (documents that took the place of one the index had) …
    ``reasons``: failed documents by reason. ``stopped``: why the run ended early, empty where it did not;
    ``failures``: where each of the commonest reasons was met first; ``notes``: what else there is to know,
    in words; what was read ahead by then is not counted. ``made``: the run made the index.
    """

    index: str
    scheme: str
    read: int
    indexed: int
    dropped: int
    failed: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    dead_letters: str = ""
    stopped: str = ""
    failures: tuple[Failed, ...] = ()
    notes: tuple[str, ...] = ()
    made: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON, seconds to the millisecond."""
        seconds = {stage: round(value, 3) for stage, value in self.seconds.items()}
        return {**asdict(self), "seconds": seconds}
